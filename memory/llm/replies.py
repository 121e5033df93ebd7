"""The replies that a language model may give, and their validation.

`validate_reply` reads a model's text as the answer to its request, `write_reply` writes one, `reply_schema` gives the
JSON schema that servers are asked to keep to.
"""

import re
from collections.abc import Sequence
from datetime import date
from functools import cache
from string import ascii_letters, ascii_uppercase
from typing import Annotated, Any, Literal, Self, TypeVar, cast, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    FailFast,
    Field,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from memory.domain.evidence import Verdict
from memory.domain.taxonomy import Category
from memory.language.clauses import Mode
from memory.language.slots import slots_by_name
from memory.language.subjects import Timeframe
from memory.llm.requests import ClaimsRequest, ClassificationRequest, FactsRequest, Purpose, Request

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


def _clamp(low: float, high: float) -> AfterValidator:
    """Clamp a number: a model that says 1.2 means much, and no reply is worth refusing for it."""
    return AfterValidator(lambda number: min(max(number, low), high))


Item = TypeVar("Item")
Items = Annotated[list[Item], FailFast()]  # a list of a million wrong items is wrong once
CleanText = Annotated[str, AfterValidator(_storable_text)]
UnitFloat = Annotated[float, Field(allow_inf_nan=False), _clamp(0.0, 1.0)]
SignedUnitFloat = Annotated[float, Field(allow_inf_nan=False), _clamp(-1.0, 1.0)]


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


class ToldFact(_Reply):
    """One fact, and the numbers of the turns that tell it (L3)."""

    text: CleanText
    category: Category
    confidence: UnitFloat
    entities: Items[CleanText]
    causes: Items[CleanText]
    importance: UnitFloat
    valence: SignedUnitFloat
    turns: Items[int]

    @model_validator(mode="after")
    def _say_something_that_was_said(self) -> Self:
        if not self.text or not self.turns:
            raise ValueError("a fact has words, and turns that tell it")
        return self


class Facts(_Reply):
    """What some turns tell; an empty list says that they tell nothing worth keeping."""

    facts: Items[ToldFact]


class Summary(_Reply):
    """What some turns come down to (R8); blank for small talk."""

    summary: CleanText


FactKind = Literal["factual", "preference", "procedural", "architectural", "insight"]
_PLAIN_KIND, _USUAL_IMPORTANCE, _HIGHEST_IMPORTANCE = "factual", 5, 10


def _as_kind(given: Any) -> Any:
    return given.lower() if isinstance(given, str) and given.lower() in get_args(FactKind) else _PLAIN_KIND


def _as_importance(given: Any) -> int:
    """Clamp a number to 1..10; what is none counts as the usual one."""
    try:
        return min(max(round(float(given)), 1), _HIGHEST_IMPORTANCE)
    except (TypeError, ValueError, OverflowError):
        return _USUAL_IMPORTANCE


class StatedFact(_Reply):
    """One fact of a text (R1); all but its words is forgiven."""

    model_config = ConfigDict(
        strict=True,
        extra="ignore",
        frozen=True,
        populate_by_name=True,
        serialize_by_alias=True,
        json_schema_extra={"additionalProperties": False},
    )

    fact: CleanText
    fact_type: Annotated[FactKind, BeforeValidator(_as_kind)] = Field(default="factual", alias="factType")
    importance: Annotated[int, BeforeValidator(_as_importance)] = _USUAL_IMPORTANCE
    subject: Annotated[CleanText, BeforeValidator(lambda given: given if isinstance(given, str) else "")] = ""


class StatedFacts(_Reply):
    """The facts of a text, most important first; none says that it claims nothing (R1)."""

    facts: Items[StatedFact]

    @model_validator(mode="before")
    @classmethod
    def _take_a_bare_list(cls, given: Any) -> Any:
        return {"facts": given} if isinstance(given, list) else given


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


OTHER = "other"  # the slot of what no slot of the list is about


@cache
def slot_names() -> tuple[str, ...]:
    """Name the slots that a reply may give."""
    return (*slots_by_name(), OTHER)


def _known_slot(given: str) -> str:
    name = given.strip().lower() or OTHER
    if name not in slot_names():
        raise ValueError("unknown slot")
    return name


def _as_words(given: Any) -> Any:
    """Take a number for its digits, and null for nothing: what a value is written as matters to nobody."""
    if given is None:
        return ""
    return str(given) if isinstance(given, int | float) and not isinstance(given, bool) else given


def _date_or_none(given: Any) -> date | None:
    """Read a day; what is none leaves the time open."""
    try:
        return date.fromisoformat(str(given).strip())
    except ValueError:
        return None


Slot = Annotated[str, AfterValidator(_known_slot), WithJsonSchema({"type": "string", "enum": [*slot_names()]})]
LooseText = Annotated[CleanText, BeforeValidator(_as_words)]
OpenDate = Annotated[date | None, BeforeValidator(_date_or_none), WithJsonSchema({"type": "string"})]


class StatedClaim(_Reply):
    """One thing that a message asserts (E1); `n` is the message's number, `used` names others it hangs on."""

    model_config = ConfigDict(
        strict=True, extra="ignore", frozen=True, json_schema_extra={"additionalProperties": False}
    )

    n: int
    claim: CleanText
    subject: CleanText = ""
    slot: Slot = OTHER
    value: LooseText = ""
    context: CleanText = "general"
    denied: bool = False
    mode: Annotated[Mode, BeforeValidator(lambda given: Mode(str(given).strip().lower()))]
    told: bool = False
    ended: Items[CleanText] = []
    since: OpenDate = None
    until: OpenDate = None
    words: CleanText = ""
    used: Items[LooseText] = []

    @model_validator(mode="after")
    def _say_something(self) -> Self:
        if not self.claim:
            raise ValueError("a claim has words")
        return self


class ClaimsReply(_Reply):
    """What some messages assert; an empty list says that they assert nothing."""

    claims: Items[StatedClaim]


Reply = Synthesis | Verdicts | Division | Union | Facts | Summary | StatedFacts | Contradiction | ClaimsReply

SHAPES: dict[Purpose, type[Reply] | type[VerdictLists]] = {
    Purpose.SYNTHESIZE: Synthesis,
    Purpose.CLASSIFY: VerdictLists,
    Purpose.REVISE: Synthesis,
    Purpose.SPLIT: Division,
    Purpose.MERGE: Union,
    Purpose.FACTS: Facts,
    Purpose.SUMMARIZE: Summary,
    Purpose.REMEMBER: StatedFacts,
    Purpose.CONTRADICT: Contradiction,
    Purpose.READ: ClaimsReply,
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
    if isinstance(request, FactsRequest) and isinstance(reply, Facts):
        _check_turn_numbers(request, reply)
    if isinstance(request, ClaimsRequest) and isinstance(reply, ClaimsReply):
        _check_message_labels(request, reply)
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


@cache
def reply_schema(*, purpose: Purpose) -> dict[str, Any]:
    """Return the JSON schema of a reply, in the strict form that servers ask for: every field required."""
    return cast("dict[str, Any]", _require_all(SHAPES[purpose].model_json_schema()))


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


def _check_turn_numbers(request: FactsRequest, reply: Facts) -> None:
    """Refuse facts of turns that nobody showed: what they quote decides whose word they are."""
    unknown = {number for fact in reply.facts for number in fact.turns} - {turn.number for turn in request.turns}
    if unknown:
        raise MalformedReply(f"unknown turn {', '.join(map(str, sorted(unknown)))[:200]}")


def _check_message_labels(request: ClaimsRequest, reply: ClaimsReply) -> None:
    """Refuse claims of messages that were not to be read, or that hang on what nobody showed (E1)."""
    shown = request.labelled()
    told = {str(claim.n) for claim in reply.claims}
    named = {label for claim in reply.claims for label in claim.used}
    unknown = (told - {label for label, message in shown.items() if message.is_read}) | (named - shown.keys())
    if unknown:
        raise MalformedReply(f"unknown message {', '.join(sorted(unknown))[:200]}")


def explain_fault(error: Exception) -> str:
    """Name the first fault without quoting the reply, which may hold anything."""
    if isinstance(error, ValidationError):
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        return f"{'.'.join(str(part) for part in first['loc']) or 'reply'}: {first['type']}"
    return type(error).__name__
