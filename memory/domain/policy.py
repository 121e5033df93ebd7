"""Every number of the domain, gathered from its stages, and how the environment sets it.

The stages stand by theme in `policy_beliefs`, `policy_consolidation`, `policy_memories` and `policy_recall`. A field's
annotation says all there is to know about a number: its type, its sane range, its environment variable, and one line
with the id of the rule it belongs to. `policy_from_environment`, the checks and the pages take them from there (B24).
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, get_args, get_type_hints

from memory.domain.policy_beliefs import (
    AdditivePolicy,
    ConfidencePolicy,
    ContradictionPolicy,
    DestabilizationPolicy,
    GatePolicy,
    PublishingPolicy,
    ReflectionPolicy,
    RestructurePolicy,
    StrengthPolicy,
)
from memory.domain.policy_consolidation import BudgetPolicy, CalibrationPolicy, ClusteringPolicy, ConsolidationPolicy
from memory.domain.policy_memories import (
    BoxPolicy,
    ExtractionPolicy,
    GraphPolicy,
    IngestPolicy,
    MaintenancePolicy,
    ReadingPolicy,
    RememberPolicy,
    SurprisePolicy,
    TrustPolicy,
    TurnsPolicy,
)
from memory.domain.policy_ranges import Range
from memory.domain.policy_recall import (
    AssociativePolicy,
    ContextPolicy,
    FeedbackPolicy,
    LifecyclePolicy,
    RecallPolicy,
    RecollectionPolicy,
    RelevancePolicy,
    ThrottlePolicy,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """All stages together; `Policy()` holds the defaults."""

    confidence: ConfidencePolicy = ConfidencePolicy()
    strength: StrengthPolicy = StrengthPolicy()
    destabilization: DestabilizationPolicy = DestabilizationPolicy()
    calibration: CalibrationPolicy = CalibrationPolicy()
    clustering: ClusteringPolicy = ClusteringPolicy()
    consolidation: ConsolidationPolicy = ConsolidationPolicy()
    budget: BudgetPolicy = BudgetPolicy()
    gate: GatePolicy = GatePolicy()
    additive: AdditivePolicy = AdditivePolicy()
    restructure: RestructurePolicy = RestructurePolicy()
    ingest: IngestPolicy = IngestPolicy()
    extraction: ExtractionPolicy = ExtractionPolicy()
    reading: ReadingPolicy = ReadingPolicy()
    surprise: SurprisePolicy = SurprisePolicy()
    trust: TrustPolicy = TrustPolicy()
    turns: TurnsPolicy = TurnsPolicy()
    recall: RecallPolicy = RecallPolicy()
    throttle: ThrottlePolicy = ThrottlePolicy()
    associative: AssociativePolicy = AssociativePolicy()
    lifecycle: LifecyclePolicy = LifecyclePolicy()
    feedback: FeedbackPolicy = FeedbackPolicy()
    relevance: RelevancePolicy = RelevancePolicy()
    recollection: RecollectionPolicy = RecollectionPolicy()
    graph: GraphPolicy = GraphPolicy()
    box: BoxPolicy = BoxPolicy()
    maintenance: MaintenancePolicy = MaintenancePolicy()
    remember: RememberPolicy = RememberPolicy()
    context: ContextPolicy = ContextPolicy()
    reflection: ReflectionPolicy = ReflectionPolicy()
    contradiction: ContradictionPolicy = ContradictionPolicy()
    publishing: PublishingPolicy = PublishingPolicy()


_SWITCHES = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
_KINDS = {int: "a whole number", float: "a number"}

_ORDERED = (  # two variables of which the first must not exceed the second
    ("ENGRAM_BUDGET_RENEW_SECONDS", "ENGRAM_BUDGET_LEASE_SECONDS"),
    ("ENGRAM_BUDGET_MARGIN_SECONDS", "ENGRAM_BUDGET_LAST_CALL_SECONDS"),
    ("ENGRAM_CONSOLIDATION_CLUSTER_MIN", "ENGRAM_CONSOLIDATION_CLUSTER_MAX"),
    ("ENGRAM_RECALL_LIMIT", "ENGRAM_RECALL_MAX_LIMIT"),
    ("ENGRAM_RECOLLECTION_TOKENS", "ENGRAM_RECOLLECTION_MAX_TOKENS"),
    ("ENGRAM_CONTEXT_TOKENS", "ENGRAM_CONTEXT_MAX_TOKENS"),
    ("ENGRAM_REFLECTION_PRUNE_CONFIDENCE", "ENGRAM_REFLECTION_STALE_CONFIDENCE"),
    ("ENGRAM_PUBLISHING_REMOVAL_CONFIDENCE", "ENGRAM_PUBLISHING_CONFIDENCE"),
    ("ENGRAM_REMEMBER_LINK_FROM", "ENGRAM_REMEMBER_LINK_TO"),
    ("ENGRAM_CONTRADICTION_FROM_SIMILARITY", "ENGRAM_CONTRADICTION_TO_SIMILARITY"),
)

FORMER_NAMES = {  # what variables were called in earlier releases, and are called now; both are read
    "ENGRAM_RETRIEVAL_DECAY_DAYS": "ENGRAM_STRENGTH_DECAY_DAYS",
    "ENGRAM_RETRIEVAL_UNREAD_STRENGTH": "ENGRAM_STRENGTH_UNREAD_STRENGTH",
    "ENGRAM_RETRIEVAL_INITIAL_STABILITY": "ENGRAM_STRENGTH_INITIAL_STABILITY",
    "ENGRAM_RETRIEVAL_STABILITY_GROWTH": "ENGRAM_STRENGTH_STABILITY_GROWTH",
    "ENGRAM_RETRIEVAL_STABILITY_CAP": "ENGRAM_STRENGTH_STABILITY_CAP",
    "ENGRAM_RIVALS_FROM_SIMILARITY": "ENGRAM_CONTRADICTION_FROM_SIMILARITY",
    "ENGRAM_RIVALS_TO_SIMILARITY": "ENGRAM_CONTRADICTION_TO_SIMILARITY",
    "ENGRAM_RIVALS_PAIRS": "ENGRAM_CONTRADICTION_PAIRS",
    "ENGRAM_RIVALS_BATCH": "ENGRAM_CONTRADICTION_BATCH",
    "ENGRAM_RIVALS_CHECK_SECONDS": "ENGRAM_CONTRADICTION_CHECK_SECONDS",
}
_FORMER_NAME_OF = {name: former for former, name in FORMER_NAMES.items()}


class PolicyError(ValueError):
    """An environment variable whose value does not parse or makes no sense; the message begins with its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One number of the policy, by the variable that its annotation names."""

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
    """Return the policy with each number that `environ` sets in place of its default."""
    stages: dict[str, dict[str, float | bool]] = {}
    for setting in iter_settings():
        value = _read_setting(setting=setting, environ=environ)
        if value is not None:
            stages.setdefault(setting.stage, {})[setting.constant] = value
    policy = Policy(**{stage: replace(getattr(Policy(), stage), **values) for stage, values in stages.items()})
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


def _read_setting(*, setting: Setting, environ: Mapping[str, str]) -> float | bool | None:
    """Return what its name or its former one says, None where that is empty; raise PolicyError if the two disagree."""
    names = [name for name in (setting.name, _FORMER_NAME_OF.get(setting.name, "")) if environ.get(name, "").strip()]
    values = [parse_setting(setting=replace(setting, name=name), text=environ[name]) for name in names]
    if len(set(values)) > 1:
        raise PolicyError(
            f"{setting.name}: {values[0]} contradicts {names[1]}, its former name, which is {values[1]}; leave that out"
        )
    return values[0] if values else None


def _check_order(*, policy: Policy) -> None:
    values = {setting.name: getattr(getattr(policy, setting.stage), setting.constant) for setting in iter_settings()}
    for lesser, greater in _ORDERED:
        if values[lesser] > values[greater]:
            raise PolicyError(f"{lesser}: {values[lesser]} exceeds {greater}, which is {values[greater]}")


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
    name, description = (note for note in notes if isinstance(note, str))
    return Setting(
        name=name,
        stage=stage,
        constant=constant,
        kind=kind,
        range=next((note for note in notes if isinstance(note, Range)), None),
        default=default,
        description=description,
    )
