"""UserPromptSubmit: what Engram remembers of the prompt, as context for the model.

Prints one JSON object, as Claude Code reads it; nothing where there is nothing to say or no memory to ask.
"""

from __future__ import annotations

from typing import Any, Mapping, Optional  # noqa: UP035 - for 3.9

from memory_server import ask, own, project_of, run_hook, seconds_of

SECONDS = seconds_of("ENGRAM_RECOLLECTIONS_TIMEOUT_MS", default=250)
_LONGEST = 8000  # characters of a query


def recollect(event: Mapping[str, Any]) -> Optional[Mapping[str, Any]]:  # noqa: UP045 - for 3.9
    """Ask for recollections under the session's name, so that what comes back of them is known as echo."""
    prompt = event.get("prompt")
    if not isinstance(prompt, str) or not prompt.strip() or prompt.lstrip().startswith("/"):
        return None
    query = {"query": prompt.strip()[:_LONGEST], **_session(event), **project_of(event), **own("user")}
    status, answer = ask("POST", "/recollections", query, seconds=SECONDS)
    text = answer.get("text") if status == 200 and isinstance(answer, dict) else None
    if not isinstance(text, str) or not text.strip():
        return None
    return {"hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": text}}


def _session(event: Mapping[str, Any]) -> dict[str, str]:
    session = event.get("session_id")
    return {"session": session} if isinstance(session, str) and session else {}


if __name__ == "__main__":
    run_hook(recollect, seconds=SECONDS)
