"""The numbers of the domain as the environment names them: one setting for each (B24)."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, get_args, get_type_hints

from memory.domain.policy import Policy
from memory.domain.policy_ranges import Range

_SWITCHES = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
_KINDS = {int: "a whole number", float: "a number"}
_ORDERED = (  # stage, and two of its constants of which the first must not exceed the second
    ("budget", "renew_seconds", "lease_seconds"),
    ("budget", "margin_seconds", "last_call_seconds"),
    ("consolidation", "cluster_min", "cluster_max"),
    ("recall", "limit", "max_limit"),
    ("recollection", "tokens", "max_tokens"),
    ("context", "tokens", "max_tokens"),
    ("reflection", "prune_confidence", "stale_confidence"),
    ("remember", "link_from", "link_to"),
    ("rivals", "from_similarity", "to_similarity"),
    ("remember", "contradiction_similarity", "reinforce_similarity"),
)


class PolicyError(ValueError):
    """An environment variable whose value does not parse or makes no sense; the message begins with its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One number of the policy as the environment names it."""

    name: str
    stage: str
    constant: str
    kind: type
    range: Range | None
    default: float | bool
    description: str


def iter_settings() -> Iterator[Setting]:
    """Yield every setting, in the order of the policy's stages."""
    for stage in fields(Policy):
        hints = get_type_hints(stage.type, include_extras=True)
        for constant in fields(getattr(Policy(), stage.name)):
            yield _describe(
                stage=stage.name, constant=constant.name, hint=hints[constant.name], default=constant.default
            )


def policy_from_environment(environ: Mapping[str, str]) -> Policy:
    """Return the policy with every ENGRAM_<STAGE>_<CONSTANT> of `environ` in place of its default."""
    stages: dict[str, dict[str, float | bool]] = {}
    for setting in iter_settings():
        if setting.name in environ:
            value = parse_setting(setting=setting, text=environ[setting.name])
            stages.setdefault(setting.stage, {})[setting.constant] = value
    defaults = Policy()
    policy = Policy(**{name: type(getattr(defaults, name))(**values) for name, values in stages.items()})
    _check_order(policy=policy)
    return policy


def parse_setting(*, setting: Setting, text: str) -> float | bool:
    """Return the value of `text` for a setting, or raise PolicyError with the variable's name."""
    if setting.kind is bool:
        return _parse_switch(name=setting.name, text=text)
    value = _parse_number(setting=setting, text=text)
    if setting.range and not setting.range.low <= value <= setting.range.high:
        raise PolicyError(f"{setting.name}: {text!r} is outside {setting.range.low:g} to {setting.range.high:g}")
    return value


def _check_order(*, policy: Policy) -> None:
    for stage, lesser, greater in _ORDERED:
        low, high = (getattr(getattr(policy, stage), constant) for constant in (lesser, greater))
        if low > high:
            names = [f"ENGRAM_{stage}_{constant}".upper() for constant in (lesser, greater)]
            raise PolicyError(f"{names[0]}: {low} exceeds {names[1]}, which is {high}")


def _parse_switch(*, name: str, text: str) -> bool:
    try:
        return _SWITCHES[text.strip().lower()]
    except KeyError:
        raise PolicyError(f"{name}: {text!r} is neither true nor false") from None


def _parse_number(*, setting: Setting, text: str) -> float:
    try:
        value: float = setting.kind(text)
    except ValueError:
        raise PolicyError(f"{setting.name}: {text!r} is not {_KINDS[setting.kind]}") from None
    if not math.isfinite(value):
        raise PolicyError(f"{setting.name}: {text!r} is not a finite number")
    return value


def _describe(*, stage: str, constant: str, hint: Any, default: Any) -> Setting:
    kind, *notes = get_args(hint)
    return Setting(
        name=f"ENGRAM_{stage}_{constant}".upper(),
        stage=stage,
        constant=constant,
        kind=kind,
        range=next((note for note in notes if isinstance(note, Range)), None),
        default=default,
        description=next(note for note in notes if isinstance(note, str)),
    )
