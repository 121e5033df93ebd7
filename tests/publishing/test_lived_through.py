"""P1, P2, P5: what stands in the files of lives that were lived through is what one SQL statement says."""

import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from pytest_django import Settings

from memory.models import Cycle, Workspace
from memory.publishing.memory_files import enable_file
from memory.publishing.publish import publish_after_cycle, publish_workspace
from memory.publishing.section import BELIEFS_END
from tests import factories
from tests.consolidation.inline import run_to_end
from tests.test_sample_lived_through import live_through, read_history
from workers.management.commands.demo import read_life

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

# P1: active, confident and of enough rows, borne out by enough origins, a person's or a conversation's among them. P2:
# of the file's project or of none, of its user or of none. P5: the ten best by confidence · ln(1 + evidence rows).
ORACLE = """
    SELECT path, '- ' || statement || ' (confidence: ' || to_char(confidence, 'FM0.00') || ', evidence: ' || rows || ')'
    FROM (
        SELECT f.path, b.statement, b.alpha / (b.alpha + b.beta) AS confidence, b.evidence_count AS rows,
            row_number() OVER (PARTITION BY f.id
                               ORDER BY b.alpha / (b.alpha + b.beta) * ln(1 + b.evidence_count) DESC, b.id) AS place
        FROM memory_memoryfile f JOIN memory_belief b ON b.workspace_id = f.workspace_id
            AND b.project_id IS NOT DISTINCT FROM f.project_id AND (b."user" = '' OR b."user" = f."user")
        WHERE f.workspace_id = %s AND b.status = 'active' AND b.alpha / (b.alpha + b.beta) >= 0.7
            AND b.evidence_count >= 3
            AND (SELECT count(DISTINCT e.origin) >= 2 AND bool_or(e.source IN ('human', 'interaction'))
                 FROM memory_evidence v JOIN memory_episode e ON e.id = v.episode_id
                 WHERE v.belief_id = b.id AND v.verdict = 'SUPPORTS' AND v.base_weight > 0
                     AND e.status NOT IN ('forgotten', 'invalidated'))
    ) ranked WHERE place <= 10 ORDER BY path, place
"""


def demo_history() -> list[dict[str, Any]]:
    """Return what `make demo` tells, with the news at its end."""
    life = read_life()
    return [json.loads(line) for line in life.to_lines([*life.messages, life.news]).splitlines()]


@pytest.mark.parametrize(
    ("lines", "fewest"),
    [
        (read_history(), {"mia.md": 2}),
        (demo_history(), {"Agnes.md": 1}),
    ],
    ids=["the sample history", "the demo"],
)
def test_the_files_of_a_life_are_what_sql_says_and_a_second_pass_writes_no_byte(
    lines: list[dict[str, Any]],
    fewest: Mapping[str, int],
    tmp_path: Path,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """P1, P2, P5, P7: with a file for no project and each, for no user and each, published by every cycle."""
    settings.ENGRAM_MEMORY_MD_ROOTS = [tmp_path]
    monkeypatch.setattr("memory.ingest.json_lines.wait_for_cycle", run_and_publish)
    workspace = factories.workspace()
    paths = _enable_all(workspace, lines, tmp_path)
    live_through(lines, workspace=workspace)

    told = {path.name: _trusted_lines(path) for path in paths}
    assert told == {path.name: expected for path, expected in _ask_oracle(workspace, paths).items()}
    assert all(len(told[name]) >= least for name, least in fewest.items()), told
    written = [path for path in paths if path.exists()]
    assert all(_height(path) <= 30 for path in written)

    before = [_state(path) for path in written]
    last = Cycle.objects.for_workspace(workspace).latest("now")
    done = publish_workspace(workspace_id=workspace.pk, now=last.now)
    assert (done.written, done.failed) == (0, 0)
    assert [_state(path) for path in written] == before


def run_and_publish(cycle_id: str, **_: object) -> Cycle:
    """End a cycle as a worker does."""
    cycle = run_to_end(cycle_id)
    publish_after_cycle(cycle_id=cycle_id)
    return cycle


def _height(path: Path) -> int:
    """Count the lines of the beliefs' section."""
    lines = path.read_text().splitlines()
    return lines.index(BELIEFS_END) + 1 if BELIEFS_END in lines else 0


def _enable_all(workspace: Workspace, lines: Sequence[Mapping[str, Any]], folder: Path) -> list[Path]:
    """Publish for no project and each that the lines name, for no user and each."""
    slugs = sorted({line["project"] for line in lines if "project" in line})
    projects = [None, *(factories.project(workspace=workspace, slug=slug) for slug in slugs)]
    paths = []
    for project in projects:
        for user in ["", *sorted({line["user"] for line in lines})]:
            path = folder / f"{user or 'nobody'}{f' in {project.slug}' if project else ''}.md"
            enable_file(workspace=workspace, path=path, project=project, user=user, now=factories.NOW)
            paths.append(path)
    return paths


def _ask_oracle(workspace: Workspace, paths: Sequence[Path]) -> dict[Path, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    with connection.cursor() as cursor:
        cursor.execute(ORACLE, [workspace.pk])
        for path, line in cursor.fetchall():
            found[path].append(line)
    return {path: found[str(path)] for path in paths}


def _trusted_lines(path: Path) -> list[str]:
    """Read the bullets below the heading Beliefs, in their order."""
    beliefs = path.read_text().partition(BELIEFS_END)[0] if path.exists() else ""  # memories of their own may follow
    section = beliefs.partition("## Former Beliefs")[0]
    return [line for line in section.splitlines() if line.startswith("- ")]


def _state(path: Path) -> tuple[int, int, str]:
    seen = path.stat()
    return seen.st_ino, seen.st_mtime_ns, hashlib.sha256(path.read_bytes()).hexdigest()
