"""What a language model may answer, and nothing else."""

import re
from collections import Counter
from datetime import date
from functools import cache
from typing import Annotated, Any, Literal, Self, cast, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from memory.domain.category import Category
from memory.domain.statements import Timeframe
from memory.domain.verdicts import Verdict
from memory.language.modes import Mode
from memory.language.slots import list_slots
from memory.llm.requests import ClaimsRequest, ClassificationRequest, FactsRequest, Purpose, Request

CODE_FENCE = re.compile(r"\A\s*```[a-z]*\s*\n(.*?)\n?\s*```\s*\Z", re.DOTALL | re.IGNORECASE)


PARTS = 2


class MalformedReply(ValueError):
    """A reply that cannot be read as an answer to its request."""


def _clean(text: str) -> str:
    """Drop what PostgreSQL's text cannot hold, though JSON can spell it: a stored reply must stay usable."""
    return text.replace("\0", "").strip()


def _between(low: float, high: float) -> AfterValidator:
    """Clamp a number: a model that says 1.2 means much, and no reply is worth refusing for it."""
    return AfterValidator(lambda number: min(max(number, low), high))


Words = Annotated[str, AfterValidator(_clean)]
Share = Annotated[float, Field(allow_inf_nan=False), _between(0.0, 1.0)]
Balance = Annotated[float, Field(allow_inf_nan=False), _between(-1.0, 1.0)]


class _Reply(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Synthesis(_Reply):
    """One falsifiable sentence and its parts (B10); a blank statement says that none can be made."""

    statement: Words
    subject: Words
    predicate: Words
    context: Words = "general"
    timeframe: Timeframe

    @model_validator(mode="after")
    def _describe_what_is_stated(self) -> Self:
        if self.statement and not (self.subject and self.predicate and self.context):
            raise ValueError("a statement needs a subject, a predicate and a context")
        return self


class EpisodeVerdict(_Reply):
    """What one episode says about the belief, and why."""

    id: str
    verdict: Verdict
    reason: Words


class Verdicts(_Reply):
    """One verdict for each episode that was asked about (B11)."""

    verdicts: list[EpisodeVerdict]


class Division(_Reply):
    """Two statements, each with its own context (B12); none says that the belief cannot be divided."""

    parts: list[Synthesis]

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
    statement: Words
    subject: Words
    predicate: Words
    context: Words = "general"
    timeframe: Timeframe

    @model_validator(mode="after")
    def _describe_what_is_stated(self) -> Self:
        if self.same and self.statement and not (self.subject and self.predicate and self.context):
            raise ValueError("a statement needs a subject, a predicate and a context")
        return self


class ToldFact(_Reply):
    """One fact, and the numbers of the turns that tell it (L3)."""

    text: Words
    category: Category
    confidence: Share
    entities: list[Words]
    causes: list[Words]
    importance: Share
    valence: Balance
    turns: list[int]

    @model_validator(mode="after")
    def _say_something_that_was_said(self) -> Self:
        if not self.text or not self.turns:
            raise ValueError("a fact has words, and turns that tell it")
        return self


class Facts(_Reply):
    """What some turns tell; an empty list says that they tell nothing worth keeping."""

    facts: list[ToldFact]


class Summary(_Reply):
    """What some turns come down to (R8); blank for small talk."""

    summary: Words


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

    fact: Words
    fact_type: Annotated[FactKind, BeforeValidator(_as_kind)] = Field(default="factual", alias="factType")
    importance: Annotated[int, BeforeValidator(_as_importance)] = _USUAL_IMPORTANCE
    subject: Annotated[Words, BeforeValidator(lambda given: given if isinstance(given, str) else "")] = ""


class StatedFacts(_Reply):
    """The facts of a text, most important first; none says that it claims nothing (R1)."""

    facts: list[StatedFact]

    @model_validator(mode="before")
    @classmethod
    def _take_a_bare_list(cls, given: Any) -> Any:
        return {"facts": given} if isinstance(given, list) else given


class Contradiction(_Reply):
    """The number of the belief that a fact contradicts, from 1; None for none (R3)."""

    contradicts: int | None
    reason: Words = ""


OTHER = "other"  # the slot of what no slot of the list is about


@cache
def slot_names() -> tuple[str, ...]:
    """Name the slots that a reply may give."""
    return (*(slot.name for slot in list_slots()), OTHER)


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


def _as_day(given: Any) -> date | None:
    """Read a day; what is none leaves the time open."""
    try:
        return date.fromisoformat(str(given).strip())
    except ValueError:
        return None


Slot = Annotated[str, AfterValidator(_known_slot), WithJsonSchema({"type": "string", "enum": [*slot_names()]})]
Loose = Annotated[Words, BeforeValidator(_as_words)]
Day = Annotated[date | None, BeforeValidator(_as_day), WithJsonSchema({"type": "string"})]


class StatedClaim(_Reply):
    """One thing that a message asserts (E1); `n` is the message's number, `used` names others it hangs on."""

    model_config = ConfigDict(
        strict=True, extra="ignore", frozen=True, json_schema_extra={"additionalProperties": False}
    )

    n: int
    claim: Words
    subject: Words = ""
    slot: Slot = OTHER
    value: Loose = ""
    context: Words = "general"
    denied: bool = False
    mode: Annotated[Mode, BeforeValidator(lambda given: Mode(str(given).strip().lower()))]
    told: bool = False
    ended: list[Words] = []
    since: Day = None
    until: Day = None
    words: Words = ""
    used: list[Loose] = []

    @model_validator(mode="after")
    def _say_something(self) -> Self:
        if not self.claim:
            raise ValueError("a claim has words")
        return self


class ClaimsReply(_Reply):
    """What some messages assert; an empty list says that they assert nothing."""

    claims: list[StatedClaim]


Reply = Synthesis | Verdicts | Division | Union | Facts | Summary | StatedFacts | Contradiction | ClaimsReply
SHAPES: dict[Purpose, type[Reply]] = {
    Purpose.SYNTHESIZE: Synthesis,
    Purpose.CLASSIFY: Verdicts,
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
    fenced = CODE_FENCE.match(raw_text)
    try:
        reply = SHAPES[request.purpose].model_validate_json(fenced[1] if fenced else raw_text)
    except (ValidationError, ValueError) as error:
        raise MalformedReply(_explain(error)) from error
    if isinstance(request, ClassificationRequest) and isinstance(reply, Verdicts):
        _check_ids(request, reply)
    if isinstance(request, FactsRequest) and isinstance(reply, Facts):
        _check_numbers(request, reply)
    if isinstance(request, ClaimsRequest) and isinstance(reply, ClaimsReply):
        _check_labels(request, reply)
    return reply


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


def _check_ids(request: ClassificationRequest, reply: Verdicts) -> None:
    asked = {episode.id for episode in request.episodes}
    answered = Counter(verdict.id for verdict in reply.verdicts)
    problems = {
        "unknown id": answered.keys() - asked,
        "missing id": asked - answered.keys(),
        "duplicate id": {name for name, times in answered.items() if times > 1},
    }
    found = [f"{problem} {', '.join(sorted(ids))[:200]}" for problem, ids in problems.items() if ids]
    if found:
        raise MalformedReply("; ".join(found))


def _check_numbers(request: FactsRequest, reply: Facts) -> None:
    """Refuse facts of turns that nobody showed: what they quote decides whose word they are."""
    unknown = {number for fact in reply.facts for number in fact.turns} - {turn.number for turn in request.turns}
    if unknown:
        raise MalformedReply(f"unknown turn {', '.join(map(str, sorted(unknown)))[:200]}")


def _check_labels(request: ClaimsRequest, reply: ClaimsReply) -> None:
    """Refuse claims of messages that were not to be read, or that hang on what nobody showed (E1)."""
    shown = request.labelled()
    told = {str(claim.n) for claim in reply.claims}
    named = {label for claim in reply.claims for label in claim.used}
    unknown = (told - {label for label, message in shown.items() if message.is_read}) | (named - shown.keys())
    if unknown:
        raise MalformedReply(f"unknown message {', '.join(sorted(unknown))[:200]}")


def _explain(error: Exception) -> str:
    """Name the first fault without quoting the reply, which may hold anything."""
    if isinstance(error, ValidationError):
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        return f"{'.'.join(str(part) for part in first['loc']) or 'reply'}: {first['type']}"
    return type(error).__name__
