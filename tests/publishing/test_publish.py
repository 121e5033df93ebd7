"""P1 to P6, P10, P11: the most trusted beliefs stand in the agent's own file, and leave it in two stages."""

import io
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import call_command
from django.db import connection
from django.db.models.functions import Now

from memory.consolidation.curation import BeliefText
from memory.domain.identity import EXTRACTION_ACTOR, Actor, ActorKind
from memory.domain.lifecycle import BeliefStatus
from memory.erasure.erase import erase_memories
from memory.export.exporter import export_workspace
from memory.export.importer import import_workspace
from memory.forgetting import forget_episode
from memory.ingest.corrections import correct_belief
from memory.language.sentences import strip_echo
from memory.ledger.gates import close_belief
from memory.ledger.transactions import Author, change_status
from memory.models import (
    Belief,
    Cycle,
    Episode,
    MemoryFile,
    PublicationDue,
    PublicationStep,
    PublishedBelief,
    Workspace,
)
from memory.publishing.folders import UnsafePath
from memory.publishing.memory_files import PathTaken, disable_file, enable_file
from memory.publishing.publish import publish_after_cycle, publish_due, publish_workspace
from memory.publishing.writing import write_sections
from tests import factories
from tests.publishing.passes import MINE, NOW, cycle, trusted

LENA = Actor(kind=ActorKind.PERSON, name="lena")


def doubt(belief: Belief, confidence: float) -> None:
    """Let a belief have another confidence."""
    Belief.objects.filter(pk=belief.pk).update(alpha=10 * confidence, beta=10 * (1 - confidence))


def lines_of(file: MemoryFile) -> list[str]:
    """Read the bullets of our section."""
    content = Path(file.path).read_bytes()
    assert content.endswith(MINE)
    return [line for line in content.removesuffix(MINE).decode().splitlines() if line.startswith("- ")]


def test_trusted_beliefs_stand_above_what_a_person_wrote(workspace: Workspace, file: MemoryFile) -> None:
    belief = trusted(workspace, "Mia prefers the train.")
    assert cycle(workspace) == {"graduated": 0, "promoted": 1, "demoted": 0, "removed": 0}
    assert lines_of(file) == ["- Mia prefers the train. (confidence: 0.83, evidence: 4)"]
    belief.refresh_from_db()
    assert (belief.promoted_at, belief.demoted_at, belief.published_confidence) == (NOW, None, belief.confidence)


def of_one_origin(workspace: Workspace) -> None:
    belief = trusted(workspace, "Of one origin.")
    Episode.objects.filter(evidence__belief=belief).update(origin="session:one")


def of_machines_alone(workspace: Workspace) -> None:
    belief = trusted(workspace, "Of machines alone.")
    Episode.objects.filter(evidence__belief=belief).update(source="ai")


def with_a_person_against(workspace: Workspace) -> None:
    belief = trusted(workspace, "Of machines, and a person says no.", supports=6, beta=1.5)
    Episode.objects.filter(evidence__belief=belief).update(source="ai")
    denial = factories.episode(workspace=workspace, source="human")
    factories.evidence(belief=belief, episode=denial, verdict="CONTRADICTS")


def of_forgotten_words(workspace: Workspace) -> None:
    belief = trusted(workspace, "Of a person's forgotten words.")
    Episode.objects.filter(evidence__belief=belief, source="human").update(status="forgotten")


@pytest.mark.parametrize(
    "store",
    [
        lambda workspace: trusted(workspace, "Too little evidence.", supports=2, beta=0.5),
        lambda workspace: trusted(workspace, "Not sure enough.", beta=3.0),
        lambda workspace: trusted(workspace, "Challenged.", status="challenged"),
        lambda workspace: trusted(workspace, "Another user's.", user="otis"),
        lambda workspace: trusted(
            workspace, "A project's.", scope="project", project=factories.project(workspace=workspace)
        ),
        of_one_origin,
        of_machines_alone,
        with_a_person_against,
        of_forgotten_words,
    ],
)
def test_what_is_not_trusted_enough_is_not_promoted(
    workspace: Workspace, file: MemoryFile, store: Callable[[Workspace], object]
) -> None:
    store(workspace)
    assert cycle(workspace)["promoted"] == 0
    assert Path(file.path).read_bytes() == MINE


def test_a_second_pass_writes_nothing(workspace: Workspace, file: MemoryFile) -> None:
    trusted(workspace, "Mia prefers the train.")
    cycle(workspace)
    seen = Path(file.path).stat()
    assert cycle(workspace, days=1) == {"graduated": 0, "promoted": 0, "demoted": 0, "removed": 0}
    assert (Path(file.path).stat().st_ino, Path(file.path).stat().st_mtime_ns) == (seen.st_ino, seen.st_mtime_ns)


def test_what_is_doubted_is_a_former_belief_and_then_removed(workspace: Workspace, file: MemoryFile) -> None:
    """P4: in two cycles, each of which leaves a row."""
    belief = trusted(workspace, "Mia drinks coffee.")
    cycle(workspace)
    doubt(belief, 0.4)
    assert cycle(workspace, days=1) == {"graduated": 0, "promoted": 0, "demoted": 1, "removed": 0}
    assert lines_of(file) == ["- [NO LONGER TRUE] Mia drinks coffee. (was: 0.83, now: 0.40, demoted: 2026-03-02)"]
    belief.refresh_from_db()
    assert belief.demoted_at == NOW + timedelta(days=1)

    assert cycle(workspace, days=2) == {"graduated": 0, "promoted": 0, "demoted": 0, "removed": 1}
    assert lines_of(file) == []
    belief.refresh_from_db()
    assert [belief.promoted_at, belief.demoted_at, belief.published_confidence] == [None] * 3
    steps = PublicationStep.objects.for_workspace(workspace).order_by("pk").values_list("step", flat=True)
    assert list(steps) == ["promote", "demote", "remove"]


def test_what_a_pass_takes_away_by_itself_is_a_former_belief_first(workspace: Workspace, file: MemoryFile) -> None:
    """P4: no person did, so that it is told that it holds no more."""
    belief = trusted(workspace, "Mia drinks coffee.")
    cycle(workspace)
    change_status(belief=belief, new=BeliefStatus.ARCHIVED, reason="doubtful", actor=EXTRACTION_ACTOR, now=NOW)
    assert cycle(workspace, days=1)["demoted"] == 1
    assert cycle(workspace, days=2)["removed"] == 1


def test_what_is_demoted_between_cycles_stands_there_when_the_next_one_publishes(
    workspace: Workspace, file: MemoryFile
) -> None:
    belief = trusted(workspace, "Mia drinks coffee.")
    cycle(workspace)
    doubt(belief, 0.4)
    assert publish_due(now=NOW + timedelta(hours=1)) == [workspace.pk]
    assert cycle(workspace, days=1)["removed"] == 0
    assert len(lines_of(file)) == 1
    assert cycle(workspace, days=2)["removed"] == 1


def test_a_former_belief_of_middling_confidence_leaves_after_thirty_days(
    workspace: Workspace, file: MemoryFile
) -> None:
    belief = trusted(workspace, "Mia drinks coffee.")
    cycle(workspace)
    doubt(belief, 0.6)
    cycle(workspace, days=1)
    assert cycle(workspace, days=30)["removed"] == 0
    assert cycle(workspace, days=31)["removed"] == 1


def test_a_belief_that_recovers_is_promoted_again(workspace: Workspace, file: MemoryFile) -> None:
    belief = trusted(workspace, "Mia drinks coffee.")
    cycle(workspace)
    doubt(belief, 0.6)
    cycle(workspace, days=1)
    doubt(belief, 0.9)
    assert cycle(workspace, days=2) == {"graduated": 0, "promoted": 1, "demoted": 0, "removed": 0}
    assert lines_of(file) == ["- Mia drinks coffee. (confidence: 0.90, evidence: 4)"]
    belief.refresh_from_db()
    assert (belief.promoted_at, belief.demoted_at) == (NOW, None)


def test_of_what_ended_on_a_day_the_day_is_told(workspace: Workspace, file: MemoryFile) -> None:
    """P3: what it was believed with in its time is as sure as before (C2); whoever's key brought the words."""
    belief = trusted(workspace, "Mia drinks coffee.")
    cycle(workspace)
    reading = Author(actor=Actor(kind=ActorKind.KEY, name="ek_1"), reason="read", now=NOW + timedelta(hours=2))
    close_belief(belief=belief, at=NOW + timedelta(hours=1), author=reading)
    assert cycle(workspace, days=1)["demoted"] == 1
    [line] = lines_of(file)
    assert line == "- [NO LONGER TRUE] Mia drinks coffee. (was: 0.83, ended: 2026-03-01, demoted: 2026-03-02)"
    assert strip_echo(line) == ""


def test_the_best_ten_have_a_place_and_what_overflows_is_no_former_belief(
    workspace: Workspace, file: MemoryFile
) -> None:
    """P5: rank is confidence · ln(1 + evidence)."""
    worst, *_ = [trusted(workspace, f"Belief {n}.", supports=n) for n in range(4, 14)]
    cycle(workspace)
    assert [line.split("(")[0] for line in lines_of(file)] == [f"- Belief {n}. " for n in range(13, 3, -1)]
    trusted(workspace, "The best of all.", supports=20)
    assert cycle(workspace, days=1) == {"graduated": 0, "promoted": 1, "demoted": 0, "removed": 0}
    assert len(lines_of(file)) == 10
    assert "NO LONGER" not in Path(file.path).read_text()
    worst.refresh_from_db()
    assert worst.promoted_at is None


def test_at_most_five_former_beliefs_are_shown_the_newest_first(workspace: Workspace, file: MemoryFile) -> None:
    beliefs = [trusted(workspace, f"Belief {n}.") for n in range(7)]
    cycle(workspace)
    for day, belief in enumerate(beliefs, start=1):
        doubt(belief, 0.6)
        cycle(workspace, days=day)
    assert [line.split(" (")[0] for line in lines_of(file)] == [
        f"- [NO LONGER TRUE] Belief {n}." for n in (6, 5, 4, 3, 2)
    ]


@pytest.mark.parametrize("status", [BeliefStatus.FORGOTTEN, BeliefStatus.INVALIDATED, BeliefStatus.ARCHIVED])
def test_what_a_person_takes_away_leaves_at_once(workspace: Workspace, file: MemoryFile, status: BeliefStatus) -> None:
    belief = trusted(workspace, "Mia drinks coffee.")
    cycle(workspace)
    change_status(belief=belief, new=status, reason="wrong", actor=LENA, now=NOW)
    publish_due(now=NOW)
    assert lines_of(file) == []
    assert "coffee" not in Path(file.path).read_text()


@pytest.mark.parametrize("kind", [ActorKind.PERSON, ActorKind.KEY, ActorKind.COMMAND])
@pytest.mark.parametrize("statement", ["", "Mia prefers the bus."])
def test_what_is_corrected_is_not_called_untrue(
    workspace: Workspace, file: MemoryFile, kind: ActorKind, statement: str
) -> None:
    """Whoever corrects it, with what is right or without."""
    belief = trusted(workspace, "Mia prefers the train.")
    cycle(workspace)
    author = Author(actor=Actor(kind=kind, name="lena"), reason="She told me.", now=NOW)
    correct_belief(belief=belief, wording=BeliefText(statement=statement) if statement else None, author=author)
    publish_due(now=NOW)
    assert b"the train" not in Path(file.path).read_bytes()


def test_what_lives_on_in_others_is_not_called_untrue(workspace: Workspace, file: MemoryFile) -> None:
    belief = trusted(workspace, "Mia drinks coffee.")
    cycle(workspace)
    actor = Actor(kind=ActorKind.CYCLE, name="cy_000000000000")
    change_status(belief=belief, new=BeliefStatus.MERGED, reason="merged", actor=actor, now=NOW)
    cycle(workspace, days=1)
    assert lines_of(file) == []


def test_what_is_erased_leaves_no_trace_in_the_file(workspace: Workspace, file: MemoryFile) -> None:
    belief = trusted(workspace, "Mia drinks coffee.")
    cycle(workspace)
    erase_memories(workspace=workspace, episodes=Episode.objects.none(), beliefs=[belief.pk], actor=LENA, now=NOW)
    publish_due(now=NOW)
    assert Path(file.path).read_bytes() == MINE
    assert not PublicationStep.objects.filter(workspace=workspace).exists()


def test_forgetting_the_words_that_it_rests_on_reaches_the_file(workspace: Workspace, file: MemoryFile) -> None:
    belief = trusted(workspace, "Mia drinks coffee.", supports=3)
    cycle(workspace)
    episode = Episode.objects.filter(evidence__belief=belief).order_by("pk")[0]
    forget_episode(episode=episode, actor=LENA, now=NOW)
    publish_due(now=NOW)
    [line] = lines_of(file)
    assert line.startswith("- [NO LONGER TRUE]")


@pytest.mark.parametrize("column", [{"alpha": 9.0}, {"status": "challenged"}, {"statement": "Other words."}])
def test_every_change_is_noted_with_it_whoever_made_it(
    workspace: Workspace, file: MemoryFile, column: dict[str, Any]
) -> None:
    belief, other = trusted(workspace, "Mia drinks coffee."), factories.workspace()
    elsewhere = trusted(other, "Where nothing is published.")
    PublicationDue.objects.all().delete()
    Belief.objects.filter(pk__in=(belief.pk, elsewhere.pk)).update(importance=3)
    assert not PublicationDue.objects.exists()
    Belief.objects.filter(pk__in=(belief.pk, elsewhere.pk)).update(**column)
    assert list(PublicationDue.objects.values_list("workspace", flat=True)) == [workspace.pk]
    publish_due(now=NOW)
    assert not PublicationDue.objects.exists()


def test_a_file_that_fails_is_tried_again_in_a_while_and_told_of_once(
    workspace: Workspace, file: MemoryFile, caplog: pytest.LogCaptureFixture
) -> None:
    """P11: a broken file costs the others nothing, nor a pass every two seconds."""
    belief = trusted(workspace, "Mia prefers the train.")
    publish_workspace(workspace_id=workspace.pk, now=NOW)
    PublicationDue.objects.all().delete()
    Path(file.path).unlink()
    Path(file.path).mkdir()
    for confidence in (0.8, 0.9):
        doubt(belief, confidence)
        assert publish_due(now=NOW) == [workspace.pk]
        assert publish_due(now=NOW) == []
    assert [row.message.count("memory_file_not_written") for row in caplog.records if row.levelname == "WARNING"] == [1]
    Path(file.path).rmdir()
    PublicationDue.objects.update(due_at=Now())
    assert publish_due(now=NOW) == [workspace.pk]
    assert "- Mia prefers the train. (confidence: 0.90, evidence: 4)" in Path(file.path).read_text()


def test_what_becomes_due_during_a_pass_stays_due(
    workspace: Workspace, file: MemoryFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row of a longer transaction may come later than its number says."""
    first, late = (PublicationDue.objects.create(workspace=workspace) for _ in range(2))
    late_pk = late.pk - 10
    PublicationDue.objects.filter(pk=late.pk).delete()

    def write_meanwhile(**given: Any) -> bool:
        PublicationDue.objects.create(pk=late_pk, workspace=workspace)
        return write_sections(**given)

    monkeypatch.setattr("memory.publishing.publish.write_sections", write_meanwhile)
    publish_due(now=NOW)
    assert list(PublicationDue.objects.values_list("pk", flat=True)) == [late_pk]
    assert first.pk > late_pk


def test_a_file_that_breaks_our_code_costs_others_nothing(
    workspace: Workspace, file: MemoryFile, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    enable_file(workspace=workspace, path=root / "mia.md", project=None, user="mia", now=NOW)
    trusted(workspace, "Mia prefers the train.")

    def write_some(**given: Any) -> bool:
        if given["file"].pk == file.pk:
            raise ValueError("broken")
        return write_sections(**given)

    monkeypatch.setattr("memory.publishing.publish.write_sections", write_some)
    assert publish_workspace(workspace_id=workspace.pk, now=NOW).failed == 1
    assert "- Mia prefers the train." in (root / "mia.md").read_text()
    assert PublicationDue.objects.count() == 1


def test_a_cycle_publishes_once_and_again_where_it_could_not(workspace: Workspace, file: MemoryFile) -> None:
    counts = cycle(workspace)
    ended = Cycle.objects.get()
    memory = trusted(workspace, "Mia prefers the train.")
    publish_after_cycle(cycle_id=ended.pk)
    memory.refresh_from_db()
    assert (counts["promoted"], memory.promoted_at) == (0, None)
    Cycle.objects.update(counts={})
    publish_after_cycle(cycle_id=ended.pk)
    ended.refresh_from_db()
    assert ended.counts["promoted"] == 1


def test_only_one_worker_publishes_what_is_due(workspace: Workspace, file: MemoryFile) -> None:
    trusted(workspace, "Mia prefers the train.")
    PublicationDue.objects.create(workspace=workspace)
    facts = connection.settings_dict
    with psycopg.connect(host=facts["HOST"], port=facts["PORT"], user=facts["USER"], dbname=facts["NAME"]) as other:
        other.execute("SELECT pg_advisory_lock(6, 0)")
        assert publish_due(now=NOW) == []
        other.execute("SELECT pg_advisory_unlock(6, 0)")
        assert publish_due(now=NOW) == [workspace.pk]


def test_files_take_their_own_users_and_projects_beliefs(workspace: Workspace, root: Path) -> None:
    """P2: a test over users, paths and scopes."""
    project = factories.project(workspace=workspace)
    scopes = [(scope, user) for scope in (None, project) for user in ("", "mia", "otis")]
    for scope, user in scopes:
        trusted(
            workspace, f"Of {user or 'nobody'} in {scope or 'no project'}.", user=user, project=scope,
            scope="project" if scope else "global",
        )  # fmt: skip
    for number, (scope, user) in enumerate(scopes):
        enable_file(workspace=workspace, path=root / f"{number}.md", project=scope, user=user, now=NOW)
    publish_workspace(workspace_id=workspace.pk, now=NOW)
    for number, (scope, user) in enumerate(scopes):
        told = {line.split(" (")[0] for line in (root / f"{number}.md").read_text().splitlines() if line[:2] == "- "}
        assert told == {f"- Of {whose} in {scope or 'no project'}." for whose in {"nobody", user or "nobody"}}


def test_a_missing_project_folder_is_left_out_and_the_others_are_written(workspace: Workspace, root: Path) -> None:
    """P9: and `.claude/memory` is made within one that is there."""
    gone, there = factories.project(workspace=workspace), factories.project(workspace=workspace)
    (root / "there").mkdir()
    for project, name in ((gone, "gone"), (there, "there")):
        trusted(workspace, f"Of {name}.", scope="project", project=project)
        path = root / name / ".claude" / "memory" / "MEMORY.md"
        enable_file(workspace=workspace, path=path, project=project, user="", now=NOW)
    done = publish_workspace(workspace_id=workspace.pk, now=NOW)
    assert (done.promoted, done.failed) == (1, 1)
    assert "Of there." in (root / "there" / ".claude" / "memory" / "MEMORY.md").read_text()
    assert "is not there" in MemoryFile.objects.get(project=gone).problem
    assert not PublishedBelief.objects.filter(file__project=gone).exists()
    (root / "gone").mkdir()
    assert publish_workspace(workspace_id=workspace.pk, now=NOW).promoted == 1
    assert MemoryFile.objects.get(project=gone).problem == ""


def test_a_path_belongs_to_one_workspace_and_one_scope(file: MemoryFile, workspace: Workspace, root: Path) -> None:
    with pytest.raises(PathTaken):
        enable_file(workspace=factories.workspace(), path=Path(file.path), project=None, user="", now=NOW)
    with pytest.raises(PathTaken):
        enable_file(workspace=workspace, path=root / "OTHER.md", project=None, user="", now=NOW)
    with pytest.raises(UnsafePath):
        enable_file(workspace=workspace, path=root.parent / "MEMORY.md", project=None, user="mia", now=NOW)


def test_disabling_takes_our_section_out_and_clears_the_dates(workspace: Workspace, file: MemoryFile) -> None:
    belief = trusted(workspace, "Mia drinks coffee.")
    cycle(workspace)
    disable_file(file=file)
    assert Path(file.path).read_bytes() == MINE
    belief.refresh_from_db()
    assert [belief.promoted_at, belief.demoted_at, belief.published_confidence] == [None] * 3


def test_the_command_enables_writes_and_removes(
    workspace: Workspace, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trusted(workspace, "Mia drinks coffee.")
    path = root / "MEMORY.md"
    call_command("write_memory_md", workspace=workspace.name, enable=True, path=path)
    assert "1 promoted" in capsys.readouterr().out
    assert "Mia drinks coffee." in path.read_text()
    call_command("write_memory_md", workspace=workspace.name)
    assert f"{path}: up to date" in capsys.readouterr().out
    call_command("write_memory_md", workspace=workspace.name, remove=True)
    assert path.read_bytes() == MINE


def test_a_belief_that_moves_to_another_machine_is_published_there_anew(workspace: Workspace, file: MemoryFile) -> None:
    trusted(workspace, "Mia prefers the train.")
    cycle(workspace)
    written = b"".join(block.data for block in export_workspace(workspace=workspace))
    other = factories.workspace()
    workspace.delete()
    import_workspace(workspace=other, stream=io.BytesIO(written), actor=LENA, now=NOW)
    belief = Belief.objects.for_workspace(other).get()
    assert [belief.promoted_at, belief.demoted_at, belief.published_confidence] == [None] * 3
    publish_due(now=NOW)
    assert not PublicationDue.objects.exists()


ORACLE = """
    SELECT b.statement FROM memory_belief b JOIN memory_workspace w ON w.id = b.workspace_id
    WHERE b.workspace_id = %s AND b.status = 'active' AND b.project_id IS NULL AND b."user" = ''
        AND b.alpha / (b.alpha + b.beta) >= 0.7 AND b.evidence_count >= 3
        AND (SELECT count(DISTINCT e.origin) >= 2 AND bool_or(e.source IN ('human', 'interaction'))
             FROM memory_evidence v JOIN memory_episode e ON e.id = v.episode_id
             WHERE v.belief_id = b.id AND v.base_weight > 0 AND e.status NOT IN ('forgotten', 'invalidated'))
    ORDER BY b.alpha / (b.alpha + b.beta) * ln(1 + b.evidence_count) DESC, b.id LIMIT 10
"""


def test_what_is_promoted_is_what_sql_says(workspace: Workspace, file: MemoryFile) -> None:
    for number in range(40):
        trusted(workspace, f"Belief {number}.", supports=1 + number % 9, beta=0.5 + number % 4)
    cycle(workspace)
    with connection.cursor() as cursor:
        cursor.execute(ORACLE, [workspace.pk])
        expected = [statement for (statement,) in cursor.fetchall()]
    assert [line[2:].split(" (")[0] for line in lines_of(file)] == expected
    assert len(expected) == 10
