"""The first line of a file: what it is, what its workspace had chosen, and how many rows of each kind follow."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from memory.models import Workspace
from memory.transfer.values import as_json

HEADER = "engram"  # the kind of the first line
VERSION = 1
WORKSPACE_FORMAT = "engram-workspace"
USER_FORMAT = "engram-user"

# What of a workspace its memory hangs on. Its name, its caps and who belongs to it are its own affair.
SETTINGS = ("is_believing", "confidence_model", "counts_origins", "embedding_model")


class Settings(BaseModel):
    """What the workspace had chosen."""

    model_config = ConfigDict(strict=True, extra="forbid")

    is_believing: bool
    confidence_model: Literal["beta", "additive"]
    counts_origins: bool
    embedding_model: Annotated[str, Field(max_length=100)]


class Header(BaseModel):
    """The header of a workspace's file."""

    model_config = ConfigDict(strict=True, extra="forbid")

    format: str
    version: int
    settings: Settings
    erasure_key: str | None
    rows: dict[str, Annotated[int, Field(ge=0)]]


def header_of(*, workspace: Workspace, rows: Mapping[str, int]) -> dict[str, Any]:
    """Return the header of a workspace's file."""
    return {
        "format": WORKSPACE_FORMAT,
        "version": VERSION,
        "settings": {name: getattr(workspace, name) for name in SETTINGS},
        "erasure_key": None if workspace.erasure_key is None else as_json(bytes(workspace.erasure_key)),
        "rows": dict(rows),
    }


def header_of_user(*, user: str, rows: Mapping[str, int]) -> dict[str, Any]:
    """Return the header of a user's file."""
    return {"format": USER_FORMAT, "version": VERSION, "user": user, "rows": dict(rows)}
