"""Hear a wish that something be remembered, or always be done, and say what (L3)."""

import re
from functools import lru_cache

_OPENING = (
    r"(?P<opening>(?:(?:hey|hi|hello|ok|okay|oh|so|and|also|no|actually|by the way|btw|thanks|great|hallo|ach|übrigens|"
    r"nein|und)(?: (?-i:[A-ZÄÖÜ]\w+))??[,!]? +){0,3}?(?:(?-i:[A-ZÄÖÜ]\w+), )??)"
)
_POLITE = r"(?:(?:please|kindly|just|also|so|and|bitte|mal|auch) +){0,4}"
_WILL_YOU = r"(?:can|could|would|will) you (?:mind )?"
_KEEP = (
    r"(?:remember|(?:make|take) (?:a )?note|note(?: down)?|keep in mind|bear in mind|memori[sz]e|"
    r"(?:don't|do not) forget)(?: (?:for me|please))?"
)
_MERKEN = r"(?:merk(?:e)? dir|denk daran|beachte|vergiss nicht|notier(?:e)? dir)(?: bitte)?"
_THIS = r"(?: (?:this|the following|folgendes|das))? *(?::| [–-] ) *| (?:this|the following), "
# What may follow "remember" in a question that wishes it: a clause, not a thing ("that restaurant").
_CLAUSE = (
    r"(?:i|we|he|she|it|they|you|my|our|his|her|their|the|a|an|there|all|every|no|"
    r"(?-i:[A-ZÄÖÜ]\w*)|\w+'(?:s|m|re|ve))\b"
)
_TOLD = re.compile(
    rf"{_OPENING}(?:(?:i(?:'d like| would like| want| need) you to )?{_POLITE}(?:{_KEEP}|{_MERKEN})"
    rf"(?:{_THIS}| that |,? dass |[\s,]+)|{_POLITE}(?:for the record|fyi|just so you know|important|wichtig|zur info)"
    rf"\b[\s,:–-]+)(?=\w)(?!to\b)(?P<noted>.+)",
    re.IGNORECASE | re.DOTALL,
)
_ASKED = re.compile(
    rf"{_OPENING}(?:{_WILL_YOU}{_POLITE}(?:{_KEEP}|remembering|keeping in mind)"
    rf"(?:{_THIS}| that (?={_CLAUSE})| (?=i(?:'\w+)? )| (?=my [\w ]+? (?:is|are|was)\b))"
    rf"|(?:kannst|könntest|würdest) du (?:dir )?{_POLITE}(?:merken|daran denken|notieren)(?:,? dass |: *))"
    rf"(?P<noted>\w.+)",
    re.IGNORECASE | re.DOTALL,
)
_DO = (
    "(?:answer|reply|respond|use|write|speak|talk|call|address|format|include|keep|start|end|begin|send|put|add|ask|run|"
    "give|show|check|make|explain|summari[sz]e|avoid|mention|commit|push|delete|deploy)"
)
_SURE = r"(?:(?:make sure|be sure|remember)(?: (?:to|that you))? )?"
_LASTING = r"(?:from now on|in (?:the )?future|ab jetzt|künftig|von nun an|in zukunft)"
_ORDERED = re.compile(
    rf"{_OPENING}(?:"
    rf"{_WILL_YOU}(?:kindly |just |also )*please {_SURE}(?=(?:always|never)\b)"
    rf"|{_WILL_YOU}{_POLITE}(?:{_SURE}(?=(?:always|never) {_DO}\b)|(?={_DO}\b.*\b{_LASTING}[ ?.!]*$))"
    rf"|(?:please|kindly|bitte) (?:(?:remember|make sure|be sure) to )?(?=(?:always|never|immer|nie|niemals)\b)"
    rf"|remember to (?=(?:always|never)\b)"
    rf"|(?:kannst|könntest|würdest) du (?:bitte )?(?=(?:immer|nie|niemals|{_LASTING})\b)"
    rf")(?P<noted>.+)",
    re.IGNORECASE | re.DOTALL,
)
# "Always answer in French", not "Always loved the sea" or "Never mind"; "from now on, call me Al", not "… I live here".
_STANDING = re.compile(
    rf"{_OPENING}(?:(?:i(?:'d like| would like| want| need) you to|you (?:should|must)|"
    rf"(?:make|be) sure(?: (?:to|you|that you))?|remember(?: to| that you)?) )?{_POLITE}(?:"
    r"(?:always|never|(?:don't|do not) ever) (?!(?:mind|again|been|had|was|were|is|are|am|an?|the|my|our|his|her|in|on|"
    r"at|too|so|knew|thought|saw|\w+ed)\b)[a-z]+"
    rf"|(?:{_LASTING}|going forward)\b(?!,? (?:i|we|my|our|it|he|she|they|ich|wir|will|möchten?|werden?)\b"
    r"(?! (?:want|need|would like) you))"
    r"|(?:whenever|every time|each time) i ask\b|when i ask (?:you|for|about)\b|(?:immer|jedes mal),? wenn ich\b"
    r"|(?:antworte|schreibe?|sprich|verwende|benutze?|nutze?|nimm|nenne?|gib|zeige?|frage?|mache?|sage?|erkläre?|fasse?|"
    r"prüfe?|teste?|lösche?|lasse?|vermeide|erwähne|formatiere|halte?|setze?)(?: mir| dir| dich)? (?:bitte )?"
    rf"(?:immer|niemals|nie|stets|{_LASTING})\b)",
    re.IGNORECASE,
)
_COURTESY = re.compile(r",? (?:please|thanks|for me|bitte)$", re.IGNORECASE)
# "…, dass ich vegan bin": the verb of a German clause stands last, that of a sentence second.
_GERMAN_CLAUSE = re.compile(
    r"(?P<subject>ich|wir|er|sie|es|(?:(?:der|die|das|(?:m|d|s|k)?eine?|unsere?|ihre?) )?"
    r"(?:[a-zäöüß]+ )?[A-ZÄÖÜ][\w-]+) (?P<rest>[^,;:]*?) (?P<verb>[a-zäöüß]+)[.!]?"
)


def hear_note(sentence: str, *, may_ask: bool = True) -> str | None:
    """Return what a sentence wishes to be remembered or always done, without the wish; None if it wishes neither.

    Without `may_ask` what reads as a question is none of it.
    """
    asked = (_ORDERED.match(sentence) or _ASKED.match(sentence)) if may_ask else None
    if asked:
        return asked["opening"] + _as_statement(asked, _close(asked["noted"]))
    told = _TOLD.match(sentence)
    return told["opening"] + _as_statement(told, told["noted"]) if told else None


@lru_cache(maxsize=16_384)  # recall asks this of hundreds of texts, mostly of the same ones
def is_standing_order(opening: str) -> bool:
    """Tell by how a text begins whether it says what is to be done always, never, or from now on."""
    return bool(_STANDING.match(opening) or _ORDERED.match(opening))


def _as_statement(heard: re.Match[str], noted: str) -> str:
    wish = heard.group()[: heard.start("noted") - heard.start()]
    if wish.rstrip().lower().endswith("dass"):
        clause = _GERMAN_CLAUSE.fullmatch(noted.strip())
        noted = f"{clause['subject']} {clause['verb']} {clause['rest']}." if clause else noted
    return noted if heard["opening"] else noted[:1].upper() + noted[1:]


def _close(noted: str) -> str:
    """End what was asked as a statement: "… at seven, please?" with a full stop."""
    return _COURTESY.sub("", noted.rstrip(" ?!.\n")).rstrip(" ,") + "."
