"""Cut a message into clauses that each say one thing, and say how each is meant: asserted, asked, a change … (E1)."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from memory.language.sentences import drop_program_output
from memory.language.words import has_cue, word_list

LONGEST = 16_000  # characters of a message that are read; what comes after them was pasted
_LONGEST_LINE = 2_000  # a longer one without a sentence's end is no speech
_FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)

_CODE_LINE = re.compile(
    r"^\s*(?:[>|#$%]|\+{3}|-{3}|@@|//|/\*|\}|\{|<[/a-z]|(?:import|from \S+ import|def|class|return|SELECT|ALTER|CREATE|"
    r"INSERT|UPDATE|DELETE|const|let|var|func|fn|sudo|git|pip|npm|docker|kubectl|curl)\b(?!.*[a-z], ))"
    r"|[;{]\s*$|=>|::|\|>|->\s*$|\w\(\)|^\s*[\w.-]+\s*=\s*\S|^\s*[A-Z][\w ]{2,24}:\s+\S+\s*$(?<![.!?])|^\S+$"
)

_FORWARDED = re.compile(
    r"^\s*(?:>|(?:From|Von|Subject|Betreff|To|An|Date|Datum|Cc|Sent|Gesendet): )|"
    r"^(?:Dear|Hi|Hello|Sehr geehrte\w*|Liebe[rs]?|Gentile) [^.!?\n]{2,60},?\s*$"
)
_BULLET = re.compile(r"^\s*(?:[-*•–]|\d{1,2}[.)])\s+")
_LIST_HEAD = re.compile(r":\s*$")

_LONG_QUOTE = re.compile(
    r"\"[^\"\n]*\"|“[^”\n]*”|„[^“”\n]*[“”]|«[^»\n]*»|»[^«\n]*«|(?<!\w)'[^'\n]{3,}? [^'\n]*?'(?!\w)"
)

_ABBREVIATED = re.compile(
    r"(?:\b(?:mr|mrs|ms|dr|prof|st|vs|etc|e\.g|i\.e|approx|ca|z\.b|d\.h|u\.a|bzw|usw|ggf|evtl|inkl|max|min|hr|fr|nr|no|"
    r"a\.m|p\.m|resp|sog)|\b[A-Za-z])\.$",
    re.IGNORECASE,
)
_END = re.compile(r"(?:[.!?…]+[\"')\]”’]*)(?=\s|$)|[;\n]")
_DATE_DOT = re.compile(r"\b\d{1,2}\.$")

_MONTH = re.compile(
    r"\s*(?:januar|februar|märz|april|mai|juni|juli|august|september|oktober|november|dezember|\d)", re.I
)

_SUBJECT = (
    r"(?:i|i'm|i've|i'll|i'd|im|ive|we|we're|we've|we'll|he|he's|she|she's|it|it's|its|they|they're|my|our|his|her|"
    r"their|"
    r"there|there's|that's|thats|this|the|from now on|since|so now|"
    r"ich|wir|er|sie|es|mein\w*|unser\w*|das|die|der|dann|jetzt|ab)\b"
)

_NAMED = (
    r"(?-i:[A-ZÄÖÜ][\w'’-]+) (?:is|has|wants|needs|likes|prefers|never|only|always|can't|won't|doesn't|don't|does|says|"
)
_NAMED += r"will|took|takes|comes|came|works|lives|ist|hat|will|mag|macht|kommt|braucht|sagt)\b"
_WHEN = r"(?:(?:from|as of|since|on|at|in|by|for|when|ab|seit|am|im|in der|zu) (?:the )?[\w'-]+(?: (?:of )?[\w'-]+)? )?"

_JOINT = re.compile(
    rf"(?:\s+[-–—]+\s+|:\s+|,?\s+(?:but|and so|and then|and also|aber|und dann)\s+|,\s+so\s+|"
    rf",?\s+(?:and|und|so|because|cause|cos|weil|denn|since)\s+(?={_WHEN}(?:{_SUBJECT}|{_NAMED}))|"
    rf",\s+(?={_WHEN}(?:{_SUBJECT}|{_NAMED}))|\.\.+\s*|,\s+(?:(?:and|but|und|aber) )?(?=(?:no|not|nicht|kein\w*)\s)|"
    r",\s+(?:so |and )?(?=(?:can|could|would) you\b|kannst du\b))",
    re.IGNORECASE,
)

# "Since it rained all week, the fair moves to Sunday": what is said is the main clause.
_LEADING = re.compile(
    r"^(?:and |but |so |und |aber )*(?:since|as|because|now that|after|da|weil|nachdem) (?!of\b|always\b|ever\b|"
    r"usual\b|for\b|from\b|monday|tuesday|"
    r"wednesday|thursday|friday|saturday|sunday|last|january|february|march|april|may|june|july|august|september|"
    r"october|"
    r"november|december|\d)[^,]{8,90}, (?P<main>.+)$",
    re.IGNORECASE | re.DOTALL,
)
_ASIDE = re.compile(r"\s*\(([^()\n]{12,})\)")
_WORDS = re.compile(r"[^\W\d_]{2,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """One clause, its whole sentence, the label it stands under (`food: £85 a week`), and whether it is an item."""

    text: str
    sentence: str
    label: str = ""
    is_item: bool = False
    is_quote: bool = False


def list_clauses(text: str) -> list[Clause]:
    """List the clauses of a message in their order; whole sentences stand before the parts they fall into."""
    return [clause for line, is_item in _spoken_lines(text[:LONGEST]) for clause in _clauses_of(line, is_item)]


def _spoken_lines(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the lines that somebody says, whether each is a list's item; what was forwarded or printed is left out."""
    forwarded = False
    for line in drop_program_output(_FENCE.sub("\n", text.replace("’", "'"))).splitlines():
        if not line.strip():
            continue
        forwarded = forwarded or (_FORWARDED.match(line) is not None and not line.lstrip().startswith(">"))
        if forwarded or line.lstrip().startswith(">") or (len(line) > _LONGEST_LINE and not _END.search(line)):
            continue
        item = _BULLET.match(line)
        spoken = line[item.end() :] if item else line
        if _is_speech(spoken):
            yield spoken.strip(), item is not None


def _is_speech(line: str) -> bool:
    words = _WORDS.findall(line)
    if len(words) < 2 or (_CODE_LINE.search(line) and len(words) < 9):
        return False
    return sum(map(len, words)) >= 0.5 * len(line.replace(" ", ""))


def _split_line(line: str) -> list[str]:
    """Cut a line into sentences whether or not they begin with a capital; dates, versions and initials stay whole."""
    parts, start = [], 0
    for end in _END.finditer(line):
        head = line[start : end.end()]
        if end.group() == "." and (_ABBREVIATED.search(head) or _is_ordinal(head, line[end.end() :])):
            continue
        parts.append(head.strip())
        start = end.end()
    parts.append(line[start:].strip())
    return [part for part in parts if _WORDS.search(part)]


def _is_ordinal(head: str, rest: str) -> bool:
    return _DATE_DOT.search(head) is not None and _MONTH.match(rest) is not None


def _clauses_of(line: str, is_item: bool) -> Iterator[Clause]:
    quotes = [found.group() for found in _LONG_QUOTE.finditer(line) if len(found.group().split()) > 3]
    for quote in quotes:
        line = line.replace(quote, " “…” ")
    for aside in _ASIDE.finditer(line):
        yield from _parts(aside[1], False)
    for sentence in _split_line(_ASIDE.sub("", line) if _ASIDE.search(line) else line):
        yield from _parts(sentence, is_item)


def _parts(sentence: str, is_item: bool) -> Iterator[Clause]:
    is_quote = "“…”" in sentence
    label, rest = _labelled(sentence)
    yield Clause(text=rest, sentence=sentence, label=label, is_item=is_item, is_quote=is_quote)
    joined = _LEADING.sub(r"\g<main>", rest)
    pieces = list(_with_lead([piece.strip(" ,") for piece in _JOINT.split(joined) if piece and piece.strip(" ,")]))
    pieces = [joined, *pieces] if joined != rest and len(pieces) > 1 else pieces
    if len(pieces) > 1 or joined != rest:
        for piece in pieces:
            yield Clause(text=piece, sentence=sentence, label=label, is_quote="“…”" in piece)


# "From May on" is said of what follows it.
_LEAD = re.compile(
    r"^(?:(?:and|but|so|und|aber) )*(?:from|as of|as from|since|starting|on|at|in|by|for|during|until|with effect from|"
    r"ab|seit|am|an|im|in|zu|bei|bis|every|each|jeden?|next|this) (?:[\w'.-]+ ?){1,4}$",
    re.IGNORECASE,
)


def _with_lead(pieces: Sequence[str]) -> Iterator[str]:
    """Put a piece that only says when or where before the next one."""
    lead = ""
    for piece in pieces:
        if _LEAD.match(piece) and not _SAYS.search(f"{piece} "):
            lead = f"{lead}{piece}, "
            continue
        yield lead + piece
        lead = ""
    if lead:
        yield lead.strip(", ")


_LABEL = re.compile(r"^(?P<label>[^\W\d][^:.!?]{1,60}): +(?P<rest>\S.*)$")
_LEADS_IN = re.compile(r"^(?:(?:and|then|also|now|und|dann|auch),? )+", re.IGNORECASE)
_SAYS = re.compile(rf"(?:^|\b){_SUBJECT} [\w']+ ", re.IGNORECASE)


def _labelled(sentence: str) -> tuple[str, str]:
    """Take a short label before a colon off a sentence (`new rule on merging: we …`)."""
    found = _LABEL.match(sentence)
    if not found or len(found["label"].split()) > 6 or "//" in found["rest"][:3] or _SAYS.search(found["label"]):
        return "", sentence
    return _LEADS_IN.sub("", found["label"].strip()), found["rest"]


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
