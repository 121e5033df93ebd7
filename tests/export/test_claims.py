"""R14, E1: claims travel with their vectors, and what they are evidence of names them still."""

import json
from datetime import date
from typing import Any

import pytest

from memory.consolidation.rebuild import rebuild_beliefs
from memory.export.file_format import BrokenFile
from memory.models import Belief, Claim, ClaimEmbedding, ClusterJob, Episode, Evidence, Workspace
from tests import factories
from tests.consolidation.telling import Teller
from tests.export.files import edited, exported, imported, moved

pytestmark = pytest.mark.django_db

LIVED = ("I always drink oat milk in my coffee.", "My manager is Dana.")


def lived() -> Teller:
    """Return a workspace in which claims founded, bore out and ended beliefs; others came before it."""
    other = Teller(workspace=factories.workspace())
    other.cycle("I moved to Lisbon in March.")
    mara = Teller(workspace=factories.workspace())
    mara.cycle(*LIVED)
    mara.cycle("I stopped drinking oat milk.", "My manager is no longer Dana, it is Ravi now.")
    drawn = Claim.objects.filter(workspace=mara.workspace).earliest("pk")
    drawn.drew_on = [Episode.objects.get(workspace=mara.workspace, text=LIVED[1]).pk]
    drawn.holds_from = date(2026, 3, 1)
    drawn.because = mara.belief("Dana")
    drawn.category, drawn.entities, drawn.importance = "preference", ["oat milk"], 7
    drawn.save()
    return mara


def told(workspace: Workspace) -> list[Any]:
    rows = Evidence.objects.filter(workspace=workspace).order_by("belief", "episode")
    return list(rows.values_list("belief", "episode", "claim__episode", "claim__sentence", "claim__drew_on"))


def test_claims_are_the_same_to_the_last_byte_after_a_move() -> None:
    """R14: whatever keys the other database gives them."""
    mara = lived()
    before, vectors = told(mara.workspace), ClaimEmbedding.objects.filter(workspace=mara.workspace).count()
    assert vectors == 3

    file, fresh = moved(mara.workspace)

    assert exported(fresh) == file
    assert told(fresh) == before
    [drawn] = Claim.objects.filter(workspace=fresh, holds_from=date(2026, 3, 1))
    assert (drawn.because, drawn.category, drawn.importance) == (
        Belief.objects.get(workspace=fresh, statement__contains="Dana"), "preference", 7,
    )  # fmt: skip
    assert ClaimEmbedding.objects.filter(workspace=fresh).count() == vectors
    assert not Claim.objects.filter(workspace=fresh).exclude(episode__workspace=fresh).exists()
    assert ClusterJob.objects.filter(workspace=fresh, kind="claim", claim=None).count() == 0


def test_beliefs_are_replayed_as_they_stand_after_a_move() -> None:
    """R14, B22: what claims did is in the file."""
    mara = lived()
    _, fresh = moved(mara.workspace)
    assert rebuild_beliefs(workspace=fresh, now=mara.now, is_dry_run=True).differences == []


def test_a_file_from_before_there_were_claims_is_read() -> None:
    """R14: its episodes are unread, and its evidence names no claim."""
    mara = lived()

    def without_claims(lines: list[Any]) -> None:
        lines[:] = [line for line in lines if not line.keys() & {"claim", "claim_vector"}]
        for kind in ("claim", "claim_vector"):
            lines[0]["engram"]["rows"].pop(kind)
        for line in lines[1:]:
            [row] = line.values()
            for column in ("claim", "read_at", "ends_belief"):
                row.pop(column, None)
            if "verdict" in line:
                row["has_challenged"] = False  # a column of that time

    old = edited(exported(mara.workspace), without_claims)
    mara.workspace.delete()
    fresh = factories.workspace()

    imported(old, workspace=fresh)

    assert not Claim.objects.filter(workspace=fresh).exists()
    assert set(fresh.episodes.values_list("read_at", flat=True)) == {None}
    assert Evidence.objects.filter(workspace=fresh, claim=None).count() == len(told(fresh)) > 0


@pytest.mark.parametrize("day", ["2026-02-30", "2026-3-1", 20260301])
def test_a_day_that_there_is_not_is_refused(day: object) -> None:
    """R14: with its line."""
    mara = lived()

    def spoil(lines: list[Any]) -> None:
        next(line["claim"] for line in lines if "claim" in line)["holds_until"] = day

    broken = edited(exported(mara.workspace), spoil)
    mara.workspace.delete()
    with pytest.raises(BrokenFile, match=r"holds_until: (?:a day such as|there is no such day)"):
        imported(broken, workspace=factories.workspace())


def test_a_users_file_has_the_claims_of_their_episodes_alone() -> None:
    """R14: and their vectors."""
    mara = lived()
    mara.tell("I live in Porto.", user="toma")
    mara.cycle()

    rows = [json.loads(line) for line in exported(mara.workspace, user="toma").decode().splitlines()]

    assert [row["claim"]["sentence"] for row in rows if "claim" in row] == ["Toma lives in Porto."]
    assert len([row for row in rows if "claim_vector" in row]) == 1
