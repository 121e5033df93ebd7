"""Clauses that are short of words and still say what holds of somebody: "I am vegan", "We use Postgres", "Ida is 7"."""

import re
from collections.abc import Collection

from memory.domain.lexicon import ENGLISH_AUXILIARIES, ENGLISH_PAST, words

# How somebody is just now, or whereabouts, says nothing of tomorrow.
_PASSING = words(
    "tired back here there sure fine good well ok okay ready done sorry glad happy sad busy late lost confused home in "
    "out off on up down hungry thirsty sick ill excited curious afraid scared nervous worried stuck free early bored "
    "interested impressed proud aware certain right wrong serious stressed exhausted ashamed grateful thankful "
    "speechless alone available better great amazing awesome next gone away upset relieved surprised set sold touched "
    "honored honoured jealous obsessed hooked blessed lucky thrilled pumped stoked game all everything nothing it that "
    "müde da hier dort sicher froh bereit fertig zurück krank gespannt traurig glücklich dabei weg gut dran spät raus "
    "überrascht begeistert verwirrt unsicher beeindruckt neugierig stolz dankbar einverstanden unterwegs so"
)
_END = r"[.!]?"
_COPULA = r"(?:'m| am|'re| are|'s| is| bin| sind| ist)"
_BEING = re.compile(
    rf"(?P<who>I|We|Ich|Wir|.+?){_COPULA}(?P<not> not| no| nicht)? (?:an? |eine? )?(?P<what>[\w-]+)"
    rf"(?: years old| Jahre alt)?{_END}"
)
_DOING = re.compile(
    r"We (?:always |never |only |also |usually |mostly |all |now |currently |don't |do not )*(?P<verb>[a-z]+) "
    rf"(?P<rest>[^,;:]+?){_END}"
)
_WIR = re.compile(rf"Wir (?P<verb>[a-zäöüß]+(?:en|rn|ln)) (?P<rest>[^,;:]+?){_END}")
_THOUGHT = words(
    "know think guess hope see mean feel agree wish believe want need should could would can may might will"
)
_EMPTY = words("it that this them so there here you us everything nothing something fun das es dies so uns euch alles")
_OWN = words("i we ich wir")


def is_short_fact(*, text: str, names: Collection[str]) -> bool:
    """Tell whether a clause says how somebody is who is one of `names` or speaks, or what "we" do, as a rule."""
    being = _BEING.fullmatch(text)
    if being:
        return _says_how(being, {name.casefold() for name in names})
    doing = _DOING.fullmatch(text) or _WIR.fullmatch(text)
    return doing is not None and _says_what(doing)


def _says_how(being: re.Match[str], names: Collection[str]) -> bool:
    who, what = being["who"].casefold(), being["what"].casefold()
    if what.isdigit():
        return who in _OWN or who in names or (being["who"].isalpha() and being["who"][0].isupper())
    return (who in _OWN or who in names) and what not in _PASSING and not what.endswith(("ing", "ed", "ly"))


def _says_what(doing: re.Match[str]) -> bool:
    verb, rest = doing["verb"], doing["rest"].casefold().split()
    is_rule = verb not in ENGLISH_AUXILIARIES | ENGLISH_PAST | _THOUGHT and not verb.endswith("ed")
    return is_rule and not set(rest) <= _EMPTY and not _EMPTY & {rest[0]}
