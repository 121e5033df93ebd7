"""The replies that a language model may give, and their validation.

`validate_reply` reads a model's text as the answer to its request, `write_reply` writes one, `reply_schema` gives the
JSON schema that servers are asked to keep to.
"""

import json
import re
from collections.abc import Collection, Sequence
from datetime import date
from enum import StrEnum
from functools import cache
from string import ascii_letters, ascii_uppercase
from typing import Annotated, Any, Literal, Self, TypeVar, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    FailFast,
    Field,
    ValidationError,
    model_validator,
)

from memory.domain.evidence import Verdict
from memory.domain.taxonomy import Category
from memory.language.subjects import Timeframe
from memory.llm.requests import ClassificationRequest, Purpose, ReadingRequest, Request

LONGEST_REPLY = 1_000_000  # characters, far beyond what any request is told that its reply may have
PARTS = 2

# The letter may be followed by a reason; whoever writes "1: S" or "[1] S" is understood.
_VERDICT = re.compile(r"\W*(?P<number>\d{1,3})\W*(?P<letter>[SCPI])(?:\W+(?P<reason>.*))?\s*", re.DOTALL)
_LETTERS = {verdict[0]: verdict for verdict in Verdict}


class MalformedReply(ValueError):
    """A reply that cannot be read as an answer to its request."""


def _storable_text(text: str) -> str:
    """Drop what PostgreSQL's text cannot hold, though JSON can spell it: a stored reply must stay usable."""
    return text.replace("\0", "").strip()


Item = TypeVar("Item")
Items = Annotated[list[Item], FailFast()]  # a list of a million wrong items is wrong once
CleanText = Annotated[str, AfterValidator(_storable_text)]


class _Reply(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


def _date_or_blank(given: Any) -> Any:
    """Take what is no date for no answer: no reply is worth refusing for it."""
    try:
        return date.fromisoformat(given.strip()).isoformat() if isinstance(given, str) else given
    except ValueError:
        return ""


DateText = Annotated[str, BeforeValidator(_date_or_blank)]


class Statement(_Reply):
    """One falsifiable sentence and its parts (B10)."""

    statement: CleanText
    subject: CleanText
    predicate: CleanText
    context: CleanText = "general"
    timeframe: Timeframe

    @model_validator(mode="after")
    def _describe_what_is_stated(self) -> Self:
        if self.statement and not (self.subject and self.predicate and self.context):
            raise ValueError("a statement needs a subject, a predicate and a context")
        return self


class Synthesis(Statement):
    """A statement and the date since when it holds, if that is told; a blank statement says that none can be made."""

    since: DateText = ""


class BeliefVerdicts(_Reply):
    """What a model writes of one belief, by its letter: "1 S", "2 C moved away" for texts by their numbers."""

    belief: str
    texts: Items[str]


class VerdictLists(_Reply):
    """What a model writes of all beliefs that it was asked about."""

    verdicts: Items[BeliefVerdicts]


class EpisodeVerdict(_Reply):
    """What one episode says about one belief, by their ids, and why; no reason is needed where nothing is wrong."""

    belief: str
    id: str
    verdict: Verdict
    reason: CleanText = ""


class Verdicts(_Reply):
    """One verdict for each belief and each episode that was asked about (B11)."""

    verdicts: Items[EpisodeVerdict]


class Division(_Reply):
    """Two statements, each with its own context (B12); none says that the belief cannot be divided."""

    parts: Items[Statement]

    @model_validator(mode="after")
    def _be_two_or_none(self) -> Self:
        if len(self.parts) not in (0, PARTS) or any(not part.statement for part in self.parts):
            raise ValueError("a belief is divided into two statements or none")
        if self.parts and len({part.context.casefold() for part in self.parts}) < PARTS:
            raise ValueError("the two statements need contexts of their own")
        return self


class Union(_Reply):
    """Whether two beliefs say the same, and in what words; blank ones keep the better evidenced (B13)."""

    same: bool
    statement: CleanText
    subject: CleanText
    predicate: CleanText
    context: CleanText = "general"
    timeframe: Timeframe

    @model_validator(mode="after")
    def _describe_what_is_stated(self) -> Self:
        if self.same and self.statement and not (self.subject and self.predicate and self.context):
            raise ValueError("a statement needs a subject, a predicate and a context")
        return self


class Summary(_Reply):
    """What some turns come down to (R8); blank for small talk."""

    summary: CleanText


def _as_list(given: Any) -> Any:
    """Take one number for a list of it, and nothing for none."""
    if given is None:
        return []
    return [given] if isinstance(given, int) else given


class Contradiction(_Reply):
    """The numbers of the beliefs that a fact contradicts, from 1, and why (R3)."""

    contradicts: Annotated[Items[int], BeforeValidator(_as_list)]
    reason: CleanText = ""

    def places(self, *, among: int) -> list[int] | None:
        """Return the places of the beliefs, from 0, each once; None if one is none of so many."""
        numbers = sorted(set(self.contradicts))
        return [number - 1 for number in numbers] if all(1 <= number <= among for number in numbers) else None


def _as_words(given: Any) -> Any:
    """Take a number for its digits, and null for nothing."""
    if given is None:
        return ""
    return str(given) if isinstance(given, int | float) and not isinstance(given, bool) else given


def _as_label(given: Any) -> Any:
    """Take "b7", 7 and " 7" for 7: which belief is meant is clear."""
    words = _as_words(given)
    return words.strip().lower().removeprefix("b").removeprefix("#") if isinstance(words, str) else words


def _date_or_none(given: Any) -> date | None:
    """Read a day; what is none leaves the time open, as does 9999-12-31, which means for ever."""
    try:
        day = date.fromisoformat(str(given).strip())
    except ValueError:
        return None
    return day if day.year <= _LAST_YEAR else None


_LAST_YEAR = 9000  # no calendar knows the day after the last one of 9999


def _known_category(given: Any) -> str:
    """Take what is no category for none given."""
    return given if isinstance(given, str) and given in set(Category) else ""


def _as_importance(given: Any) -> int | None:
    """Clamp a number to 1..10; what is none says nothing of importance."""
    try:
        return min(max(round(float(given)), 1), _HIGHEST_IMPORTANCE)
    except (TypeError, ValueError, OverflowError):
        return None


_HIGHEST_IMPORTANCE = 10
LooseText = Annotated[CleanText, BeforeValidator(_as_words)]
Label = Annotated[str, BeforeValidator(_as_label)]
OpenDate = Annotated[date | None, BeforeValidator(_date_or_none)]
LONGEST_STATEMENT = 30  # words


class _ReadLine(_Reply):
    model_config = ConfigDict(strict=True, extra="ignore", frozen=True, populate_by_name=True, serialize_by_alias=True)


class NewStatement(_ReadLine):
    """A statement that no shown belief makes yet (F1); `m` is its message's number.

    `replaces` and `because` name a shown belief by its number ("7"), or an entry of the same reply ("n3").
    """

    m: int
    statement: CleanText
    subject: LooseText = ""
    category: Annotated[str, BeforeValidator(_known_category)] = ""
    entities: Items[LooseText] = []
    kind: Annotated[Literal["lasting", "event"], BeforeValidator(lambda given: given or "lasting")] = "lasting"
    since: OpenDate = Field(default=None, alias="from")
    until: OpenDate = None
    replaces: Label = ""
    because: Label = ""
    importance: Annotated[int | None, BeforeValidator(_as_importance)] = None

    @model_validator(mode="after")
    def _state_something(self) -> Self:
        words = self.statement.split()
        if not words or len(words) > LONGEST_STATEMENT or self.statement.endswith("?"):
            raise ValueError("a statement is one sentence of at most 30 words, and no question")
        return self


class BeliefWord(StrEnum):
    """What a message says of a belief; ENDED: it was so, and is not any more from a day on (F1)."""

    SUPPORTS = "SUPPORTS"
    CONTRADICTS = "CONTRADICTS"
    PARTIAL = "PARTIAL"
    ENDED = "ENDED"


class AboutBelief(_ReadLine):
    """What a message says of a belief: a shown one by its number ("7"), or an entry of the same reply ("n3")."""

    m: int
    b: Label
    verdict: BeliefWord
    since: OpenDate = Field(default=None, alias="from")
    holds: LooseText = ""


def _read_each(shape: type[BaseModel]) -> BeforeValidator:
    """Read a list line by line: one that cannot be read is None, so that the numbers of the others stand."""

    def read(given: Any) -> Any:
        if not isinstance(given, list) or (given and not any(isinstance(line, dict | shape) for line in given)):
            return given  # no list of lines at all: malformed
        lines: list[Any] = []
        for line in given:
            try:
                is_read = line is None or isinstance(line, shape)
                lines.append(line if is_read else shape.model_validate_json(json.dumps(line)))
            except ValueError:
                lines.append(None)
        return lines

    return BeforeValidator(read)


class Reading(_Reply):
    """What some messages do to what is believed (F1); None stands for a line that could not be read."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)

    new: Annotated[list[NewStatement | None], _read_each(NewStatement)] = []
    about: Annotated[list[AboutBelief | None], _read_each(AboutBelief)] = []

    @model_validator(mode="before")
    @classmethod
    def _be_a_reading(cls, given: Any) -> Any:
        """Refuse an answer to something else: taken for nothing said, it would lose what was."""
        if isinstance(given, dict) and given and not given.keys() & {"new", "about"}:
            raise ValueError("a reading has new lines or lines about beliefs")
        return given


Reply = Synthesis | Verdicts | Division | Union | Summary | Contradiction | Reading

SHAPES: dict[Purpose, type[Reply] | type[VerdictLists]] = {
    Purpose.SYNTHESIZE: Synthesis,
    Purpose.CLASSIFY: VerdictLists,
    Purpose.REVISE: Synthesis,
    Purpose.SPLIT: Division,
    Purpose.MERGE: Union,
    Purpose.SUMMARIZE: Summary,
    Purpose.CONTRADICT: Contradiction,
    Purpose.READ: Reading,
}


def validate_reply(request: Request, raw_text: str) -> Reply:
    """Read a model's text as the answer to its request; raise MalformedReply for anything else."""
    if len(raw_text) > LONGEST_REPLY:
        raise MalformedReply(f"a reply of {len(raw_text)} characters")
    try:
        reply = SHAPES[request.purpose].model_validate_json(_without_fence(raw_text))
    except (ValidationError, ValueError) as error:
        raise MalformedReply(explain_fault(error)) from error
    if isinstance(reply, VerdictLists):
        assert isinstance(request, ClassificationRequest)  # no other has this shape
        return _read_verdicts(request, reply)
    if isinstance(request, ReadingRequest) and isinstance(reply, Reading):
        return _drop_unknown_lines(request, reply)
    return reply


def _without_fence(text: str) -> str:
    """Take off a Markdown fence; by hand, since a pattern that looks for its end may try each line break for each."""
    bare = text.strip()
    opening, has_lines, inside = bare.partition("\n")
    is_fenced = opening[:3] == "```" and not opening[3:].strip(ascii_letters + " \t\r")
    if not (is_fenced and has_lines and inside.endswith("```")):
        return text
    return inside.removesuffix("```")


def write_reply(*, request: Request, reply: Reply) -> str:
    """Write a reply as the text that `validate_reply` reads it from."""
    if not (isinstance(reply, Verdicts) and isinstance(request, ClassificationRequest)):
        return reply.model_dump_json()
    numbers = {episode.id: number for number, episode in enumerate(request.episodes, start=1)}
    lists = [
        BeliefVerdicts(
            belief=letter_of(place),
            texts=[
                f"{numbers[said.id]} {said.verdict[0]} {said.reason}".rstrip()
                for said in reply.verdicts
                if said.belief == belief.id
            ],
        )
        for place, belief in enumerate(request.beliefs)
    ]
    return VerdictLists(verdicts=lists).model_dump_json()


def letter_of(place: int) -> str:
    """Name a belief by its place among those asked about: A, B, C …"""
    return ascii_uppercase[place]


def reply_schema(*, request: Request) -> dict[str, Any]:
    """Return the JSON schema of a reply, in the strict form that servers ask for: every field required."""
    return _reading_schema(request) if isinstance(request, ReadingRequest) else _schema_of(request.purpose)


@cache
def _schema_of(purpose: Purpose) -> dict[str, Any]:
    return cast("dict[str, Any]", _require_all(SHAPES[purpose].model_json_schema()))


def _reading_schema(request: ReadingRequest) -> dict[str, Any]:
    """Bind messages, beliefs and verdicts to what stands in a request: weak models name labels that do not exist."""
    messages = list(range(1, len(request.read) + 1))
    shown = [str(number) for number in range(1, len(request.beliefs) + 1)]
    entries = [f"n{number}" for number in range(1, min(2 * len(messages), _MOST_ENTRIES) + 1)]
    text = {"type": "string"}
    new = {
        "m": {"type": "integer", "enum": messages},
        "statement": text,
        "subject": text,
        "category": {"type": "string", "enum": [*Category, ""]},
        "entities": {"type": "array", "items": text},
        "kind": {"type": "string", "enum": ["lasting", "event"]},
        "from": text,
        "until": text,
        "replaces": {"$ref": "#/$defs/b"},
        "because": {"$ref": "#/$defs/b"},
        "importance": {"type": "integer"},
    }
    about = {
        "m": {"type": "integer", "enum": messages},
        "b": {"$ref": "#/$defs/b"},
        "verdict": {"type": "string", "enum": [*BeliefWord]},
        "from": text,
    }
    about["holds"] = text
    lists = {"new": {"type": "array", "items": _strict(new)}, "about": {"type": "array", "items": _strict(about)}}
    return {**_strict(lists), "$defs": {"b": {"type": "string", "enum": ["", *shown, *entries]}}}


_MOST_ENTRIES = 30  # new statements of one reading that others of it may name


def _strict(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _require_all(node: Any) -> Any:
    if isinstance(node, list):
        return [_require_all(item) for item in node]
    if not isinstance(node, dict):
        return node
    kept = {
        name: _require_all(value) for name, value in node.items() if name not in ("default", "title", "description")
    }
    if "properties" in kept:
        kept["required"] = list(kept["properties"])
    return kept


def _read_verdicts(request: ClassificationRequest, reply: VerdictLists) -> Verdicts:
    """Find out by letters and numbers what is said of what; refuse what was not asked about, left out or repeated."""
    beliefs = {letter_of(place): belief.id for place, belief in enumerate(request.beliefs)}
    numbers = {number: episode.id for number, episode in enumerate(request.episodes, start=1)}
    _check_each_once(asked=set(beliefs), answered=[given.belief for given in reply.verdicts], name="belief")
    verdicts = []
    for given in reply.verdicts:
        said = [_read_verdict(text) for text in given.texts]
        _check_each_once(asked=set(numbers), answered=[number for number, _, _ in said], name="number")
        verdicts += [
            EpisodeVerdict(belief=beliefs[given.belief], id=numbers[number], verdict=verdict, reason=reason)
            for number, verdict, reason in said
        ]
    return Verdicts(verdicts=verdicts)


def _read_verdict(text: str) -> tuple[int, Verdict, str]:
    found = _VERDICT.fullmatch(text)
    if found is None:
        raise MalformedReply("a verdict that is no number and letter")
    return int(found["number"]), _LETTERS[found["letter"]], found["reason"] or ""


def _check_each_once(*, asked: set[Any], answered: Sequence[Any], name: str) -> None:
    """Refuse an answer unless it is about each thing that was asked about, once; what it made up is not quoted."""
    if set(answered) - asked:
        raise MalformedReply(f"unknown {name}")
    if missing := asked - set(answered):
        raise MalformedReply(f"missing {name} {', '.join(map(str, sorted(missing)))}")
    if len(answered) > len(asked):
        raise MalformedReply(f"duplicate {name}")


def _drop_unknown_lines(request: ReadingRequest, reply: Reading) -> Reading:
    """Drop the lines that name a message or a belief that is not there; the rest of the reply stands."""
    messages = range(1, len(request.read) + 1)
    shown = {str(number) for number in range(1, len(request.beliefs) + 1)}
    new = [line if line is not None and line.m in messages else None for line in reply.new]
    entries = {f"n{number}" for number, line in enumerate(new, start=1) if line is not None}
    known = shown | entries
    new = [line and _without_unknown_labels(line, known - {f"n{number}"}) for number, line in enumerate(new, start=1)]
    about = [line if line is not None and line.m in messages and line.b in known else None for line in reply.about]
    return Reading(new=new, about=about)


def _without_unknown_labels(line: NewStatement, known: Collection[str]) -> NewStatement:
    named = {name: getattr(line, name) for name in ("replaces", "because")}
    return line.model_copy(update={name: label if label in known else "" for name, label in named.items()})


def explain_fault(error: Exception) -> str:
    """Name the first fault without quoting the reply, which may hold anything."""
    if isinstance(error, ValidationError):
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        return f"{'.'.join(str(part) for part in first['loc']) or 'reply'}: {first['type']}"
    return type(error).__name__
