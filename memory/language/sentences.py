"""Cut a text into sentences, words and chunks, and clear away what nobody said in it.

What nobody said: echoes of what we injected (B1, B4), what programs print, and frames around removed secrets (L3). At
the end, which of several texts hold the same words.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from memory.domain.identity import IdKind, content_hash, id_pattern
from memory.domain.taxonomy import ConversationTurn, ExtractedFact
from memory.language.words import ENGLISH_STOPS, GERMAN_STOPS, word_set

_ABBREVIATIONS = word_set(
    "mr mrs ms dr prof st vs etc e.g i.e eg ie nr approx ca dept inc ltd co jr sr fig vol resp "
    "z.b d.h u.a z.t bzw usw ggf evtl str tel abs hr fr mio mrd sog inkl max min a.m p.m u.s"
)
_SHARED = re.compile(r"\[shares\b[^\]]*\]?", re.IGNORECASE)

# Marks that open may come again and again before one closes: hence a longest quote.
_QUOTED = re.compile(
    r"\"[^\"]*\"|“[^”]{0,2000}”|„[^“”]{0,2000}[“”]|«[^»]{0,2000}»|»[^«]{0,2000}«|(?<!\w)'[^'][^' ]* [^']+'(?!\w)"
)
_END = re.compile(r"(?:\.{2,}|…|[.!?]+)[\"'”“’»)\]]*(?=\s|$)|\n+")
_WORD = re.compile(r"[^\W_]+(?:[.'’+#/_-]*[^\W_]+)*[+#]*")
_PICTOGRAPHS = re.compile("[\U0001f000-\U0001faff\u2600-\u27bf\ufe0f\u200d\u20e3]+|(?<!\\S)[:;]-?[()DPp](?!\\w)")

_OPENING = re.compile(
    r"(?:(?:wow|woah|whoa|yeah|yep|yup|yes|yay|nah|no|nope|oh|ooh|aw|aww|ah|haha|hah|hmm|huh|hey|hi|hello|ok|okay|well|"
    r"sure|right|exactly|absolutely|definitely|totally|agreed|thanks|thank you|congrats|btw|by the way|anyway|so|"
    r"you know|i mean|actually|honestly|of course|nice|cool|great|good morning|"
    r"ja|nein|doch|naja|na ja|ach|oh|hallo|moin|servus|danke|klar|genau|übrigens|also|stimmt|guten morgen|tja)"
    r"(?:,? (?:so much|a lot|again|sehr|schön|there))?"
    r"(?:,? [A-ZÄÖÜ][a-zäöüß]+)??(?:\s*[,!–—]\s*|\s+-\s+|\s*\.\.\.\s*|\s*…\s*))+",
    re.IGNORECASE,
)

# "Correction: the review is …", "Sorry, I meant the review is …", "Actually the review is …"
_CORRECTING = re.compile(
    r"(?:a )?(?:small |quick )?correction\s*[:,–—]\s*|korrektur\s*[:,–—]\s*|"
    r"(?:(?:sorry|entschuldigung),? )?(?:i meant(?: to say)?(?: that)?|ich meinte(?: dass)?),? "
    r"(?=[^,;]*\b(?:am|is|are|was|were|has|have|had|does?|did|will|would|can|could|should|must|lives?|works?|likes?|"
    r"prefers?|starts?|runs?|uses?|takes?|needs?|wants?|bin|ist|sind|war|hat|habe|heißt|beginnt)\b)|"
    r"actually (?=(?:i|we|he|she|they|the|my|our|his|her|their) )",
    re.IGNORECASE,
)
_ADDRESSED = re.compile(r"[A-ZÄÖÜ][a-zäöüß]+(?:, (?=\w+(?:'\w+)? \w)|! )")

_CONJUNCTION = re.compile(
    r"(?:and|but|plus|also|btw|und|aber)\b(?: (?:btw|also|really|auch))?[\s,–-]+(?=\w)", re.IGNORECASE
)
_VOCATIVE = re.compile(r"(?<=\w), [A-ZÄÖÜ][a-zäöüß]+(?=[.!…]*$)")

_DATED_OPENING = re.compile(
    r"(?:today|yesterday|tonight|this (?:morning|afternoon|evening|week|month)|last (?:night|week|weekend|month|friday|"
    r"monday|tuesday|wednesday|thursday|saturday|sunday)|the other day|just now|earlier today|recently|lately)\b,?\s+",
    re.IGNORECASE,
)

_DATED_GERMAN = re.compile(
    r"(?i:heute(?: morgen| früh| mittag| nachmittag| abend)?|gestern(?: abend| früh)?|vorhin|neulich|letzte woche|"
    r"diese woche|gerade eben) (?P<verb>[a-zäöüß]+) "
    r"(?P<subject>(?:Frau |Herr |der |die |das )?[A-ZÄÖÜ]\w+|ich|wir|er|sie|es) ",
)


def split_sentences(text: str) -> list[str]:
    """Cut English or German text into trimmed sentences, each with its own end mark."""
    sentences, start = [], 0
    for end in _END.finditer(text):
        if _is_inside(text, start=start, end=end):
            continue
        sentences.append(text[start : end.end()].strip())
        start = end.end()
    sentences.append(text[start:].strip())
    return [sentence for sentence in sentences if _WORD.search(sentence) or sentence.strip("\n ")]


def _is_inside(text: str, *, start: int, end: re.Match[str]) -> bool:
    """Tell whether an end mark belongs to an abbreviation, an ordinal or a trailing-off in mid-sentence."""
    following = text[end.end() :].lstrip()
    if end.group().startswith("\n") or not following:
        return False
    if end.group().startswith(("..", "…")):
        return not following[0].isupper()
    if not end.group().startswith("."):
        return following[0].islower()
    last = text[start : end.start()].rsplit(None, 1)[-1:] or [""]
    word = last[0].strip("([\"'“„").lower()
    is_initial = len(word) == 1 and word.isalpha() and word != "i"
    is_ordinal = word.isdigit() and len(word) <= 2 and not following[0].isdigit() and _follows_ordinal(following)
    return word in _ABBREVIATIONS or is_initial or is_ordinal or following[0].islower()


_MONTHS = word_set("januar februar märz april mai juni juli august september oktober november dezember")


def _follows_ordinal(following: str) -> bool:
    """Tell whether the text goes on as after a German ordinal (a month, or a century)."""
    first = following.split(None, 1)[0].strip(".,").lower()
    return first in _MONTHS or first == "jahrhundert"


def list_words(text: str) -> list[str]:
    """List the words of a text as written, with inner apostrophes, hyphens, C++ and C# kept."""
    return [match.group().replace("’", "'") for match in _WORD.finditer(text)]


def drop_quotes(text: str) -> str:
    """Blank out quoted spans, since what stands in them is somebody else's."""
    return _QUOTED.sub(" … ", text)


def drop_shared(text: str) -> str:
    """Drop the `[shares …]` spans with which chats describe pictures."""
    return " ".join(_SHARED.sub(" ", text).split())


def has_shared(text: str) -> bool:
    """Tell whether a `[shares …]` span stands in the text."""
    return _SHARED.search(text) is not None


def strip_pictographs(text: str) -> str:
    """Drop emoji and emoticons."""
    return " ".join(_PICTOGRAPHS.sub(" ", text).split())


def strip_opening(sentence: str, *, is_addressed: bool = False, keeps_date: bool = False) -> str:
    """Drop interjections, "Correction:", the address and a dating adverb from a sentence's ends, and capitalise it.

    With `is_addressed`, a turn spoken to somebody, a first word set off by a comma is taken for that name. With
    `keeps_date` the adverb stays.
    """
    rest = _VOCATIVE.sub("", sentence)
    opening = _OPENING.match(rest)
    rest = rest[opening.end() :] if opening else rest
    correcting = _CORRECTING.match(rest)
    rest = rest[correcting.end() :] if correcting else rest
    addressed = _ADDRESSED.match(rest) if is_addressed else None
    rest = rest[addressed.end() :] if addressed else rest
    joined = _CONJUNCTION.match(rest)
    rest = rest[joined.end() :] if joined else rest
    if keeps_date:
        return rest[:1].upper() + rest[1:]
    dated = _DATED_OPENING.match(rest)
    rest = rest[dated.end() :] if dated else _drop_german_date(rest)
    return rest[:1].upper() + rest[1:]


def _drop_german_date(sentence: str) -> str:
    """Drop an opening such as "Heute" and put the subject before its verb again; else leave the sentence alone."""
    found = _DATED_GERMAN.match(sentence)
    return f"{found['subject']} {found['verb']} {sentence[found.end() :]}" if found else sentence


_LONGEST_HEAD, _MOST_HEADS = 1_000, 24  # characters and heads: what is longer is no statement

_CUT = re.compile(
    r",?\s+(?:because|'cause|cause|cuz|since|although|though|which|even (?:if|though|when)|weil|obwohl|denn)\b|"
    r"\s+[-–—]\s|\s*[;:]\s|"
    r",?\s+(?:and|but|so|und|aber)\s+(?=(?:[A-Z]\w+|it|it's|it'd|I|I'm|they|he|she|we|there|you|your|er|sie|es)\b)"
)

_FILLING = re.compile(
    r"\b(?:really|definitely|totally|just|super|so|pretty|truly|absolutely|simply|wirklich|echt)\s+(?=\w)"
)

_DATED_ENDING = re.compile(
    r",? (?:lately|recently|today|yesterday|too|as well|btw|by the way|please|auch|heute|gestern|"
    r"(?:last|next|this) (?:week|month|year|night|weekend|summer|winter))(?=[.!…]*$)",
    re.IGNORECASE,
)


def list_shortened(sentence: str) -> list[str]:
    """List a sentence and what is left of it without trailing clauses, fillers and a dating end; each is still said.

    Conditions (if, unless, when, until) are never cut off, since without them another thing would be said.
    """
    cuts = islice(_CUT.finditer(sentence, 0, _LONGEST_HEAD), _MOST_HEADS)
    heads = [sentence, *(sentence[: cut.start()].rstrip(" ,") for cut in cuts)]
    bare = [_DATED_ENDING.sub("", _FILLING.sub("", head)) for head in heads]
    return list(dict.fromkeys(text for pair in zip(heads, bare, strict=True) for text in pair if text))


_BRACKETED = r"(?:[^\[\]\n]|\[[^\[\]\n]*\])*\]?"
_NUMBER = r"\d(?:[.,]\d+)?"
_BULLET = r"^[ \t>*+-]*"
_ITEM = r"^[ \t>]*- "

# Recollections, lines of memory_recall, and the sections of MEMORY.md: whole, cut off, or single lines.
_ECHO = re.compile(
    r"<!-- ENGRAM:(?P<part>BELIEFS|MEMORIES):BEGIN -->.*?(?:<!-- ENGRAM:(?P=part):END -->|\Z)"
    r"|<!-- ENGRAM:(?:BELIEFS|MEMORIES):END -->"
    rf"|\[Memory flash: {_BRACKETED}"
    rf"|\[Belief \({_NUMBER}\): {_BRACKETED}"
    rf"|{_BULLET}\[[A-Z]\] \([^)\n]*\)[^\n]*[—–-] ID: {id_pattern(IdKind.BELIEF, IdKind.EPISODE, IdKind.TURN)}"
    rf"|{_ITEM}[^\n]*\(confidence: {_NUMBER}, evidence: \d+\)[ \t]*$"
    rf"|{_ITEM}[^\n]*\N{{NO-BREAK SPACE}}\(\d{{4}}-\d\d-\d\d\)[ \t]*$"
    rf"|{_ITEM}\[NO LONGER TRUE\][^\n]*\(was: {_NUMBER}, now: {_NUMBER}, demoted: [\d-]+\)[ \t]*$",
    re.MULTILINE | re.DOTALL,
)
_BLANK_LINES = re.compile(r"\n(?:[ \t]*\n)+")
_NAME_END = ": "
_INSIDE_NAMES = dict.fromkeys(map(ord, "'’-._"))

# Words of a name that are written small.
_PARTICLES = word_set("al bin da de del della den der di dos du el la le ter van von zu zur")

# What opens a text as a name would, and names nobody.
_LABELS = word_set(
    "ps fyi note notes nb todo update edit reminder correction important question answer summary warning"
    " korrektur notiz hinweis nachtrag wichtig erinnerung frage antwort zusammenfassung warnung"
)


def strip_echo(text: str, speaker: str = "") -> str:
    """Return a text without its speaker's own prefix and without what we injected; "" if all of it is echo."""
    said = text.removeprefix(speaker + _NAME_END).strip() if speaker else text.strip()
    kept, echoes = _ECHO.subn("", said)
    if not echoes:
        return said or text.strip()
    return _BLANK_LINES.sub("\n\n", kept).strip() if any(character.isalnum() for character in kept) else ""


def opening_name(text: str, *, longest: int) -> str | None:
    """Return the capitalised name of at most `longest` characters in a text that begins `Name: `, else None."""
    name, colon, _ = text[: longest + len(_NAME_END)].partition(_NAME_END)
    is_name = name[:1].isalpha() and not name[0].islower() and all(map(_is_part_of_a_name, name.split(" ")))
    return name if colon and is_name and name.lower() not in _LABELS else None


def _is_part_of_a_name(word: str) -> bool:
    """Tell whether a word begins with a capital, a digit, or a letter of a script without capitals."""
    plain = word.translate(_INSIDE_NAMES)
    return word in _PARTICLES or (plain.isalnum() and not plain[0].islower())


_LEVEL = r"(?:DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|FATAL|CRITICAL)"
_CLOCK = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d"
_KEY = r"(?:\"[^\"\n]{1,80}\"|'[^'\n]{1,80}')"
_VALUE = r"(?:[\"'\[{]|-?\d|(?:true|false|null|True|False|None)\b)"

_TRACEBACK = re.compile(
    r"^[ \t]*Traceback \(most recent call last\)[^\n]*(?:\n[ \t]+[^\n]*)*(?:\n[\w.]+(?:: [^\n]*)?(?=\n|\Z))?",
    re.MULTILINE,
)

_LINE = re.compile(
    r"^[ \t]*(?:"
    r"File \"[^\"\n]+\", line \d+"
    r"|at [\w$.<>]+(?: \[as \w+\])? ?\([^)\s]*:\d+(?::\d+)?\)"
    r"|(?:[a-z_]\w*\.)*[A-Z]\w*(?:Error|Exception)(?:: |[ \t]*$)"
    r"|(?:Caused by: |Exception in thread |panic: |goroutine \d+ \[)"
    rf"|{_KEY}[ \t]*:[ \t]*{_VALUE}"
    rf"|\{{[ \t]*{_KEY}[ \t]*:(?:.*\}}[,;. \t]*$|[^}}\n]*$)"
    rf"|\[[ \t]*(?:{_KEY}[ \t]*[,\]]|\{{[ \t]*{_KEY}|\[[ \t]*[\d\"'\[-]).*\][,;. \t]*$"
    rf"|\[?{_LEVEL}\]?[: \t][^\n]*{_CLOCK}|\[?{_CLOCK}[^\n]* \[?{_LEVEL}\b"
    r"|\$ [a-z]|diff --git |@@ -\d|[d-][rwx-]{9}[ \t]"
    r")[^\n]*$",
    re.MULTILINE,
)
_OBJECT = re.compile(rf"\{{[ \t]*{_KEY}[ \t]*:[^{{}}]*\}}")

# A marker may have been cut off where a sentence was shortened.
_CUT_MARKER = r"\[redacted(?:: [^\]\n]{0,60})?(?:\]|$)"
_MARKER = re.compile(_CUT_MARKER)

# "The code of the safe is [redacted: …]", in one clause.
_VALUELESS = re.compile(
    r"(?:(?! (?:and|but|und|aber) )[^,;.!?])*(?:\b(?:is|are|was|were|be|to|ist|war|lautet|heißt)|[:=]) "
    rf"?(?:now |still |jetzt )?[\"'`]?{_CUT_MARKER}[\"'`.! ]*",
    re.IGNORECASE,
)

_FRAME = word_set(
    "user user's users assistant assistant's nutzer assistent password passwords passphrase passcode pin api key keys "
    "token tokens secret secrets credential credentials login private access card number code passwort kennwort "
    "schlüssel geheimnis use uses used set redacted tool tools result results output response json returned returns "
    "printed answered says said please remember"
)


def drop_program_output(text: str) -> str:
    """Drop the lines that programs print: tracebacks, JSON, logs with a time, diffs, and commands typed at a prompt."""
    return _LINE.sub("", _TRACEBACK.sub("", text))


def is_program_output(text: str) -> bool:
    """Tell a text that is nothing but what a program printed, or a frame round it ("The tool returned {…}")."""
    return not any(map(str.isalnum, drop_program_output(text))) or _is_frame(text, _OBJECT)


def is_redacted_away(text: str) -> bool:
    """Tell a text that says nothing any more since its secret was taken out ("My password is [redacted: …].")."""
    return _VALUELESS.fullmatch(text.strip()) is not None or _is_frame(text, _MARKER)


def _is_frame(text: str, hole: re.Pattern[str]) -> bool:
    """Tell whether next to nothing is left of a text beside its holes."""
    rest, holes = hole.subn(" ", text)
    told = [word for word in map(str.lower, list_words(rest)) if word not in ENGLISH_STOPS | GERMAN_STOPS | _FRAME]
    return holes > 0 and len(told) < 2


_FENCE = "```"

_BORDERS = (
    re.compile(r"\n\s*\n"),  # between paragraphs, rather than
    re.compile(r"\n+"),  # between lines, rather than
    re.compile(r"[.!?…][\"'”“’»)\]]*\s+(?=\S)"),  # between sentences, rather than
    re.compile(r"\s+"),  # between words
)


def chunk_text(*, text: str, longest: int) -> list[str]:
    """Cut a text into pieces of at most so many characters, at the last border that leaves a piece more than half full.

    Nothing is lost but the spaces between pieces; a short text is one piece. Code that is cut is code in both pieces.
    """
    if len(text) <= longest:
        return [text]
    return list(_close_code(piece for piece in _cut_chunks(text, longest - 2 * len(_FENCE) - 2) if piece))


def split_text(*, text: str, longest: int) -> list[str]:
    """Split a text into parts of at most so many bytes of UTF-8, four or more; joined again they are the text.

    A part ends where a piece would. The plugin for Claude Code and the Python client split by the same rule, in files
    of their own: turns that the plugin has sent and that are imported later are the same turns.
    """
    parts, start = [], 0
    while (full := start + _count_fitting(text, start, longest)) < len(text):
        end = _find_end(text, start, full)
        parts.append(text[start:end])
        start = end
    return [*parts, text[start:]]


def _count_fitting(text: str, start: int, longest: int) -> int:
    """Count the characters from a place on that fit into so many bytes; a half of a surrogate pair is one byte."""
    window = text[start : start + longest].encode("utf-8", "replace")
    return max(len(window[:longest].decode("utf-8", "ignore")), 1)  # however little is allowed, it goes on


def _close_code(pieces: Iterable[str]) -> Iterator[str]:
    is_open = False
    for piece in pieces:
        whole = f"{_FENCE}\n{piece}" if is_open else piece
        is_open = whole.count(_FENCE) % 2 == 1
        yield f"{whole}\n{_FENCE}" if is_open else whole


def _cut_chunks(text: str, longest: int) -> Iterator[str]:
    start = 0
    while len(text) - start > longest:
        end = _find_end(text, start, start + longest)
        yield text[start:end].strip()
        start = end
    yield text[start:].strip()


def _find_end(text: str, start: int, full: int) -> int:
    """Return where a piece ends: at the last border of the best kind in the second half of what it may hold."""
    for border in _BORDERS:
        ends = [found.end() for found in border.finditer(text, start + (full - start) // 2, full)]
        if ends:
            return ends[-1]
    return full


_STEM_LETTERS = 5  # letters of a word that its forms share
_SHORTEST_STEM = 3


def turns_that_tell(*, fact: ExtractedFact, turns: Sequence[ConversationTurn]) -> list[ConversationTurn]:
    """Return the turns that a fact quotes, and those that have more of its words than any of them.

    A model may be talked into ascribing to one what another said: it then quotes a turn that lacks the fact's words.
    """
    names = {word for turn in turns for word in _stems(turn.speaker)}
    wanted = _stems(fact.text) - names
    shared = {turn.number: len(wanted & _stems(turn.text)) for turn in turns}
    most = max((shared[number] for number in fact.turns if number in shared), default=0)
    return [turn for turn in turns if turn.number in fact.turns or shared[turn.number] > most]


def turns_that_repeat(*, texts: Sequence[str], turns: Sequence[ConversationTurn]) -> list[ConversationTurn]:
    """Return the turns that hold every word of one of some texts, but for the name of who speaks."""
    wanted = [_stems(text) for text in texts]
    return [turn for turn in turns if _holds_any(wanted, said=_stems(turn.text), name=_stems(turn.speaker))]


def says_more(*, summary: str, told: Sequence[str], share: float) -> bool:
    """Tell whether a summary has a sentence of which texts have less than a share of the words, or not all numbers."""
    known = {word for text in told for word in _stems(text) | _numbers_in(text)}
    sentences = [(_stems(sentence), _numbers_in(sentence)) for sentence in split_sentences(summary)]
    return any(len(words & known) < share * len(words) or not numbers <= known for words, numbers in sentences)


def _numbers_in(text: str) -> set[str]:
    return {word for word in list_words(text) if any(map(str.isdigit, word))}


def _holds_any(wanted: Sequence[set[str]], *, said: set[str], name: set[str]) -> bool:
    return any(words - name <= said for words in wanted if words - name)


def _stems(text: str) -> set[str]:
    words = (word.casefold() for word in list_words(text))
    kept = (word for word in words if word not in ENGLISH_STOPS and word not in GERMAN_STOPS)
    return {word[:_STEM_LETTERS] for word in kept if len(word) >= _SHORTEST_STEM}


_STOPS = ENGLISH_STOPS | GERMAN_STOPS


def find_cause(*, cause: str, texts: Sequence[str], least: float) -> tuple[int, float] | None:
    """Return the place of the text that says the cause, the first of equals, and the share of its words that it has."""
    wanted = _telling_words(cause)
    hashed = content_hash(cause)
    shares = [1.0 if content_hash(text) == hashed else _share_said(wanted, _telling_words(text)) for text in texts]
    best = max(range(len(shares)), key=lambda place: (shares[place], -place), default=None)
    return None if best is None or shares[best] < least else (best, shares[best])


def _telling_words(text: str) -> frozenset[str]:
    return frozenset(word.casefold() for word in list_words(text)) - _STOPS


def _share_said(wanted: frozenset[str], said: frozenset[str]) -> float:
    return len(wanted & said) / len(wanted) if wanted else 0.0
