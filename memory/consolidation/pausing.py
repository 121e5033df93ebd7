"""When a workspace rests instead of starting cycles by itself (B9).

A cycle that got nothing done makes the next one wait, twice as long each time in a row; a refused key or account stops
the workspace until the settings change, a person starts a cycle, or a probe is due; a cap of the day lasts as long as
the day or the cap. Cycles that a person starts are never held up: whoever starts one may know more.
"""

from collections.abc import Iterable
from datetime import UTC, timedelta

import structlog
from django.conf import settings
from django.db.models import DateTimeField, ExpressionWrapper, Value
from django.db.models.expressions import Combinable
from django.db.models.functions import Now, TruncDay

from memory.domain.lifecycle import OWN_ERROR_PREFIX, CycleState, JobState
from memory.llm.call_log import CAP_REASONS
from memory.llm.registry import fingerprint_models
from memory.models import CallOutcome, ClusterJob, Cycle, ModelCall, Pause, PauseReason, Workspace

log = structlog.get_logger(__name__)

_REFUSALS = {CallOutcome.AUTH: PauseReason.AUTH, CallOutcome.BILLING: PauseReason.BILLING}
_MOST_DOUBLINGS = 30


def find_pause(*, workspace: Workspace) -> Pause | None:
    """Return why a workspace rests, None if it does not; changed settings or caps end a pause at once."""
    pause: Pause | None = Pause.objects.in_force().filter(workspace=workspace).first()
    return pause if pause and not is_outdated(pause=pause, workspace=workspace) else None


def is_outdated(*, pause: Pause, workspace: Workspace) -> bool:
    """Tell whether what led to a pause has been changed since."""
    return pause.fingerprint != _fingerprint(PauseReason(pause.reason), workspace)


def resting_among(*, workspaces: Iterable[Workspace]) -> set[int]:
    """Return which of some workspaces rest, by their numbers."""
    by_id = {workspace.pk: workspace for workspace in workspaces}
    pauses = Pause.objects.in_force().filter(workspace__in=by_id)
    return {pause.workspace_id for pause in pauses if not is_outdated(pause=pause, workspace=by_id[pause.workspace_id])}


def resume(*, workspace_id: int) -> bool:
    """End a workspace's pause, as a person asks; false if it did not rest."""
    deleted, _ = Pause.objects.for_workspace(workspace_id).delete()
    return deleted > 0


def describe_pause(pause: Pause) -> str:
    """Say in one line why a workspace rests."""
    return f"{pause.get_reason_display()}{f' ({pause.detail})' if pause.detail else ''}"


def note_outcome(*, cycle: Cycle, state: CycleState, budget_spent: str) -> None:
    """Let the workspace rest, or end its rest, by what came of a cycle; called as the cycle is closed."""
    if state == CycleState.CANCELLED:
        return
    refusal = _refusal(cycle)
    if refusal is not None:
        _pause(cycle, _REFUSALS[CallOutcome(refusal.outcome)], refusal.error)
    elif budget_spent in CAP_REASONS:
        _pause(cycle, PauseReason.CAP, budget_spent)
    elif _got_nothing_done(cycle, state):
        _pause(cycle, PauseReason.FAILURES, budget_spent or first_failure(cycle=cycle))
    else:
        resume(workspace_id=cycle.workspace_id)


def _refusal(cycle: Cycle) -> ModelCall | None:
    refused: ModelCall | None = ModelCall.objects.filter(cycle=cycle, outcome__in=_REFUSALS).order_by("-id").first()
    return refused


def _got_nothing_done(cycle: Cycle, state: CycleState) -> bool:
    """Tell whether a cycle had something to do, and no job came to an end or at least nearer to it.

    Vectors are something where that is as far as the cycle came, and nothing where its jobs then got no answer. What
    our own code broke on is no reason to rest: it would break on it at any hour (E6).
    """
    jobs = ClusterJob.objects.filter(cycle=cycle).exclude(
        state=JobState.FAILED, state_reason__startswith=OWN_ERROR_PREFIX
    )
    calls = ModelCall.objects.filter(cycle=cycle).exclude(outcome=CallOutcome.OWN_ERROR)
    has_jobs = jobs.exists()
    answered = calls.about_jobs() if has_jobs else calls
    if jobs.judged().exists() or answered.filter(outcome=CallOutcome.OK).exists():
        return False
    return state != CycleState.FINISHED or has_jobs or calls.exists()


def first_failure(*, cycle: Cycle) -> str:
    """Say what first kept a cycle's work from being done: a job's reason, a call's error, its own; "" for nothing."""
    reasons = ClusterJob.objects.filter(cycle=cycle).exclude(state_reason="").order_by("number")
    errors = ModelCall.objects.filter(cycle=cycle).exclude(error="").order_by("id")
    found = reasons.values_list("state_reason", flat=True).first() or errors.values_list("error", flat=True).first()
    return found or cycle.state_reason


def _pause(cycle: Cycle, reason: PauseReason, detail: str) -> None:
    rest_workspace(workspace_id=cycle.workspace_id, reason=reason, detail=detail, cycle=cycle.pk)


def rest_workspace(*, workspace_id: int, reason: PauseReason, detail: str, **about: object) -> None:
    """Write down that a workspace rests, and for how long by the database's clock; `about` is for the log."""
    before = Pause.objects.select_for_update().filter(workspace=workspace_id).first()
    failures = (before.failures if before else 0) + int(reason != PauseReason.CAP)
    Pause.objects.update_or_create(
        workspace_id=workspace_id,
        defaults={
            "reason": reason,
            "detail": detail[:200],
            "failures": failures,
            "since": before.since if before and before.reason == reason else Now(),
            "until": _end(reason, failures),
            "fingerprint": _fingerprint(reason, Workspace.objects.get(pk=workspace_id)),
        },
    )
    log.warning("workspace_rests", workspace=workspace_id, reason=reason, failures=failures, **about)


def _end(reason: PauseReason, failures: int) -> ExpressionWrapper[Combinable]:
    policy = settings.POLICY.budget
    match reason:
        case PauseReason.CAP:
            today = TruncDay(Now(), tzinfo=UTC, output_field=DateTimeField())
            return _later(today, timedelta(days=1))
        case PauseReason.AUTH | PauseReason.BILLING:
            return _later(Now(), timedelta(hours=policy.probe_hours))
    doubled = timedelta(minutes=policy.cooldown_minutes) * 2 ** min(failures - 1, _MOST_DOUBLINGS)
    return _later(Now(), min(doubled, timedelta(hours=policy.cooldown_hours)))


def _later(moment: Now | TruncDay, span: timedelta) -> ExpressionWrapper[Combinable]:
    return ExpressionWrapper(moment + Value(span), output_field=DateTimeField())


def _fingerprint(reason: PauseReason, workspace: Workspace) -> str:
    if reason == PauseReason.CAP:
        return f"{workspace.daily_token_cap}/{workspace.daily_cost_cap_usd}"
    return fingerprint_models()
