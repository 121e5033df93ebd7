"""Cut text into sentences and words, and clear away what is not part of a statement."""

import re
from itertools import islice

from memory.domain.lexicon import words

_ABBREVIATIONS = words(
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


_MONTHS = words("januar februar märz april mai juni juli august september oktober november dezember")


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
