"""SessionStart: the most trusted beliefs at the top of the file that ENGRAM_MEMORY_MD names.

Off where that variable is not set. Nothing is printed. What was written last is noted with its ETag, so that a section
that is still there, and still right, is not fetched again.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Any, Mapping, Optional  # noqa: UP035 - for 3.9
from urllib.parse import quote

from client_state import state_file, write_state
from memory_server import BEGAN, Unusable, detail_of, folder_of, own, project_of, run_hook, seconds_of, send
from memory_server import note as say
from person_file import digest, opened_file

SECONDS = seconds_of("ENGRAM_STATUS_TIMEOUT_MS", default=1000)


def keep_section(event: Mapping[str, Any]) -> None:
    """Ask for the section, unless the file holds what came last and nothing changed, and put it in."""
    named = os.environ.get("ENGRAM_MEMORY_MD", "").strip()
    if not named:
        return
    path = Path(folder_of(event), Path(named).expanduser())
    if not path.is_absolute():
        raise Unusable("ENGRAM_MEMORY_MD is below a session's folder, and no folder was told")
    address, ends_at = _address(event), BEGAN + SECONDS
    state = state_file(str(path), address)
    found, etag = None, ""
    with suppress(FileNotFoundError), opened_file(path, ends_at=ends_at) as file:
        found = file.read()
        etag = "" if file.leftovers() else _etag_of(state, found or b"")
    answer = _fetch(address, etag=etag)
    if answer is None or (found is None and not answer[0]):
        return
    section, etag = answer
    with opened_file(path, ends_at=ends_at, is_made=True) as file:
        written = file.change(lambda old: put_section(old, section))
    write_state(state, {"etag": etag, "holds": digest(_own_part(written))})


def _address(event: Mapping[str, Any]) -> str:
    project, user = project_of(event).get("project"), own("user").get("user")
    within = f"/projects/{quote(project, safe='')}" if project else ""
    return f"{within}/memory.md" + (f"?user={quote(user, safe='')}" if user else "")


def _fetch(address: str, *, etag: str) -> Optional[tuple[bytes, str]]:  # noqa: UP045 - for 3.9
    """Return a section with its ETag; None where nothing changed, or the answer is none to write down."""
    status, headers, content = send("GET", address, etag=etag, seconds=SECONDS)
    if status == 404 and _names_no_project(content):
        return b"", ""  # of what nothing is known nothing is believed
    if status == 304:
        return None
    is_whole = headers.get("content-length", str(len(content))) == str(len(content))
    is_section = headers.get("content-type", "").startswith("text/markdown") and not take_section(content)
    if status == 200 and is_whole and is_section:
        return content, headers.get("etag", "")
    say(f"GET {address}: {status} {detail_of(_problem(content)) or 'no section'}")
    return None


def _names_no_project(content: bytes) -> bool:
    return "project" in (_problem(content).get("errors") or ())


def _problem(content: bytes) -> Mapping[str, Any]:
    try:
        problem = json.loads(content)
    except ValueError:
        return {}
    return problem if isinstance(problem, dict) else {}


def _etag_of(state: Path, content: bytes) -> str:
    """Return the ETag of the section that a file holds; nothing where it is not the one that was written."""
    try:
        noted = json.loads(state.read_bytes())
        etag, is_held = str(noted["etag"]), noted["holds"] == digest(_own_part(content))
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    return etag if is_held and etag.isascii() and etag.isprintable() else ""


# --- The section within the file, by the rules of the server's memory/publishing/section.py

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_BEGIN, _END = b"<!-- ENGRAM:BELIEFS:BEGIN -->", b"<!-- ENGRAM:BELIEFS:END -->"
_SECTION = re.compile(
    rb"^%b[ \t]*\r?\n(?P<between>(?:(?!%b[ \t]*\r?$).)*?)^%b[ \t]*\r?(?:\n|\Z)" % (_BEGIN, _BEGIN, _END),
    re.MULTILINE | re.DOTALL,
)


def put_section(content: bytes, section: bytes) -> bytes:
    """Return a file's bytes with a section at their top instead of any that was in them."""
    mark, body = _split_mark(take_section(content))
    ending = b"\r\n" if body.partition(b"\n")[0].endswith(b"\r") else b"\n"
    return mark + section.replace(b"\n", ending) + body


def take_section(content: bytes) -> bytes:
    """Return a file's bytes without our section; a marker without its other half is none, and stays.

    Two markers that would become a pair by what is taken from between them go, and the text between them stays.
    """
    mark, body = _split_mark(content)
    body = _SECTION.sub(b"", body)
    while (freed := _SECTION.sub(rb"\g<between>", body)) != body:
        body = freed
    return mark + body


def _own_part(content: bytes) -> bytes:
    """Return as many bytes from the top as are ours: the section, where that is in its place."""
    body = _split_mark(content)[1]
    return body[: len(content) - len(take_section(content))]


def _split_mark(content: bytes) -> tuple[bytes, bytes]:
    size = len(_BYTE_ORDER_MARK) if content.startswith(_BYTE_ORDER_MARK) else 0
    return content[:size], content[size:]


if __name__ == "__main__":
    run_hook(keep_section, seconds=SECONDS)
