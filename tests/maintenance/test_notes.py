"""Which notes stay for others, and how those that were hidden come back (L8, L18, D3)."""

import json
import time
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.conf import settings
from django.core.management import call_command

from memory.domain.identity import MAINTENANCE_ACTOR, Actor, ActorKind
from memory.domain.lifecycle import ConsolidationState, EpisodeStatus
from memory.ledger.transactions import change_episode_status
from memory.maintenance.notes import find_doubtful, restore_notes, tidy_notes
from memory.models import Episode, EpisodeEmbedding, Transition, Workspace
from tests import factories
from tests.consolidation.pair_answers import CONTRADICTS, PARTIAL, SUPPORTS, script_pairs
from tests.recall.memories import remembered

pytestmark = pytest.mark.django_db
LENA = Actor(kind=ActorKind.PERSON, name="lena")
GLUTEN, DAIRY = "I must not eat gluten.", "I must not eat gluten or dairy."
AT_THREE, AT_FOUR = "The dentist is at 3 pm.", "The dentist is at 4 pm, not 3 pm."


@pytest.fixture
def workspace() -> Workspace:
    return factories.workspace()


@pytest.fixture(autouse=True)
def answers(monkeypatch: pytest.MonkeyPatch) -> None:
    script_pairs(
        monkeypatch,
        {
            (GLUTEN, DAIRY): SUPPORTS, (DAIRY, GLUTEN): PARTIAL, (AT_THREE, AT_FOUR): CONTRADICTS,
            (AT_FOUR, AT_THREE): CONTRADICTS,
        },
    )  # fmt: skip


def noted(workspace: Workspace, text: str, *, minutes: float = 0, **given: Any) -> Episode:
    at: datetime = factories.NOW + timedelta(minutes=minutes)
    fields: dict[str, Any] = {
        "state": ConsolidationState.SETTLED,
        "category": "principle",
        "occurred_at": at,
        "source": "human",
    }
    return remembered(text, workspace=workspace, **fields | given)


def tidy(workspace: Workspace) -> int:
    return tidy_notes(
        workspace_id=workspace.pk, now=factories.NOW, ends_at=time.monotonic() + 60, policy=settings.POLICY
    )


def statuses(*notes: Episode) -> list[str]:
    found = dict(Episode.objects.values_list("pk", "status"))
    return [found[note.pk] for note in notes]


def hide(note: Episode, *, into: Episode, status: EpisodeStatus, actor: Actor = MAINTENANCE_ACTOR) -> None:
    """Hide a note as maintenance did when it went by rules."""
    word = "merged into" if status is EpisodeStatus.MERGED else "superseded by"
    change_episode_status(ids=[note.pk], new=status, reason=f"{word} {into.pk}", actor=actor, now=factories.NOW)
    if status is EpisodeStatus.MERGED:
        Episode.objects.filter(pk=note.pk).update(merged_into=into)


@pytest.mark.parametrize("texts", [(GLUTEN, DAIRY), (DAIRY, GLUTEN)], ids=["newer", "older"])
def test_the_note_that_says_more_stays(workspace: Workspace, texts: tuple[str, str]) -> None:
    """L18: whichever is older; the other says what superseded it, and keeps its words."""
    one, other = (noted(workspace, text, minutes=n) for n, text in enumerate(texts))
    assert tidy(workspace) == 1
    kept, hidden = (one, other) if one.text == DAIRY else (other, one)
    assert statuses(kept, hidden) == ["active", "superseded"]
    assert Transition.objects.get().reason == f"superseded by {kept.pk}"
    assert Episode.objects.get(pk=hidden.pk).text == GLUTEN
    assert tidy(workspace) == 0


def test_a_newer_note_supersedes_an_older_one_in_conflict(workspace: Workspace) -> None:
    """L18: "4 pm, not 3 pm" is not one with "at 3 pm"."""
    old, new = noted(workspace, AT_THREE), noted(workspace, AT_FOUR, minutes=5, category="correction")
    assert tidy(workspace) == 1
    assert statuses(old, new) == ["superseded", "active"]


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ({"text": f"{AT_THREE} Bring the card."}, {}),
        ({}, {"source": "ai"}),
        ({"source": "ingest"}, {"source": "ingest"}),
        ({}, {"user": "jon"}),
        ({}, {"speaker": "Jon"}),
        ({"state": ConsolidationState.POOLED}, {}),
        ({}, {"state": ConsolidationState.NEW}),
        ({"category": "fact"}, {}),
    ],
    ids=[
        "several things",
        "a model's word",
        "a document's",
        "another user",
        "another speaker",
        "pooled",
        "new",
        "an event",
    ],
)
def test_what_is_not_superseded(workspace: Workspace, older: dict[str, Any], newer: dict[str, Any]) -> None:
    """L18, D7: what else it says would be hidden with it; a model does not correct its user, nor one another."""
    old, new = noted(workspace, **{"text": AT_THREE} | older), noted(workspace, AT_FOUR, minutes=5, **newer)
    assert tidy(workspace) == 0
    assert statuses(old, new) == ["active", "active"]


def test_a_note_that_falls_takes_no_other_with_it(workspace: Workspace) -> None:
    """L18: what is hidden in a round stays for nothing else in it."""
    first, again, later = (
        noted(workspace, text, minutes=n) for n, text in enumerate((AT_THREE, AT_THREE + "!", AT_FOUR))
    )
    assert tidy(workspace) == 2
    assert statuses(first, again, later) == ["superseded", "merged", "active"]


def test_our_own_reader_merges_nothing_that_says_more(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """L18: what rules had merged."""
    monkeypatch.undo()
    notes = [
        noted(workspace, text, minutes=n, speaker="Mara")
        for n, text in enumerate((GLUTEN, DAIRY, "Deploys go out on Tuesdays.", "Deploys go out on Tuesdays at noon."))
    ]
    tidy(workspace)
    assert "merged" not in statuses(*notes)
    assert statuses(notes[1], notes[3]) == ["active", "active"]


def test_what_the_pair_question_does_not_bear_out_is_listed(workspace: Workspace) -> None:
    """L18: with both texts; what is borne out is not."""
    gluten, dairy = noted(workspace, GLUTEN), noted(workspace, DAIRY, minutes=1)
    three, four = noted(workspace, AT_THREE, minutes=2), noted(workspace, AT_FOUR, minutes=3)
    hide(dairy, into=gluten, status=EpisodeStatus.MERGED)
    hide(three, into=four, status=EpisodeStatus.SUPERSEDED)
    tea, again = noted(workspace, "I like tea.", minutes=4), noted(workspace, "I like tea!", minutes=5)
    hide(again, into=tea, status=EpisodeStatus.MERGED)
    [doubtful] = find_doubtful(workspace_id=workspace.pk)
    assert (doubtful.id, doubtful.text, doubtful.status) == (dairy.pk, DAIRY, "merged")
    assert (doubtful.kept, doubtful.kept_text) == (gluten.pk, GLUTEN)


def test_a_conflict_is_no_reason_to_merge(workspace: Workspace) -> None:
    """L18: brought back, the newer one supersedes the older."""
    three, four = noted(workspace, AT_THREE), noted(workspace, AT_FOUR, minutes=5)
    hide(four, into=three, status=EpisodeStatus.MERGED)
    found = find_doubtful(workspace_id=workspace.pk)
    assert [one.id for one in found] == [four.pk]
    restore_notes(workspace_id=workspace.pk, notes=found, actor=LENA, now=factories.NOW)
    tidy(workspace)
    assert statuses(three, four) == ["superseded", "active"]


def test_what_follows_its_survivor_is_compared_with_it(workspace: Workspace) -> None:
    """D3: not with the one that it was merged into first."""
    dairy, middle, gluten = (noted(workspace, text, minutes=n) for n, text in enumerate((DAIRY, GLUTEN, GLUTEN)))
    hide(gluten, into=middle, status=EpisodeStatus.MERGED)
    Episode.objects.filter(pk=gluten.pk).update(merged_into=dairy)
    assert find_doubtful(workspace_id=workspace.pk) == []


def test_what_a_person_hid_is_not_listed(workspace: Workspace) -> None:
    one = noted(workspace, GLUTEN)
    reason = "I said so"
    change_episode_status(ids=[one.pk], new=EpisodeStatus.SUPERSEDED, reason=reason, actor=LENA, now=factories.NOW)
    assert find_doubtful(workspace_id=workspace.pk) == []


def test_restored_notes_are_active_with_a_record(workspace: Workspace) -> None:
    """D3, L18: and maintenance leaves them alone."""
    gluten, dairy = noted(workspace, GLUTEN), noted(workspace, "I must not eat nuts.", minutes=1)
    hide(dairy, into=gluten, status=EpisodeStatus.MERGED)
    found = find_doubtful(workspace_id=workspace.pk)
    assert restore_notes(workspace_id=workspace.pk, notes=found, actor=LENA, now=factories.NOW) == [dairy.pk]
    dairy.refresh_from_db()
    assert (dairy.status, dairy.merged_into) == ("active", None)
    assert EpisodeEmbedding.objects.get(episode=dairy).is_active
    last = Transition.objects.order_by("-pk")[0]
    assert (last.old, last.new, last.actor) == ("merged", "active", str(LENA))
    assert tidy(workspace) == 0
    assert find_doubtful(workspace_id=workspace.pk) == []


def test_what_was_forgotten_meanwhile_does_not_come_back(workspace: Workspace) -> None:
    """B19."""
    gluten, nuts = noted(workspace, GLUTEN), noted(workspace, "I must not eat nuts.", minutes=1)
    hide(nuts, into=gluten, status=EpisodeStatus.MERGED)
    found = find_doubtful(workspace_id=workspace.pk)
    change_episode_status(ids=[nuts.pk], new=EpisodeStatus.FORGOTTEN, reason="asked to", actor=LENA, now=factories.NOW)
    assert restore_notes(workspace_id=workspace.pk, notes=found, actor=LENA, now=factories.NOW) == []
    assert statuses(nuts) == ["forgotten"]


def test_the_command_lists_and_with_restore_brings_back(
    workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    """L18: of its own workspace alone."""
    gluten, dairy = noted(workspace, GLUTEN), noted(workspace, DAIRY, minutes=1)
    hide(dairy, into=gluten, status=EpisodeStatus.MERGED)
    other = factories.workspace()
    first, second = noted(other, GLUTEN), noted(other, DAIRY, minutes=1)
    hide(second, into=first, status=EpisodeStatus.MERGED)

    call_command("review_merges", "--workspace", workspace.name)
    printed = capsys.readouterr().out
    assert GLUTEN in printed
    assert DAIRY in printed
    assert printed.endswith("1 note in doubt, 0 brought back\n")
    assert statuses(dairy) == ["merged"]

    call_command("review_merges", "--workspace", workspace.name, "--restore", "--json")
    told = json.loads(capsys.readouterr().out)
    assert told["restored"] == [dairy.pk]
    assert told["notes"][0]["kept"] == gluten.pk
    assert statuses(dairy, second) == ["active", "merged"]
