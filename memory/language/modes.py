"""How a clause is meant: asserted, asked, wished, advised, hypothetical, quoted, ironic, planned, or a change (E1)."""

import re
from dataclasses import dataclass
from enum import StrEnum

from memory.language.cues import has_cue, word_list


class Mode(StrEnum):
    """How a claim is meant; only what is asserted or announces a change is evidence of anything (E1, E2)."""

    ASSERTED = "asserted"
    CHANGE = "change"
    ADVISED = "advised"
    ASKED = "asked"
    HYPOTHETICAL = "hypothetical"
    WISHED = "wished"
    QUOTED = "quoted"
    IRONIC = "ironic"
    PLANNED = "planned"


EVIDENCE = frozenset({Mode.ASSERTED, Mode.CHANGE})


def mode_of(*, clause: str, sentence: str, after: str = "", is_quote: bool = False, german: bool = False) -> Mode:
    """Say how a clause is meant, by itself, its sentence and what is said right after it."""
    if has_cue("irony", sentence) or _TAKEN_BACK.match(after):
        return Mode.IRONIC
    if has_cue("question", clause) or _ends_a_question(clause, sentence):
        return Mode.ASKED
    if sentence.rstrip(' ")').endswith("?") and _ASKS.match(clause):
        return Mode.ASKED
    if has_cue("hypothetical", sentence):
        return Mode.HYPOTHETICAL
    if has_cue("wish", clause):
        return Mode.WISHED
    if (is_quote or has_cue("quoted", clause)) and not has_cue("own_saying", clause):
        return Mode.QUOTED
    if find_change(clause) is not None:
        return Mode.CHANGE
    head = clause.partition(",")[0]
    is_plan = has_cue("plan", head if len(head.split()) > 2 else clause, language="de" if german else "en")
    return Mode.PLANNED if is_plan else Mode.ASSERTED


_ASKS = re.compile(
    r"(?:(?:and|but|so|or|und|aber|also|oder) )*(?:what|who|whom|whose|why|how|where|when|which|was|wer|wen|wem|warum|"
    r"wieso|wie|wo|wann|welche\w*|woher|wohin|womit|wofür)\b",
    re.IGNORECASE,
)
_TAKEN_BACK = re.compile(r"^\W*(?:not|nicht|no|nein|ha|haha|lol|as if|just kidding|kidding|scherz)\W*$", re.IGNORECASE)


def _ends_a_question(clause: str, sentence: str) -> bool:
    asked = sentence.rstrip()
    return asked.endswith("?") and asked.rstrip("? ").endswith(clause.rstrip("? ."))


def denies(text: str) -> bool:
    """Tell whether a text says no to something."""
    return _DENIES.search(text) is not None


_DENIES = re.compile(
    r"\b(?:not|never|no|cannot|without|nobody|nothing|frozen|freeze|forbidden|banned|off limits|refuses?|"
    r"stop(?:s|ped)? with|"
    r"nicht|nie|niemals|kein\w*|ohne|tabu|verboten|weigert)\b|n't\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What a clause says has ended, and whether it says what holds instead; either may be left open."""

    ended: tuple[str, ...] = ()
    begins: bool = False
    ended_by: frozenset[str] = frozenset()  # who gave something up, by name


def find_change(clause: str) -> Change | None:
    """Read what a clause says has ended or begun; None where it announces nothing."""
    if has_cue("still", clause) or has_cue("idle_change", clause) or has_cue("soon", clause):
        return None
    named = (_trim(thing) for thing in _ended(clause))
    ended = tuple(dict.fromkeys(thing for thing in named if thing and thing.lower() not in _NO_THING))
    begins = has_cue("begins", clause)
    return Change(ended=ended, begins=begins, ended_by=_givers_up(clause)) if ended or begins else None


def _givers_up(clause: str) -> frozenset[str]:
    """Return the names of those who gave something up, in lower case; none where the one who speaks did."""
    named = {found["who"].lower() for found in _ENDS[0].finditer(clause) if found["who"][:1].isupper()}
    return frozenset(named - _SPEAKERS)


# A thing that may end: a few words, up to the next preposition, comma or clause.
_BREAKS = (
    "on in at since for from to and but so because as last this it is yesterday today after before with when over "
    "by until "
    "ist und seit im am ab auf gestern we i he she they in-favour out gone any more now finally altogether completely"
)
_NEXT_WORD = rf"(?: (?!(?:{'|'.join(_BREAKS.split())})\b)[\w+#./'-]+)"
_DETERMINERS = r"(?:the |our |my |that |those |all |old |taking |using |doing |das |die |der |den |mein\w* |unser\w* )*"
_THING = rf"(?P<thing>{_DETERMINERS}[\w+#./'-]+{_NEXT_WORD}{{0,3}})"
_ENDING_VERB = (
    r"(?:dropped|dropping|ditched|ditching|left|leaving|quit|quitting|"
    r"stopped(?: (?:using|taking|drinking|eating|doing|going to))?|gave up|given up|giving up|got rid of|"
    r"getting rid of|"
    r"cancelled|canceled|sold|uninstalled|abandoned|scrapped|binned|retired|replaced|replacing|finished with|done with|"
    r"moved away from|moved off|moving off|moved out of|came off|"
    r"off(?! (?:to|for|work|sick|school|now|home|today|on)\b)|"
    r"tore out|tearing out|ended up tearing|"
    r"switched off|"
    r"killed|deleted|kicked out|said goodbye to|say goodbye to|parted with|threw out|thrown out|haven't touched|"
    r"outgrew)"
)
_PEOPLE = (
    r"(?:i|we|they|he|she|i've|we've|i have|we have|i'm|we're|we are|i am|has|have|had|so|to|"
    r"(?-i:[A-ZÄÖÜ])[a-zäöüß]+)"
)
_FELT = r"(?:get|miss|stand|worry|feel|mind|care|think|remember|understand|believe|see)\b"
_SPEAKERS = frozenset(
    ("i", "we", "they", "he", "she", "i've", "we've", "i'm", "we're", "has", "have", "had", "so", "to")
)
_DONE = r"\w+ed\b"  # what is no longer deployed is not "deployed"
_GONE = (
    r"(?:out(?! (?:there|soon|today|of (?:office|town|time|stock|order|sync|date|here|bed|hours)))|gone|history|"
    r"finished|"
    r"cancelled|canceled|no more|over|off the table|a thing of the past|stopped|switched off|scrapped|retired|deleted|"
    r"discontinued|closed down|sold|dropped|uninstalled|dismissed|done for|abolished)\b"
)
_ENDS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b(?P<who>{_PEOPLE})(?: (?:has|have))?(?: \w+ly| just| finally| all| already| now| since)? "
        rf"{_ENDING_VERB} {_THING}",
        rf"(?:^(?:and |so )?|, (?:and )?){_ENDING_VERB} {_THING}",
        rf"(?:^|[,.;:] ?|\b(?:and|but|so) ){_THING}(?:'s| is| are| was| were| has been| have been| gets| get)"
        rf"(?: now| finally| officially)? {_GONE}",
        rf"\b{_THING} (?:fell through|died on us|has been stopped|(?:is|are|was|were|has been) replaced)\b",
        rf"\bno (?:more|longer(?: (?:on|in|at|with|using|takes?|taking|drinks?|uses?|eats?)\b)?) (?!{_DONE}){_THING}",
        rf"\bno longer {_DONE} (?:on|in|at|with|by) {_THING}",
        rf"\bnot (?:\w+ ){{0,2}}?(?!{_DONE}){_THING} any ?more\b",
        rf"n't (?!{_DONE}|{_FELT}){_THING} any ?more\b",
        rf"(?:\bnot|n't) (?:live|work|study|train|shop|play) (?:in|at|with|for) {_THING} any ?more\b",
        rf"(?:\bnot|n't) {_DONE} (?:on|in|at|with|by) {_THING} any ?more\b",
        rf"^on (?P<thing>\w+days?)\b[^,.;]*(?:\bnot|n't) {_DONE} any ?more\b",
        r", (?:but )?(?:never|not) on (?P<thing>\w+days?)\b",
        rf"\b(?:quit|left|lost|resigned from|gave up) (?:my|our|his|her|their|the) (?:job|position|post|role) "
        rf"(?:at|with|in|as) {_THING}",
        rf"\b{_PEOPLE} used to (?:live|work|study|be based) (?:in|at|with|for) {_THING}",
        rf"\b(?:from|away from) {_THING} (?:to|over to|into) (?=\w)",
        rf"\blast (?:day|week|month|shift) (?:at|with|for|in) {_THING}",
        rf"\b(?:instead of|in place of|out with|rather than(?: on| in| at| with)?) {_THING}",
        rf"\b(?:nicht mehr|keine?n? mehr|statt|anstatt|schluss mit|weg von|raus aus) {_THING}",
        rf"\b{_THING} (?:ist|sind) (?:jetzt |nun |endlich )?"
        r"(?:raus|weg|geschichte|vorbei|gestorben|abgeschafft|gekündigt|verkauft|gestrichen|passé|deinstalliert)\b",
        rf"\bvon {_THING} (?:auf|zu|nach) (?=\w)",
        rf"\bmit (?:dem |der )?{_THING} aufgehört\b",
        rf"\bletzter (?:arbeits)?tag (?:bei|in|im|an der) {_THING}",
    )
)
_NO_THING = frozenset(word_list("no_things"))


def _ended(clause: str) -> list[str]:
    return [found["thing"] for pattern in _ENDS for found in pattern.finditer(clause)]


_LIGHT = re.compile(
    r"^(?:(?:the|our|my|that|those|all|old|any|an?|das|die|der|den|dem|mein\w*|unser\w*|it|this|them|everything|since|"
    r"everybody|nobody|something|things?|he|she|they|we|i|you|there|what|who|and|so|of|using|to|taking|doing|monday|"
    r"tuesday|wednesday|thursday|friday|saturday|sunday|yesterday|today|now|has|have|is|are|was|been)\b ?)+",
    re.IGNORECASE,
)
_DAY = re.compile(
    r"(?P<day>monday|tuesday|wednesday|thursday|friday|saturday|sunday)s?(?: (?:morning|afternoon|evening|night)s?)?$",
    re.IGNORECASE,
)


def _trim(thing: str) -> str:
    thing = thing.strip(" .,'\"")
    if day := _DAY.search(thing):
        return day["day"].lower()
    return _LIGHT.sub("", thing).strip(" .,'\"")
