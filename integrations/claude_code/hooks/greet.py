"""SessionStart: one line on how the memory stands, for the person and for the model."""

from __future__ import annotations

from typing import Any, Mapping, Optional  # noqa: UP035 - for 3.9

from memory_server import ask, detail_of, run_hook, seconds_of

SECONDS = seconds_of("ENGRAM_STATUS_TIMEOUT_MS", default=1000)
_KEY_REFUSED = (401, 403)


def greet(event: Mapping[str, Any]) -> Optional[Mapping[str, Any]]:  # noqa: UP045 - for 3.9
    """Say what is remembered and what waits."""
    status, answer = ask("GET", "/status", seconds=SECONDS)
    if status in _KEY_REFUSED and isinstance(answer, dict):
        return {"systemMessage": f"Engram does not take its key, and remembers nothing: {detail_of(answer)}"}
    if status != 200 or not isinstance(answer, dict):
        return None
    line = _line(answer)
    return {
        "systemMessage": line,
        "hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": line},
    }


def _line(answer: Mapping[str, Any]) -> str:
    episodes, beliefs = answer["episodes"].get("active", 0), answer["beliefs"].get("active", 0)
    told = [f"{episodes} episodes", f"{beliefs} beliefs"]
    if answer.get("pending_episodes"):
        told.append(f"{answer['pending_episodes']} wait for consolidation")
    given_up = answer.get("dead_letters", 0)
    given_up += answer.get("turns", {}).get("dead", 0) + answer.get("remembering", {}).get("failed", 0)
    if given_up:
        told.append(f"{given_up} wait for a person")
    resting = answer.get("pause")
    return f"Engram remembers: {', '.join(told)}." + (f" It rests: {resting['detail']}." if resting else "")


if __name__ == "__main__":
    run_hook(greet, seconds=SECONDS)
