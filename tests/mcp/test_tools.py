"""The tools, called as the servers call them: what each does, and nothing beyond what its key may."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import Settings

from memory.facts.remember import run_remember_job
from memory.ledger.confidence import recompute_beliefs
from memory.llm.replies import NewStatement, Reading
from memory.llm.requests import ReadingRequest
from memory.mcp.catalogue import TOOLS
from memory.mcp.interface import Tool, ToolRefused
from memory.mcp.write_tools import Tidying
from memory.models import ApiKey, Belief, Episode, Evidence, Project, RememberJob, Transition, TurnEpisode, Workspace
from memory.recall.query import MemoryType, RecallProfile
from memory.recall.usage import Feedback
from tests import factories
from tests.recall.memories import believed, remembered

pytestmark = pytest.mark.django_db

SECRET = "the vault stands behind the mill"
BY_NAME = {tool.name: tool for tool in TOOLS}


def call(name: str, key: str, **arguments: Any) -> Any:
    """Call a tool with a key; `ToolRefused` is raised."""
    return BY_NAME[name].call(key_text=key, arguments=arguments)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """What a workspace holds."""

    workspace: Workspace
    project: Project
    episode: Episode
    belief: Belief


@pytest.fixture
def rows(db: None) -> Rows:
    """Fill a workspace with an episode of a project, the belief on it, and a general one that rests on it, too."""
    workspace = factories.workspace()
    project = factories.project(workspace=workspace, slug="hidden-project")
    episode = remembered(SECRET, workspace=workspace, project=project, user="lena")
    belief = believed(SECRET, workspace=workspace, project=project, user="lena")
    for judged in (belief, believed(f"{SECRET} for all", workspace=workspace)):
        factories.evidence(belief=judged, episode=episode)
    return Rows(workspace=workspace, project=project, episode=episode, belief=belief)


Arguments = Callable[[Rows], dict[str, Any]]
CALLS: dict[str, Arguments] = {
    "memory_save": lambda rows: {"text": "The miller bakes on Mondays.", "project": rows.project.slug},
    "memory_recall": lambda rows: {"query": SECRET, "limit": 100},
    "memory_expand": lambda rows: {"id": rows.belief.pk},
    "memory_forget": lambda rows: {"id": rows.episode.pk},
    "memory_feedback": lambda rows: {"id": rows.belief.pk, "value": Feedback.USEFUL},
    "memory_correct": lambda rows: {"id": rows.belief.pk, "reason": "moved", "statement": "The vault is empty."},
    "memory_pin": lambda rows: {"id": rows.belief.pk, "reason": "keep"},
    "memory_update_status": lambda rows: {"id": rows.belief.pk, "reason": "x", "status": "challenged"},
    "memory_status_history": lambda rows: {"id": rows.belief.pk},
    "memory_status": lambda rows: {},
    "memory_context": lambda rows: {"query": SECRET},
    "memory_reflect": lambda rows: {},
    "memory_find_contradictions": lambda rows: {"check": True},
    "memory_tidy": lambda rows: {"what": Tidying.BACKFILL_SUBJECTS},
}
OF_ALL = {tool.name for tool in TOOLS if tool.is_for_whole_workspace}
NAMING = set(CALLS) - OF_ALL - {"memory_save", "memory_recall", "memory_context", "memory_status"}
EVERY_TOOL = pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)


def send(tool: Tool, key: str, rows: Rows) -> str:
    """Return all that a caller is told, refusals included."""
    try:
        return tool.call(key_text=key, arguments=CALLS[tool.name](rows)).model_dump_json()
    except ToolRefused as refusal:
        return f"refused: {refusal}"


def leaked(told: str, rows: Rows) -> set[str]:
    return {name for name in (rows.episode.pk, SECRET, "lena") if name in told}


def state() -> list[Any]:
    return [list(model._default_manager.order_by("pk").values()) for model in (Episode, Belief, Evidence, Transition)]


def test_every_tool_is_walked() -> None:
    assert set(CALLS) == set(BY_NAME)


@EVERY_TOOL
@pytest.mark.parametrize("kind", ["no key", "wrong key", "revoked key"])
def test_without_a_living_key_nothing_answers(rows: Rows, tool: Tool, kind: str) -> None:
    key, text = factories.key(workspace=rows.workspace)
    ApiKey.objects.filter(pk=key.pk).update(revoked_at=timezone.now())
    before = state()
    told = send(tool, {"no key": "", "wrong key": "engram_wrong", "revoked key": text}[kind], rows)
    assert told == "refused: This key is unknown or revoked."
    assert state() == before


@EVERY_TOOL
def test_a_key_of_another_workspace_sees_and_changes_nothing(rows: Rows, tool: Tool) -> None:
    before = state()
    told = send(tool, factories.key(workspace=factories.workspace())[1], rows)
    assert not leaked(told.replace(CALLS[tool.name](rows).get("id", "-"), ""), rows)
    assert ("refused: There is no" in told) == (tool.name in NAMING)
    if tool.name != "memory_save":
        assert state() == before


@EVERY_TOOL
def test_a_key_of_another_project_sees_nothing_of_this_one(rows: Rows, tool: Tool) -> None:
    """B21: nor a global belief that rests on this one, nor may it write there."""
    other = factories.project(workspace=rows.workspace)
    before = state()
    told = send(tool, factories.key(workspace=rows.workspace, projects=(other,))[1], rows)
    assert not leaked(told.replace(CALLS[tool.name](rows).get("id", "-"), ""), rows)
    assert state() == before


@EVERY_TOOL
@pytest.mark.parametrize("held", ["read", "write", "curate", "owner"])
def test_a_permission_opens_what_it_names_and_no_more(rows: Rows, tool: Tool, held: str) -> None:
    """Owner includes all, curate includes read and write, write does not include read."""
    includes = {"read": "read", "write": "write", "curate": "read write curate", "owner": "read write curate owner"}
    before = state()
    told = send(tool, factories.key(held, workspace=rows.workspace)[1], rows)
    if tool.permission in includes[held].split():
        assert not told.startswith("refused")
    else:
        assert told == f"refused: This key may not do that: it takes a key with the permission {tool.permission}."
        assert state() == before


@pytest.mark.parametrize("tool", [tool for tool in TOOLS if tool.name in NAMING], ids=lambda tool: tool.name)
def test_a_limited_key_changes_no_global_belief(rows: Rows, tool: Tool) -> None:
    """B21, B19: one that rests on its project alone it sees, and leaves as it is; on another's, it is not there."""
    general = Belief.objects.get(project=None)
    before, told = state(), []
    for project in (rows.project, factories.project(workspace=rows.workspace)):
        key = factories.key(workspace=rows.workspace, projects=(project,))[1]
        try:
            answer = tool.call(key_text=key, arguments=CALLS[tool.name](rows) | {"id": general.pk})
            told.append(answer.model_dump()["id"])
        except ToolRefused as refusal:
            told.append(str(refusal)[:12])
    changes = tool.permission == "curate" or tool.name == "memory_forget"
    assert told == ["This key is " if changes else general.pk, "There is no "]
    if tool.name != "memory_feedback":
        assert state() == before


def test_another_users_memories_are_not_recalled(rows: Rows) -> None:
    """B21: with a user given, that user's and those of nobody."""
    key = factories.key(workspace=rows.workspace)[1]
    told = [call("memory_recall", key, query=SECRET, user=user).results for user in ("ben", "lena")]
    assert [{one.type for one in results} for results in told] == [{"belief"}, {"belief", "episode"}]
    assert all(one.text.endswith("for all") for one in told[0])


def test_recalled_memories_are_lines_to_read(rows: Rows) -> None:
    """B16."""
    key = factories.key(workspace=rows.workspace)[1]
    told = call("memory_recall", key, query=SECRET, types=[MemoryType.BELIEF], limit=1)
    assert told.as_text() == f"[B] (Mar 1, confidence: 0.86) {told.results[0].text} — ID: {told.results[0].id}"
    assert call("memory_recall", key, query=SECRET, project=None, occurred_before=factories.NOW).results == []
    assert call("memory_recall", key, query=SECRET, occurred_before=factories.NOW).as_text() == "Nothing comes to mind."


def test_a_project_that_is_not_there_is_said_to_be_missing(rows: Rows) -> None:
    other = factories.project(workspace=rows.workspace)
    key = factories.key(workspace=rows.workspace, projects=(other,))[1]
    with pytest.raises(ToolRefused, match="There is no project 'hidden-project' that this key may see"):
        call("memory_recall", key, query=SECRET, project="hidden-project")


def test_what_a_key_did_too_often_it_is_told_to_wait_for(rows: Rows, settings: Settings) -> None:
    """B9: the same buckets as over HTTP."""
    throttle = replace(settings.POLICY.throttle, recall_per_minute=1)
    settings.POLICY = replace(settings.POLICY, throttle=throttle)
    key = factories.key(workspace=rows.workspace)[1]
    call("memory_recall", key, query=SECRET)
    with pytest.raises(ToolRefused, match=r"rate of recall calls is used up; come back in \d+"):
        call("memory_recall", key, query=SECRET)


def test_what_is_saved_is_there(rows: Rows) -> None:
    """B1, L4: once, with all that was said of it, by the same checks as everywhere."""
    key = factories.key(workspace=rows.workspace)[1]
    said = {"text": "Tea at four.", "project": "tea", "user": "ben", "session": "s1", "source": "human", "tags": ["t"]}
    first, second = call("memory_save", key, **said), call("memory_save", key, **said)
    stored = Episode.objects.get(pk=first.id)
    assert (second.id, first.deduplicated, second.deduplicated) == (first.id, False, True)
    assert (stored.project.slug if stored.project else "", stored.user, stored.source, stored.tags) == (
        "tea", "ben", "human", ["t"],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"text": " "}, "text: The text is empty."),
        ({"text": "x", "occurred_at": "yesterday"}, "occurred_at: A time as RFC 3339 has it"),
        ({"text": "x", "project": "a b"}, "project: One or more letters, digits, - and _"),
    ],
)
def test_what_cannot_be_saved_says_why(rows: Rows, given: dict[str, str], told: str) -> None:
    with pytest.raises(ToolRefused, match=told):
        call("memory_save", factories.key(workspace=rows.workspace)[1], **given)


def test_an_expanded_belief_shows_its_evidence_as_far_as_the_key_may_see_it(rows: Rows) -> None:
    """B18."""
    elsewhere = factories.project(workspace=rows.workspace)
    hidden = remembered("the miller said so", workspace=rows.workspace, project=elsewhere)
    factories.evidence(belief=rows.belief, episode=hidden, verdict="CONTRADICTS")
    key = factories.key(workspace=rows.workspace, projects=(rows.project,))[1]
    told = call("memory_expand", key, id=rows.belief.pk)
    assert [(one.episode, one.verdict) for one in told.evidence] == [(rows.episode.pk, "SUPPORTS")]
    assert (told.hidden_evidence, told.project) == (1, "hidden-project")


def test_an_expanded_belief_shows_its_numbers_and_changes_and_is_an_access(rows: Rows) -> None:
    """B18, B5: what the API's card and history tell; the count is of all rows that count."""
    key = factories.key(workspace=rows.workspace)[1]
    recompute_beliefs(beliefs=[rows.belief], now=factories.NOW)
    told = call("memory_expand", key, id=rows.belief.pk)
    belief = Belief.objects.get(pk=rows.belief.pk)
    assert (told.alpha, told.beta, told.evidence_count) == (belief.alpha, belief.beta, belief.evidence_count)
    assert told.predicate == (belief.predicate or None)
    assert [one.statement for one in told.history] == [belief.statement] * len(told.history)
    assert (told.history[-1].confidence, len(told.history)) == (pytest.approx(belief.confidence, abs=0.01), 2)
    assert belief.access.access_count == 1
    call("memory_expand", key, id=rows.episode.pk)
    assert Episode.objects.get(pk=rows.episode.pk).access.access_count == 1


def test_much_evidence_is_told_page_by_page(rows: Rows) -> None:
    """B18: the latest first, each page in the order of time, texts cut, and the rest counted."""
    key = factories.key(workspace=rows.workspace)[1]
    said = [
        remembered(
            f"{number} " + "and on " * 100,
            workspace=rows.workspace,
            occurred_at=factories.NOW + timedelta(hours=number),
        )
        for number in range(1, 45)
    ]
    for episode in said:
        factories.evidence(belief=rows.belief, episode=episode)
    pages = [call("memory_expand", key, id=rows.belief.pk, page=page) for page in (1, 2, 3, 4)]
    told = [[one.episode for one in page.evidence] for page in pages]
    in_time = [rows.episode.pk, *(episode.pk for episode in said)]
    assert told == [in_time[25:], in_time[5:25], in_time[:5], []]
    assert [page.other_evidence for page in pages] == [25, 25, 40, 45]
    assert max(len(one.text) for one in pages[0].evidence) <= 400


def test_an_expanded_episode_shows_what_it_is_evidence_of(rows: Rows) -> None:
    """B18."""
    told = call("memory_expand", factories.key(workspace=rows.workspace)[1], id=rows.episode.pk)
    assert {(one.statement, one.verdict) for one in told.is_evidence_of} == {
        (SECRET, "SUPPORTS"), (f"{SECRET} for all", "SUPPORTS"),
    }  # fmt: skip


def test_an_expanded_fact_has_its_exact_words(rows: Rows) -> None:
    """L6: beside what was read out of them."""
    words: dict[str, Any] = {"confidence": 0.95, "causes": ["The old one was slow"], "verbatim": "ok, postgres it is"}
    fact = remembered("The team chose Postgres.", workspace=rows.workspace, category="decision", **words)
    told = call("memory_expand", factories.key(workspace=rows.workspace)[1], id=fact.pk)
    assert (told.kind, told.tier, told.causes, told.verbatim) == (
        "note", "explicit", ["The old one was slow"], "ok, postgres it is",
    )  # fmt: skip


def test_what_is_forgotten_is_gone(rows: Rows) -> None:
    """B19: and the belief that rested on it has lost its support."""
    key = factories.key("write", workspace=rows.workspace)[1]
    told = call("memory_forget", key, id=rows.episode.pk, reason="asked for")
    assert (told.recomputed, told.belief_ids) == (2, None)
    with pytest.raises(ToolRefused, match="There is no"):
        call("memory_forget", key, id=rows.episode.pk)


def test_who_may_read_is_told_which_beliefs_lost_evidence(rows: Rows) -> None:
    """B19."""
    told = call("memory_forget", factories.key(workspace=rows.workspace)[1], id=rows.episode.pk)
    assert told.belief_ids == sorted(Belief.objects.values_list("pk", flat=True))


def test_what_was_forgotten_is_not_saved_again(rows: Rows) -> None:
    """L4, B19: and the model is told so."""
    key = factories.key("write", workspace=rows.workspace)[1]
    saved = call("memory_save", key, text="Tea at four.", session="s")
    call("memory_forget", key, id=saved.id)
    again = call("memory_save", key, text="Tea at four.", session="s")
    assert (saved.forgotten, again.id, again.deduplicated, again.forgotten) == (False, saved.id, True, True)


def test_what_is_to_be_believed_at_once_waits_for_a_worker(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    """R1: and asked again it says what became of beliefs."""
    monkeypatch.setattr("workers.tasks.remember.delay", lambda _: None)
    key = factories.key("write", workspace=rows.workspace)[1]
    said = {"text": "Ben prefers green tea.", "session": "s", "at_once": True}
    assert (call("memory_save", key, **said).state, call("memory_save", key, text="Ben left.").state) == (
        "queued",
        None,
    )
    run_remember_job(remembrance_id=RememberJob.objects.get().pk, now=factories.NOW)
    told = call("memory_save", key, **said)
    assert (told.state, list(told.beliefs.values())) == ("done", ["created"])


def test_what_is_believed_at_once_may_be_of_another_day(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    """R1: the same time as for any episode, refused in words where it is none."""
    asked: list[ReadingRequest] = []

    def note_and_read(request: ReadingRequest) -> Reading:
        asked.append(request)
        return Reading(new=[NewStatement(m=1, statement="Ben moves to Lyon on 2026-03-03.")])

    monkeypatch.setattr("memory.llm.offline.read_offline", note_and_read)
    monkeypatch.setattr("workers.tasks.remember.delay", lambda _: None)
    key = factories.key("write", workspace=rows.workspace)[1]
    said = {"text": "Ben moves to Lyon tomorrow.", "session": "s", "at_once": True}
    saved = call("memory_save", key, **said, occurred_at="2026-03-02T10:00:00Z")
    assert Episode.objects.get(pk=saved.id).occurred_at == datetime(2026, 3, 2, 10, tzinfo=UTC)
    run_remember_job(remembrance_id=RememberJob.objects.get().pk, now=factories.NOW)
    assert [(one.today, one.read[0].occurred_on) for one in asked] == [("2026-03-02", "2026-03-02")]
    assert "2026-03-03" in Belief.objects.get(evidence__episode=saved.id).statement
    with pytest.raises(ToolRefused, match="offset"):
        call("memory_save", key, **said, occurred_at="2026-03-02T10:00:00")


def test_a_limited_key_remembers_in_its_projects_alone(rows: Rows) -> None:
    """R1, B21."""
    key = factories.key("write", workspace=rows.workspace, projects=(rows.project,))[1]
    with pytest.raises(ToolRefused, match="limited to some projects"):
        call("memory_save", key, text="Ben prefers green tea.", at_once=True)


def test_a_pin_keeps_a_belief_from_a_key_that_may_only_write(rows: Rows) -> None:
    """D9, B19."""
    curator = factories.key("curate", workspace=rows.workspace)[1]
    assert call("memory_pin", curator, id=rows.belief.pk, reason="keep").is_pinned
    with pytest.raises(ToolRefused, match="is pinned"):
        call("memory_forget", factories.key("write", workspace=rows.workspace)[1], id=rows.belief.pk)
    assert not call("memory_pin", curator, id=rows.belief.pk, reason="done", pinned=False).is_pinned


def test_a_correction_takes_the_place_of_a_belief(rows: Rows) -> None:
    """R7, B4."""
    key = factories.key("curate", workspace=rows.workspace)[1]
    told = call("memory_correct", key, id=rows.belief.pk, reason="moved", statement="The vault stands in the barn.")
    [made], [changed] = told.made, told.changed
    assert (made.confidence, changed.id, changed.status) == (0.8571, rows.belief.pk, "revised")
    with pytest.raises(ToolRefused, match="is revised; only what is believed"):
        call("memory_correct", key, id=rows.belief.pk, reason="moved")


def test_where_beliefs_are_off_none_is_corrected(rows: Rows) -> None:
    """B22: and the model is told why."""
    Workspace.objects.filter(pk=rows.workspace.pk).update(beliefs_enabled=False)
    key = factories.key("curate", workspace=rows.workspace)[1]
    with pytest.raises(ToolRefused, match="Beliefs are switched off"):
        call("memory_correct", key, id=rows.belief.pk, reason="moved")


def test_feedback_moves_no_confidence(rows: Rows) -> None:
    """L13."""
    key = factories.key("write", workspace=rows.workspace)[1]
    told = [call("memory_feedback", key, id=rows.belief.pk, value=Feedback.WRONG).feedback for _ in range(3)]
    assert told == [-0.3, -0.51, -0.657]
    assert Belief.objects.get(pk=rows.belief.pk).confidence == rows.belief.confidence


def test_a_status_is_set_and_its_history_told(rows: Rows) -> None:
    """D3, R10."""
    key, text = factories.key("curate", workspace=rows.workspace)
    for status in ("challenged", "archived", "active"):
        call("memory_update_status", text, id=rows.belief.pk, status=status, reason="as asked")
    told = call("memory_status_history", text, id=rows.belief.pk)
    assert [(one.old, one.new) for one in told.changes] == [
        ("active", "challenged"), ("challenged", "archived"), ("archived", "active"),
    ]  # fmt: skip
    assert {(one.actor, one.reason) for one in told.changes} == {(f"key {key.prefix}", "as asked")}
    assert told.changes[0].at <= timezone.now() + timedelta(seconds=1)


def test_status_counts_what_the_key_may_see(rows: Rows) -> None:
    """B20."""
    told = call("memory_status", factories.key(workspace=rows.workspace)[1])
    assert (told.episodes, told.beliefs) == ({"active": 1}, {"active": 2})
    assert (told.budget.tokens_today, told.budget.is_cap_reached) == (0, False)
    other = factories.project(workspace=rows.workspace)
    limited = call("memory_status", factories.key(workspace=rows.workspace, projects=(other,))[1])
    assert (limited.episodes, limited.budget, limited.graph, limited.redactions) == ({}, None, None, None)


def test_status_tells_what_waits_and_what_was_given_up(rows: Rows) -> None:
    """B20, L2, R1."""
    for state in ("buffered", "failed"):
        factories.turn(workspace=rows.workspace, state=state)
    told = call("memory_status", factories.key(workspace=rows.workspace)[1])
    assert told.turns == {"buffered": 1, "leased": 0, "dead": 1}
    assert (told.remembering, told.redactions) == ({"queued": 0, "failed": 0}, {})
    assert told.graph == {"entities": 0, "edges": 0, "boxes": 0, "unlinked": 1}


def test_an_episode_is_told_with_the_turns_it_was_read_from(rows: Rows) -> None:
    """B18, L2."""
    said = factories.turn(workspace=rows.workspace, project=rows.project, session="s", content="Open the vault.")
    TurnEpisode.objects.create(workspace=rows.workspace, turn=said, episode=rows.episode)
    told = call("memory_expand", factories.key(workspace=rows.workspace)[1], id=rows.episode.pk)
    assert [(turn.session, turn.role, turn.content) for turn in told.said_in] == [("s", "user", "Open the vault.")]


def test_a_long_turn_is_cut_for_a_tool(rows: Rows) -> None:
    """B18: what is left of it ends with an ellipsis."""
    said = factories.turn(workspace=rows.workspace, project=rows.project, session="s", content="Open it. " * 2_000)
    TurnEpisode.objects.create(workspace=rows.workspace, turn=said, episode=rows.episode)
    told = call("memory_expand", factories.key(workspace=rows.workspace)[1], id=rows.episode.pk)
    [turn] = told.said_in
    assert (len(turn.content) <= 400, turn.content[-1], told.other_turns) == (True, "…", 0)


def test_what_has_expired_is_recalled_if_asked_for(rows: Rows) -> None:
    """L16, R5: as over HTTP, and by either profile."""
    Episode.objects.update(valid_until=factories.NOW)
    key = factories.key(workspace=rows.workspace)[1]
    asked = {"query": SECRET, "types": [MemoryType.EPISODE]}
    told = [
        [one.id for one in call("memory_recall", key, **asked, include_expired=wanted, profile=profile).results]
        for profile in RecallProfile
        for wanted in (False, True)
    ]
    assert told == [[], [rows.episode.pk]] * 2
