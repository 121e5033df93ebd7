"""Texts as nobody expects them, and everybody pastes them: made by a seed, the same every time."""

import random
from collections.abc import Callable, Iterator

LONG = 32 * 1024  # bytes of the longest text of an episode
# What whole chapters are made of: each is repeated, the first ones until a text is as long as one may be.
_WHOLE = ("x", "aB", "1:", "“", "[shares ", " ", "a: ", "it ")
_PARTLY = (
    "Ab ", "a_", "a.", "a.b", "-", '"', "(", ")", "[", "{", "`", "1.", "1,", "12:30", "1 ", "0x", "+", "#",
    "C++ ", "/", "\\", ":", ";", ",", ".", "!", "?", "…", "\t", "\u200b", "\u202e", "👩‍👩‍👧 ", "é", "e\u0301",
    "ß", "İ", "語 ", "ש", "that ", "no ", "not ", "I ", "you ", "and ", "he said ", "call me ", "es ", "nicht ",
    "twenty ", "Monday ", "really ", "Anna ", "the ", "a b", "s' ", "n't", "can't ", "e.g. ", "> ", "    a\n",
    "| a ", "=a", "a=", "password ", "sk-", "AKIA", "eyJ", "-----BEGIN ", "4111 ", "http://a.", "@a.b", "%20",
    "&amp;", "never say ", "Will do: ", "at a ", "so that ", "is a ", "was ", "which ", ", ", ": ", " - ", "ä ",
    "Ä", "wenn ", "„", "«", "' a", "_", "1", "A", "'", "\n", "😀", "漢", "a's ", "because ", "- a\n", "z. B. ",
    "a@", "key=",
)  # fmt: skip
_PART = 1024  # bytes: enough for what grows by the square to be seen, and not for all of them to take minutes
_WORDS = (
    "I", "we", "Anna", "the server", "prefers", "listens on", "runs", "is", "was", "not", "never", "at", "by", "until",
    "on Monday", "Python", "C++", "tea", "my manager", "Priya", "der Server", "läuft auf", "ist", "nicht", "am Montag",
    "weil", "unless", "instead of", "moved to", "version", "port", "o'clock", "Uhr", "am", "p.m.", "between", "and",
    "hours", "Euro", "$", "about", "yesterday", "gestern", "next Friday", "used to", "it", "that", "this", "you",
)  # fmt: skip
_HOSTS = (
    "127.0.0.1",
    "0.0.0.0",  # noqa: S104 - a text, and nothing listens there
    "[::1]",
    "localhost",
    "db-01.example.com",
    "fe80::1%eth0",
    "2001:db8::7",
    "10.0.0.256",
)
_MARKS = tuple("\u202a\u202b\u202e\u202c\u2066\u2069\u200e\u200f\u200b\u200d\u2060\ufeff\u00ad\u0301")
_EMOJI = ("😀", "👍🏽", "👩‍👩‍👧", "🏳️‍🌈", "🇩🇪", "✅", "1️⃣", "²", "①", "½", "٣", "௧", "Ⅷ", "𝟙", "〇", "👨🏿‍🚒")
_TONGUES = (
    "私はお茶が好きです。",
    "Я люблю чай, а не кофе.",
    "أفضل الشاي على القهوة.",
    "אני אוהב תה.",
    "ฉันชอบชา",
    "मुझे चाय पसंद है।",
    "J’aime le thé.",
    "Ich trinke lieber Tee.",
    "I like tea.",
    "차를 좋아해요",
    "Ευχαριστώ πολύ",
    "İstanbul'da ISPARTA",
    "ŞŞŞ ǅ ﬁ ŉ",
)
_QUOTES = (
    '"',
    "'",
    "“",
    "”",
    "„",
    "«",
    "»",
    "‘",
    "’",
    "`",
    "```",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "<",
    ">",
    "</",
    "'s",
    "''",
)
_CODE = (
    "def f(x: int) -> int:\n    return x if x else f(x - 1)\n",
    "SELECT * FROM t WHERE a = 'b' -- c;\n",
    "{'a': [1, 2, {}]}",
    '<div class="a">b</div>',
    "$ git push --force origin HEAD:main\n",
    'Traceback (most recent call last):\n  File "a.py"',
    "#include <a.h>\nint main(){return 0;}",
    "```python\nx = 1\n",
    "[2026-03-01 12:00:00,123] ERROR a.b: c=d",
    "a && b || c",
    'export KEY=value; echo "${KEY}"',
    "^(?:a+)+$",
    "\x1b[31mred\x1b[0m",
    "%s %d {0} {}",
    "C:\\Users\\a\\b.txt",
    "..\\../..",
)


def list_odd_texts(*, seed: int, count: int) -> list[str]:
    """Make so many odd texts, each at most as long as an episode may be; the repeated ones come first."""
    chance = random.Random(seed)
    texts = [_repeat(part, LONG) for part in _WHOLE] + [_repeat(part, _PART) for part in _PARTLY]
    kinds = _kinds()
    while len(texts) < count:
        texts.append(_fitting(kinds[len(texts) % len(kinds)](chance)))
    return texts[:count]


def _repeat(part: str, size: int) -> str:
    return part * (size // len(part.encode()))


def _fitting(text: str) -> str:
    return text.encode("utf-8", "ignore")[:LONG].decode("utf-8", "ignore")


def _kinds() -> tuple[Callable[[random.Random], str], ...]:
    return (
        _with(_host), _with(_clock), _with(_version), _with(_date), _with(_amount), _with(_emoji), _with(_mark),
        _with(_quote), _with(_tongue), _code, _table, _jumble, _stack, _ramble, _log, _with(_long_word),
    )  # fmt: skip


def _with(odd: Callable[[random.Random], str]) -> Callable[[random.Random], str]:
    """Make sentences of plain words with something odd between them."""

    def sentences(chance: random.Random) -> str:
        return " ".join(_sentence(chance, odd) for _ in range(chance.randint(1, 2)))

    return sentences


def _sentence(chance: random.Random, odd: Callable[[random.Random], str]) -> str:
    words = [odd(chance) if chance.random() < 0.35 else chance.choice(_WORDS) for _ in range(chance.randint(1, 10))]
    glue = chance.choice((" ", " ", " ", "", "\n", ", ", " - "))
    return glue.join(words) + chance.choice((".", "!", "?", "", "...", ":", ".\n"))


def _host(chance: random.Random) -> str:
    return chance.choice(_HOSTS) + chance.choice(("", f":{chance.randint(0, 70_000)}", "/a?b=c", ":5432/db", ":http"))


def _clock(chance: random.Random) -> str:
    hours, minutes = chance.choice((0, 7, 12, 23, 24, 25, 99, 720)), chance.choice((0, 5, 30, 59, 60, 99, 100))
    written = chance.choice(
        ("{}:{:02}", "{}.{:02}", "{:02}:{:02}:61", "{}:{}:", "{},{}", "{}:{}.5", "{}.5:{}", "{}h{}")
    )
    return written.format(hours, minutes) + chance.choice(("", " am", " pm", " Uhr", " o'clock", "pm", "-25:61"))


def _version(chance: random.Random) -> str:
    if chance.random() < 0.2:
        return chance.choice(("18.04.25", "1.2.34", "99:99", "127.0.0.1:5432"))
    parts = [str(chance.choice((0, 1, 2, 4, 12, 18, 25, 34, 2026))) for _ in range(chance.randint(1, 6))]
    return chance.choice(("", "v", "=", "^", "~")) + ".".join(parts) + chance.choice(("", "-rc.1", "+g1a2b", ".", "b3"))


def _date(chance: random.Random) -> str:
    day, month, year = chance.randint(0, 99), chance.randint(0, 20), chance.choice((0, 26, 2026, 99_999))
    written = ("{2}-{1}-{0}", "{0}.{1}.{2}", "{1}/{0}/{2}", "{0}.{1}.", "{2:04}-{1:02}-{0:02}T25:61Z", "{0}th {1}")
    return chance.choice(written).format(day, month, year)


def _amount(chance: random.Random) -> str:
    number = chance.choice(
        ("1,000,000", "1.000.000,5", "1e309", "9" * 400, "0.0000001", "-0", "1,2,3", "1.2,3.4", "00")
    )
    return (
        chance.choice(("", "$", "€", "£"))
        + number
        + chance.choice(("", " km", "%", " hours", " Euro", "GB", "°C", "x"))
    )


def _emoji(chance: random.Random) -> str:
    return "".join(chance.choices(_EMOJI, k=chance.randint(1, 5)))


def _mark(chance: random.Random) -> str:
    return "".join(f"{chance.choice(_MARKS)}{one}" for one in chance.choice(_WORDS))


def _quote(chance: random.Random) -> str:
    return chance.choice(_QUOTES) + chance.choice((chance.choice(_WORDS), "")) + chance.choice(_QUOTES)


def _tongue(chance: random.Random) -> str:
    return chance.choice(_TONGUES)


def _long_word(chance: random.Random) -> str:
    letters = chance.choice(("a", "aB", "a_", "a.", "a-", "a'", "A1", "é", "漢", "a+", "1.", "1:", "ab.cd/"))
    return letters * chance.randint(40, 100)


def _code(chance: random.Random) -> str:
    return chance.choice(("", "\n", " ")).join(chance.choices(_CODE, k=chance.randint(1, 3)))


def _table(chance: random.Random) -> str:
    columns = chance.randint(1, 4)
    cells = (_host, _clock, _version, _date, _amount, _emoji)
    rows = [" | ".join(chance.choice(cells)(chance) for _ in range(columns)) for _ in range(chance.randint(1, 3))]
    return "\n".join(f"| {row} |" for row in (rows[0], "|".join(["---"] * columns), *rows[1:]))


def _log(chance: random.Random) -> str:
    lines = (f"{_date(chance)} {_clock(chance)} {_host(chance)}: {_sentence(chance, _version)}" for _ in range(2))
    return "\n".join(lines)


def _jumble(chance: random.Random) -> str:
    """Draw from all of Unicode, what may not be stored apart."""
    ranges = ((1, 0x2FF), (0x300, 0xD7FF), (0xE000, 0x10FFFF))
    return "".join(chr(chance.randint(*chance.choice(ranges))) for _ in range(80))


def _ramble(chance: random.Random) -> str:
    """Go on without an end of a sentence until a text is as long as one may be."""
    few = [*chance.choices(_WORDS, k=3), "the server", _sentence(chance, _clock).rstrip(".!?:\n")]
    return " ".join(chance.choices(few, k=chance.choice((20, 40))))


def _stack(chance: random.Random) -> str:
    """Open much and close nothing."""
    return "".join(_nested(chance))


def _nested(chance: random.Random) -> Iterator[str]:
    for _ in range(chance.randint(1, 40)):
        yield chance.choice(("(", "[", "{", '"', "“", "„", "«", "'", "<", "```", "**", "a ", "Anna ", ". "))
