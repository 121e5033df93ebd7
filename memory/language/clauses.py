"""Cut a message into clauses that each say one thing, without code, output of programs and other people's words."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memory.domain.residue import drop_output

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
    for line in drop_output(_FENCE.sub("\n", text.replace("’", "'"))).splitlines():
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


def split_sentences(line: str) -> list[str]:
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
    for sentence in split_sentences(_ASIDE.sub("", line) if _ASIDE.search(line) else line):
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
