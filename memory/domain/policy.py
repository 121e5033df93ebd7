"""Every number of the domain, one frozen dataclass a stage, and how the environment sets it.

`Policy` gathers all stages; those of memories (ingest, recall, graph) stand in `policy_memories`. A field's annotation
says all there is to know about it: its type, its sane range, and one line with the id of the rule it belongs to.
`.env.example` and `policy_from_environment` take them from there (B24). At the end, the time limits that follow (B9).
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Annotated, Any, get_args, get_type_hints

from memory.domain.policy_memories import (
    Amount,
    AssociativePolicy,
    BoxPolicy,
    ContextPolicy,
    ContradictionPolicy,
    Count,
    ExtractionPolicy,
    FeedbackPolicy,
    GraphPolicy,
    IngestPolicy,
    LifecyclePolicy,
    MaintenancePolicy,
    Positive,
    Range,
    ReadingPolicy,
    RecallPolicy,
    RecollectionPolicy,
    ReflectionPolicy,
    RelevancePolicy,
    RememberPolicy,
    Share,
    SurprisePolicy,
    ThrottlePolicy,
    TrustPolicy,
    TurnsPolicy,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfidencePolicy:
    """How evidence becomes a confidence."""

    prior_alpha: Annotated[Positive, "B4: α of a belief without evidence"] = 1.0
    prior_beta: Annotated[Positive, "B4: β of a belief without evidence"] = 1.0
    partial_share: Annotated[Share, "B4: share of a PARTIAL verdict that goes to each side"] = 0.5
    ordinary_weight: Annotated[Positive, "B4: base weight of an ordinary evidence row"] = 1.0
    curator_weight: Annotated[Positive, "B4: base weight of a curator's correction"] = 5.0
    announced_weight: Annotated[Positive, "C1: base weight against a belief of an announced change"] = 3.0
    independence: Annotated[bool, "B4: the n-th row of one verdict from one origin weighs 1/n"] = True
    interval_mass: Annotated[Share, "B4: share of the posterior that the shown interval holds"] = 0.90


@dataclass(frozen=True, slots=True, kw_only=True)
class StrengthPolicy:
    """How a belief fades when nobody asks for it."""

    decay_days: Annotated[Positive, "B5: days after which strength falls to 1/e, at stability 1"] = 7.0
    unread_strength: Annotated[Share, "B5: strength of a belief just created and never accessed"] = 0.5
    initial_stability: Annotated[Positive, "B5: stability of a new belief"] = 1.0
    stability_growth: Annotated[Amount, "B5: growth of stability on access, per log day waited"] = 0.1
    stability_cap: Annotated[Positive, "B5: greatest stability"] = 365.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DestabilizationPolicy:
    """When contradictions open a belief for revision."""

    threshold_scale: Annotated[Amount, "B6: factor of ln(1+evidence)·ln(1+age in days)"] = 0.3
    threshold_cap: Annotated[Positive, "B6: greatest threshold of the prediction error"] = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationPolicy:
    """Where labelled pairs lie on the reference scale of similarity."""

    unrelated_median: Annotated[Share, "B8a: reference of the median of unrelated pairs"] = 0.20
    unrelated_top: Annotated[Share, "B8a: reference of the upper quantile of unrelated pairs"] = 0.60
    unrelated_top_quantile: Annotated[Share, "B8a: which upper quantile of unrelated pairs"] = 0.99
    related_low: Annotated[Share, "B8a: reference of the lower quantile of related pairs"] = 0.70
    related_low_quantile: Annotated[Share, "B8a: which lower quantile of related pairs"] = 0.10
    same_median: Annotated[Share, "B8a: reference of the median of pairs that say the same"] = 0.92
    crossing_gap: Annotated[Positive, "B8a: raw cosine on each side of the mean of two anchors that cross"] = 0.005


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusteringPolicy:
    """Limits between the exact and the approximate way of clustering."""

    exact_limit: Annotated[Count, "B8.2: most episodes that are clustered exactly"] = 20_000
    component_limit: Annotated[Count, "B8.2: largest connected component that is clustered exactly"] = 1_000
    pairs_per_episode: Annotated[Count, "B8.2: most similar pairs per episode for the exact way"] = 50
    block_rows: Annotated[Count, "B8.2: rows of one block of the similarity matrix"] = 1_024
    leader_rows: Annotated[Count, "B8.2: rows that are compared with leaders at once"] = 256
    leader_columns: Annotated[Count, "B8.2: leaders that such rows are compared with at once"] = 4_096
    leader_passes: Annotated[Count, "B8.2: times that every vector may go to its nearest leader's centroid"] = 2
    sketch_width: Annotated[
        Count, "B8.2: sums by which vectors over the exact limit are first held against leaders"
    ] = 128
    sketch_margin: Annotated[Share, "B8.2: how much less like a leader a vector's sketch may be than the vector"] = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolidationPolicy:
    """What one cycle takes in, and how alike things must be."""

    trigger_episodes: Annotated[Count, "B7: new episodes that start a cycle"] = 20
    every_hours: Annotated[Positive, "B7: hours between scheduled cycles"] = 4.0
    pace_minutes: Annotated[Positive, "B20: minutes whose ended cycles tell how fast the backlog shrinks"] = 15.0
    archive_check_hours: Annotated[Positive, "B7: hours after which overdue archiving starts a cycle"] = 24.0
    pooled_days: Annotated[Positive, "B7: days that an episode waits pooled before it settles without a belief"] = 90.0
    lease_episodes: Annotated[Count, "B8.1: most new episodes that one cycle leases"] = 2_000
    cluster_similarity: Annotated[Share, "B8.2: similarity from which episodes share a cluster"] = 0.70
    clusters: Annotated[Count, "B8.2, B9: most clusters that one cycle takes"] = 10
    cluster_min: Annotated[Count, "B8.2: fewest episodes that may found a belief"] = 3
    cluster_max: Annotated[Count, "B8.2: most episodes of one cluster, the rest are pooled"] = 60
    central_episodes: Annotated[Count, "B8.3: most central episodes shown to synthesis"] = 12
    statement_words: Annotated[Count, "B8.3, B10: most words of a statement"] = 30
    gathered_calls: Annotated[Count, "B8.3: most classification calls a cycle for episodes without a cluster"] = 10
    gathered_beliefs: Annotated[Count, "B8.3: most beliefs that a model judges such episodes against in one call"] = 8
    match_similarity: Annotated[Share, "B8.4: similarity above which an episode is held against a belief"] = 0.70
    match_beliefs: Annotated[Count, "B8.4, B9: most existing beliefs that one cluster is held against"] = 5
    wordless_similarity: Annotated[
        Share, "B8.4: similarity below which an episode without a word in common with a belief is not asked about"
    ] = 0.80
    reinforce_similarity: Annotated[Share, "B8.4: similarity above which the guard alone may support"] = 0.92
    classify_episodes: Annotated[Count, "B8.4: most episodes of one classification call"] = 12
    classify_statements: Annotated[Count, "B8.4: most statements that one classification call asks about"] = 5
    birth_supports: Annotated[Count, "B8.4: fewest supporting episodes of a new belief"] = 3
    birth_confidence: Annotated[Share, "B8.4: confidence that a new belief must exceed"] = 0.5
    twin_similarity: Annotated[Share, "B8.5: similarity above which two new statements of a cycle are one"] = 0.92


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetPolicy:
    """Time, attempts and calls that one cycle may use."""

    call_seconds: Annotated[Positive, "B9: longest model call"] = 10.0
    working_seconds: Annotated[Positive, "B9: working time of one cycle"] = 120.0
    attempt_seconds: Annotated[Positive, "B9: working time that a new attempt has at least"] = 30.0
    margin_seconds: Annotated[Amount, "B9: time kept free between a call's end and the deadline"] = 1.0
    call_attempts: Annotated[Count, "B9: attempts of one model call, over all layers"] = 3
    cycle_attempts: Annotated[Count, "B9: attempts of one cycle that workers took up before it counts as failed"] = 10
    job_claims: Annotated[Count, "B9: workers that one job may cost before it counts as poison"] = 5
    cooldown_minutes: Annotated[
        Positive, "B9: rest after a cycle that got nothing done; doubles with each in a row"
    ] = 2.0
    cooldown_hours: Annotated[Positive, "B9: longest such rest"] = 4.0
    probe_hours: Annotated[Positive, "B9: rest after a model server refused the key or the account"] = 6.0
    episode_failures: Annotated[Count, "B11: failed cycles after which an episode is a dead letter"] = 3
    reply_tokens: Annotated[Count, "B9: most tokens of a reply, told the server; models that reason need more"] = 400
    reply_bytes: Annotated[Count, "B9: longest answer of a model server, decompressed; no more of it is read"] = 2**24
    verdict_tokens: Annotated[Count, "B9: tokens that a reply may have besides for each verdict"] = 30
    fact_tokens: Annotated[Count, "B9: tokens that a reply may have besides for each turn whose facts are asked"] = 200
    calls_in_flight: Annotated[Count, "B9: model calls of one workspace at the same time"] = 64
    lease_seconds: Annotated[Positive, "B8: a lease that is not renewed ends after this"] = 20.0
    renew_seconds: Annotated[Positive, "B8: time between renewals of a lease"] = 5.0
    wait_seconds: Annotated[Amount, "B9: longest wait inside a step; for a longer one it gives its lease back"] = 5.0
    last_call_seconds: Annotated[Positive, "B9: age of a step after which it starts no further call"] = 60.0
    sweep_seconds: Annotated[Positive, "B8: time between two looks for cycles whose lease ran out"] = 10.0
    outage_seconds: Annotated[Positive, "B9: how long a step keeps trying while the database is away"] = 90.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GatePolicy:
    """When a belief changes its status."""

    archive_confidence: Annotated[Share, "B14: a belief below this confidence is archived"] = 0.3
    archive_stale_days: Annotated[Positive, "B14: days without reinforcement that make a weak belief stale"] = 90.0
    archive_told_days: Annotated[Positive, "B14, E4: the same for a belief that somebody told plainly"] = 365.0
    archive_stale_evidence: Annotated[Count, "B14: evidence from which a belief is not weak"] = 5
    archive_doubt_confidence: Annotated[Share, "B14: confidence below which a belief is doubtful"] = 0.5
    archive_doubt_days: Annotated[Positive, "B14: days without reinforcement that end a doubtful belief"] = 180.0
    archive_restored_days: Annotated[Amount, "B14: days that a person's restoring protects a belief"] = 90.0
    archive_additive_contradictions: Annotated[
        Count, "B14, R10a: contradicting rows without which the additive model archives nothing for low confidence"
    ] = 5
    return_confidence: Annotated[Share, "B14: confidence above which an archived belief comes back"] = 0.5
    close_score: Annotated[Positive, "C1: nats by which a change must be likelier than none"] = 0.75
    close_few_score: Annotated[Positive, "C1: the same where no more rows contradict than the fewest that must"] = 1.25
    close_sure_score: Annotated[Positive, "C1: nats, counted by origins, from which one origin less is enough"] = 4.0
    overturn_score: Annotated[
        Positive, "E4: nats from which another value may be believed beside one that holds the slot"
    ] = 0.7
    close_contradictions: Annotated[Count, "C1: fewest contradicting rows after a change"] = 3
    close_origins: Annotated[Count, "C1: fewest origins of the contradicting rows after a change"] = 3
    revise_confidence: Annotated[Share, "B15: a belief below this confidence may be revised"] = 0.4
    revise_peak: Annotated[Share, "B15: confidence that a belief must once have exceeded to be revised"] = 0.5
    revise_contradictions: Annotated[Count, "B15: fewest contradicting rows"] = 3
    revise_evidence: Annotated[Count, "B15: fewest rows of evidence"] = 5
    revise_origins: Annotated[Count, "B15: fewest origins of the contradicting rows"] = 2
    revise_depth: Annotated[Count, "B15: depth of lineage from which a belief is revised no more"] = 5
    split_contradictions: Annotated[Count, "B12: fewest rows against, PARTIAL ones included"] = 3
    split_supports: Annotated[Count, "B12: fewest supporting rows"] = 3
    split_partials: Annotated[Count, "B12: fewest PARTIAL rows"] = 2
    split_evidence: Annotated[Count, "B12: fewest rows of evidence"] = 5
    split_origins: Annotated[Count, "B12: fewest origins of each side"] = 2
    merge_similarity: Annotated[Share, "B13: similarity that two beliefs must exceed to be one"] = 0.92
    merge_confidence: Annotated[Share, "B13: confidence that both beliefs must exceed"] = 0.6
    merge_settled_days: Annotated[Amount, "B13: days without a change of structure or statement"] = 7.0
    undone_days: Annotated[Amount, "B22: days in which no change that was undone is made again"] = 90.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AdditivePolicy:
    """The additive model of confidence, which a workspace may choose."""

    birth: Annotated[Share, "R10a: confidence at birth, founding rows included"] = 0.6
    support: Annotated[Amount, "R10a: what a supporting row of weight 1 adds"] = 0.1
    contradiction: Annotated[Amount, "R10a: what a contradicting row of weight 1 takes away"] = 0.2
    cap: Annotated[Share, "R10a: greatest confidence"] = 1.0
    floor: Annotated[Share, "R10a: least confidence"] = 0.1
    decimals: Annotated[Count, "R10a: decimals to which confidence is rounded"] = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class RestructurePolicy:
    """How beliefs are revised, split and merged."""

    shown_episodes: Annotated[Count, "B12, B15: most episodes of evidence shown when a statement is asked for"] = 12
    circumstance_episodes: Annotated[
        Count, "B12: fewest episodes of a side that name a circumstance before rules divide a belief by it"
    ] = 2
    child_supports: Annotated[Count, "B8.6: fewest supporting episodes of a child"] = 3
    child_confidence: Annotated[Share, "B8.6: confidence that a child must exceed"] = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """All stages together; `Policy()` holds the defaults."""

    confidence: ConfidencePolicy = ConfidencePolicy()
    retrieval: StrengthPolicy = StrengthPolicy()
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
    rivals: ContradictionPolicy = ContradictionPolicy()


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


CALL_SECONDS = "ENGRAM_BUDGET_CALL_SECONDS"
ANSWER_SECONDS = "ENGRAM_REMEMBER_ANSWER_SECONDS"
SPARE_SECONDS = 20.0  # of a task beside its calls, and again between its soft limit and its hard one
_REDELIVERY_SECONDS = 50.0  # from a task's hard limit to where its message comes again


@dataclass(frozen=True, slots=True, kw_only=True)
class TooShort:
    """A time that leaves no room for a model call: nothing that has only so much ever makes one."""

    setting: str
    seconds: float
    who: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskTime:
    """How long one kind of task may take over its calls, and the settings that this comes of."""

    task: str
    seconds: float
    settings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskLimits:
    """Seconds after which any task is ended softly, and then hard, and after which its message comes again at best."""

    soft: int
    hard: int
    redelivery: int
    longest: TaskTime


def room_for_a_call(*, budget: BudgetPolicy) -> float:
    """Return the seconds of which a step must have more to begin a call: the call's longest, and the margin."""
    return budget.call_seconds + budget.margin_seconds


def holds_a_call(*, seconds: float, budget: BudgetPolicy) -> bool:
    """Tell whether so much time is enough for a model call."""
    return seconds > room_for_a_call(budget=budget)


def step_seconds(*, budget: BudgetPolicy) -> float:
    """Return how long a step of a cycle may take: its last call begins in time, and has a call's longest."""
    return budget.last_call_seconds + budget.call_seconds


_MOST_DOUBLINGS = 30


def cooldown(*, failures: int, budget: BudgetPolicy) -> timedelta:
    """Return how long to rest after a failure that came after so many in a row: twice as long each time."""
    doubled: timedelta = timedelta(minutes=budget.cooldown_minutes) * 2 ** min(failures, _MOST_DOUBLINGS)
    return min(doubled, timedelta(hours=budget.cooldown_hours))


def find_too_short(*, policy: Policy) -> list[TooShort]:
    """List the times that hold no call, though calls are what they are for."""
    return [time for time in _times_of_calls(policy) if not holds_a_call(seconds=time.seconds, budget=policy.budget)]


def _times_of_calls(policy: Policy) -> Iterator[TooShort]:
    budget = policy.budget
    yield TooShort(setting="ENGRAM_BUDGET_WORKING_SECONDS", seconds=budget.working_seconds, who="a cycle")
    yield TooShort(
        setting="ENGRAM_BUDGET_ATTEMPT_SECONDS",
        seconds=budget.attempt_seconds,
        who="a cycle that another worker took over",
    )
    yield TooShort(setting="ENGRAM_EXTRACTION_SECONDS", seconds=policy.extraction.seconds, who="the reading of turns")
    yield TooShort(
        setting="ENGRAM_RIVALS_CHECK_SECONDS",
        seconds=policy.rivals.check_seconds,
        who="a look for contradictions",
    )


def task_limits(*, policy: Policy) -> TaskLimits:
    """Return the limits of tasks in whole seconds: whatever its own times allow a task, it comes to its own end."""
    longest = max(_task_times(policy), key=lambda task: task.seconds)
    soft = longest.seconds + SPARE_SECONDS
    hard = soft + SPARE_SECONDS
    return TaskLimits(
        soft=math.ceil(soft), hard=math.ceil(hard), redelivery=math.ceil(hard + _REDELIVERY_SECONDS), longest=longest
    )


def _task_times(policy: Policy) -> Iterator[TaskTime]:
    """Yield each kind of task that takes as long as a setting says."""
    call, budget = (CALL_SECONDS, "ENGRAM_BUDGET_LAST_CALL_SECONDS"), policy.budget
    yield TaskTime(task="a step of a cycle", seconds=step_seconds(budget=budget), settings=call)
    # What was read out of a text is embedded in one more call.
    yield TaskTime(task="remembering", seconds=step_seconds(budget=budget) + budget.call_seconds, settings=call)
    # Turns are read, then what was read is summed up.
    yield TaskTime(
        task="the reading of turns", seconds=2 * policy.extraction.seconds, settings=("ENGRAM_EXTRACTION_SECONDS",)
    )
    yield TaskTime(task="maintenance", seconds=policy.maintenance.seconds, settings=("ENGRAM_MAINTENANCE_SECONDS",))
    yield TaskTime(task="linking", seconds=policy.graph.seconds, settings=("ENGRAM_GRAPH_SECONDS",))
