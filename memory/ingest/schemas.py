"""Lines as programs send them, checked; and the answers that they get.

`EpisodeLine` and `TurnLine` are the accepted fields; `read_line` and `read_turn` check JSON and raise BadLine with
every reason; `split_line` cuts a text that is too long for one line. IngestContext says where and when lines arrive,
Stored or Rejected what became of each.
"""

import hashlib
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal, Self, TypeVar

from django.conf import settings
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from memory.access import actor_of_key, allowed_projects
from memory.domain.identity import Actor, ActorKind
from memory.domain.lifecycle import ConsolidationState, EpisodeStatus
from memory.domain.taxonomy import Category
from memory.language.sentences import split_text
from memory.models import ApiKey, Workspace
from memory.models.fields import new_episode_id
from memory.redaction.redact import has_known_secret
from memory.redaction.service import redact_name

INGEST = settings.POLICY.ingest
_TOO_LONG = "text_too_long"
_MOST_REASONS = 20
_RFC_3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)?", re.ASCII)
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_SLUG_PATTERN = r"^[-\w]+$"
_LANGUAGE_PATTERN = r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$"

# What is wrong, in words of JSON, by the checker's name for it; of a pattern, by the pattern.
_WORDS = {
    "missing": "This field is required.",
    "extra_forbidden": "There is no such field.",
    "string_type": "A text is expected.",
    "list_type": "A list is expected.",
    "float_type": "A number is expected.",
    "finite_number": "A number from 0 to 1 is expected.",
    "greater_than_equal": "A number from 0 to 1 is expected.",
    "less_than_equal": "A number from 0 to 1 is expected.",
    "string_too_short": "It is empty.",
    "string_too_long": "At most {max_length} characters are allowed.",
    "too_long": "At most {max_length} are allowed.",
    "literal_error": "One of these is expected: {expected}.",
    _SLUG_PATTERN: "One or more letters, digits, - and _ are expected.",
    _LANGUAGE_PATTERN: "A language is expected, such as en or de-AT.",
}

_LONGEST_NAME = 200  # characters of a turn_id or an idempotency_key


class BadLine(ValueError):
    """A line that is refused, with the status that HTTP has for it and the reasons by field."""

    def __init__(self, *, status: int, detail: str, errors: Mapping[str, list[str]]) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.errors = errors


def _refuse_unstorable(text: str) -> str:
    if _UNSTORABLE.search(text):
        raise PydanticCustomError("unstorable", "NUL and halves of surrogate pairs are not allowed.")
    return text


def _refuse_secret(slug: str) -> str:
    """Refuse what nobody meant as a name: a slug is kept as it is sent, and stands in lists for all to see."""
    if has_known_secret(slug):
        raise PydanticCustomError("secret", "This looks like a key or a token, which must not name a project.")
    return slug


def _read_time(value: object) -> object:
    """Turn an RFC 3339 time into a moment of UTC."""
    if value is None:
        return None
    if not isinstance(value, str) or not _RFC_3339.fullmatch(value):
        raise PydanticCustomError("time", "A time as RFC 3339 has it is expected, such as 2026-03-01T12:00:00Z.")
    if value[-1] not in "zZ" and value[-6] not in "+-":
        raise PydanticCustomError("naive_time", "The time needs an offset, such as Z or +01:00.")
    try:
        return datetime.fromisoformat(value.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        raise PydanticCustomError("time", "There is no such time.") from None


def _refuse_far_future(moment: datetime | None, info: ValidationInfo) -> datetime | None:
    latest = (info.context or {})["now"] + timedelta(days=settings.POLICY.ingest.future_days)
    if moment is not None and moment > latest:
        raise PydanticCustomError("future", "The time lies too far in the future.")
    return moment


def _check_text(text: str) -> str:
    if not text.strip():
        raise PydanticCustomError("empty", "The text is empty.")
    most = settings.POLICY.ingest.text_bytes
    if len(text.encode()) > most:
        raise PydanticCustomError(_TOO_LONG, "The text is longer than {most} bytes.", {"most": most})
    return text


def _check_category(name: str) -> str:
    if name and name not in set(Category):
        raise PydanticCustomError("category", "One of these is expected: {names}.", {"names": ", ".join(Category)})
    return name


def _main_language(tag: str) -> str:
    """Keep the language of a tag such as de-AT."""
    return tag.partition("-")[0].lower()


Line = TypeVar("Line", bound="EpisodeLine")
STORABLE = AfterValidator(_refuse_unstorable)
Name = Annotated[str, Field(max_length=200), STORABLE]
Slug = Annotated[str, Field(max_length=100, pattern=_SLUG_PATTERN), STORABLE, AfterValidator(_refuse_secret)]
Entity = Annotated[str, Field(min_length=1, max_length=200), STORABLE]
_SLUG: TypeAdapter[str] = TypeAdapter(Slug)
Tag = Annotated[str, Field(min_length=1, max_length=100), STORABLE]
Language = Annotated[str, Field(max_length=35, pattern=_LANGUAGE_PATTERN), AfterValidator(_main_language)]
Time = Annotated[datetime, BeforeValidator(_read_time, json_schema_input_type=datetime)]
PastTime = Annotated[Time | None, AfterValidator(_refuse_far_future)]
Text = Annotated[str, STORABLE, AfterValidator(_check_text)]
Key = Annotated[str, Field(min_length=1, max_length=200), STORABLE]


class EpisodeLine(BaseModel):
    """One thing that happened or was said. All but the text may be left out, or null."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    text: Text
    project: Slug | None = None
    user: Name | None = None
    agent: Name | None = None
    session: Name | None = None
    document: Annotated[str, Field(max_length=400), STORABLE] | None = None
    speaker: Name | None = None
    source: Literal["human", "ai", "interaction", "ingest"] | None = None
    occurred_at: PastTime = None
    valid_until: Time | None = None
    entities: Annotated[list[Entity], Field(max_length=INGEST.entities)] | None = None
    category: Annotated[str, AfterValidator(_check_category)] | None = None
    importance: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] | None = None
    tags: Annotated[list[Tag], Field(max_length=INGEST.tags)] | None = None
    language: Language | None = None
    idempotency_key: Key | None = None

    def fingerprint(self) -> str:
        """Return the SHA-256 of the line's canonical JSON: keys sorted, what was left out or null not there."""
        return fingerprint(self.model_dump(mode="json", exclude_none=True))


def fingerprint(given: Mapping[str, object]) -> str:
    """Return the SHA-256 of an object's canonical JSON."""
    canonical = json.dumps(given, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


class ExtractedLine(EpisodeLine):
    """A line made of turns; what it has beside an episode line is no caller's to send."""

    confidence: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] | None = None
    is_derived: bool = False


def read_line(*, raw: object, now: datetime) -> EpisodeLine:
    """Check one line as JSON gave it; raise BadLine with every reason."""
    return _read(EpisodeLine, raw, now)


def read_extracted_line(*, raw: object, now: datetime) -> ExtractedLine:
    """Check a line made of turns; raise BadLine with every reason."""
    return _read(ExtractedLine, raw, now)


def _read(kind: type[Line], raw: object, now: datetime) -> Line:
    if not isinstance(raw, dict):
        raise BadLine(status=422, detail="An episode is a JSON object.", errors={})
    try:
        return kind.model_validate(raw, context={"now": now})
    except ValidationError as error:
        raise bad_line(error.errors(include_url=False, include_input=False)) from None


def is_slug(text: str) -> bool:
    """Tell whether a text can name a project."""
    try:
        return bool(_SLUG.validate_python(text))
    except ValidationError:
        return False


def bad_line(reasons: list[ErrorDetails]) -> BadLine:
    """Say in words what a checker found wrong with a line."""
    errors: dict[str, list[str]] = {}
    for reason in reasons[:_MOST_REASONS]:
        errors.setdefault(_field_name(reason), []).append(_in_words(reason))
    is_too_long = any(reason["type"] == _TOO_LONG for reason in reasons)
    detail = "; ".join(f"{field}: {words}" for field, all_words in errors.items() for words in all_words)
    return BadLine(status=413 if is_too_long else 422, detail=detail, errors=errors)


def _in_words(reason: ErrorDetails) -> str:
    context = reason.get("ctx", {})
    words = _WORDS.get(reason["type"]) or _WORDS.get(context.get("pattern", "")) or reason["msg"]
    return words.format_map(context) if reason["type"] in _WORDS else words


def _field_name(reason: ErrorDetails) -> str:
    """Name the field in characters that can be sent back."""
    name = ".".join(str(part) for part in reason["loc"])
    return name[:100].encode("utf-8", "replace").decode() or "line"


class TurnLine(BaseModel):
    """What one side of a conversation said. Session, role and content are needed; the rest may be left out, or null."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    session: Key
    role: Literal["user", "assistant", "system", "tool"]
    content: Text
    turn_id: Key | None = None
    project: Slug | None = None
    user: Name | None = None
    speaker: Name | None = None
    occurred_at: PastTime = None

    def fingerprint(self) -> str:
        """Return the SHA-256 of the line's canonical JSON.

        Asked of a redacted line: of what was taken out not even a hash is kept, for a card number could be found by
        trying all.
        """
        return fingerprint(self.model_dump(mode="json", exclude_none=True))


def read_turn(*, raw: object, now: datetime) -> TurnLine:
    """Check one turn as JSON gave it; raise BadLine with every reason."""
    if not isinstance(raw, dict):
        raise BadLine(status=422, detail="A turn is a JSON object.", errors={})
    try:
        return TurnLine.model_validate(raw, context={"now": now})
    except ValidationError as error:
        raise bad_line(error.errors(include_url=False, include_input=False)) from None


def split_line(*, line: Mapping[str, object], text: str, name: str) -> list[Mapping[str, object]]:
    """Return a line once for each part of its text; as it is if that is short enough, or no text.

    `text` and `name` are fields: what is split, and what a line is known by. Parts have names made of the whole's, so
    that they are the same when they are sent again. What is blank is no part: nothing was said.
    """
    whole, known_by = line.get(text), line.get(name)
    parts = split_text(text=whole, longest=settings.POLICY.ingest.text_bytes) if isinstance(whole, str) else []
    if len(parts) < 2:
        return [line]
    said: list[Mapping[str, object]] = [{**line, text: part} for part in parts if part.strip()]
    if isinstance(known_by, str) and known_by:
        said = [{**part, name: name_part(whole=known_by, number=number)} for number, part in enumerate(said, start=1)]
    return said or [line]


def name_part(*, whole: str, number: int) -> str:
    """Name a part; the first has the name of the whole."""
    suffix = "" if number == 1 else f":{number}"
    if len(whole) + len(suffix) <= _LONGEST_NAME:
        return f"{whole}{suffix}"
    return f"{_digest(redact_name(whole).text)}{suffix}"


def document_of(text: str) -> str:
    """Name the document that a text's parts are of, where nothing else says that they belong together."""
    return f"text:{_digest(text)[:32]}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


_IMPORT = Actor(kind=ActorKind.COMMAND, name="import_episodes")


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestContext:
    """Where and when lines arrive, and what holds for those that do not say otherwise."""

    workspace: Workspace
    now: datetime
    allowed_projects: Collection[int] | None = None  # None: the caller's key has no limit
    default_project: str | None = None
    file_name: str = ""
    actor: Actor = _IMPORT
    is_replay: bool = False  # stored at the time at which it happened, and waking nobody

    @classmethod
    def of_key(cls, *, key: ApiKey, now: datetime) -> Self:
        """Return what the holder of a key sends in."""
        return cls(
            workspace=key.workspace, now=now, allowed_projects=allowed_projects(key), actor=actor_of_key(key=key)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """An episode that stands for a line: a new one, or the one that was there already."""

    id: str
    is_duplicate: bool
    is_forgotten: bool = False  # it was forgotten, and stays so: nothing of the line can be recalled


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """Why a line was not stored: a status as HTTP has it, and reasons by field."""

    status: int
    detail: str
    errors: Mapping[str, list[str]] = field(default_factory=dict)

    @classmethod
    def for_line(cls, bad: BadLine) -> Self:
        """Answer a line that could not be read."""
        return cls(status=bad.status, detail=bad.detail, errors=bad.errors)


ERASED = Rejected(status=409, detail="These words were erased from this memory, and are not taken again.")  # L4
Outcome = Stored | Rejected


@dataclass(kw_only=True)
class Draft:
    """What an episode's columns will hold, but for those that the database fills in.

    An instance of the model takes forty times as long to make.
    """

    id: str = field(default_factory=new_episode_id)
    workspace_id: int
    project_id: int | None
    user: str
    agent: str
    session: str
    document: str
    speaker: str
    source: str
    language: str
    text: str
    summary: str = ""
    entities: list[str]
    tags: list[str]
    category: str
    importance: float
    valence: float = 0.0
    confidence: float | None = None
    causes: list[str] = field(default_factory=list)
    origin: str
    content_hash: str
    idempotency_key: str | None
    line_hash: str
    is_derived: bool = False
    status: str = EpisodeStatus.ACTIVE
    state: str = ConsolidationState.NEW
    state_reason: str = ""
    failures: int = 0
    number: int = 0
    created_at: datetime
    occurred_at: datetime
    valid_until: datetime | None
