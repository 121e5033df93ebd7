"""GET /beliefs/{id}/lineage."""

import pytest

from memory.models import Belief, Lineage, Workspace
from tests import factories
from tests.api.caller import Caller, caller, is_problem

pytestmark = pytest.mark.django_db


def lead(parent: Belief, child: Belief, kind: str) -> None:
    Lineage.objects.create(
        workspace=parent.workspace, parent=parent, child=child, kind=kind, reason="disproved",
        created_at=factories.NOW,
    )  # fmt: skip


@pytest.fixture
def line(workspace: Workspace) -> dict[str, Belief]:
    """Store first → second → (left, right), and left merged with a stranger into one."""
    names = ("first", "second", "left", "right", "stranger", "one")
    line = {name: factories.belief(workspace=workspace, statement=f"The {name} holds.") for name in names}
    lead(line["first"], line["second"], "revision")
    lead(line["second"], line["left"], "split")
    lead(line["second"], line["right"], "split")
    lead(line["left"], line["one"], "merge")
    lead(line["stranger"], line["one"], "merge")
    return line


def shown(reader: Caller, belief: Belief) -> set[str]:
    answer = reader.get(f"/beliefs/{belief.pk}/lineage").json()
    return {one["statement"].split()[1] for one in answer["beliefs"]}


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("one", {"first", "second", "left", "stranger", "one"}),
        ("first", {"first", "second", "left", "right", "one"}),
        ("left", {"first", "second", "left", "one"}),
        ("stranger", {"stranger", "one"}),
    ],
)
def test_the_line_holds_ancestors_and_descendants(
    reader: Caller, line: dict[str, Belief], name: str, family: set[str]
) -> None:
    """B2: all that it came from, and all that came of it."""
    assert shown(reader, line[name]) == family


def test_each_change_names_both_ends_its_kind_and_reason(reader: Caller, line: dict[str, Belief]) -> None:
    """B2: a merge has two parents."""
    changes = reader.get(f"/beliefs/{line['one'].pk}/lineage").json()["changes"]
    told = {(change["parent"], change["child"], change["kind"]) for change in changes}
    assert told == {
        (line["first"].pk, line["second"].pk, "revision"),
        (line["second"].pk, line["left"].pk, "split"),
        (line["left"].pk, line["one"].pk, "merge"),
        (line["stranger"].pk, line["one"].pk, "merge"),
    }
    assert changes[0]["reason"] == "disproved"


def test_a_belief_without_relatives_is_alone(reader: Caller, workspace: Workspace) -> None:
    belief = factories.belief(workspace=workspace)
    answer = reader.get(f"/beliefs/{belief.pk}/lineage").json()
    assert ([one["id"] for one in answer["beliefs"]], answer["changes"]) == ([belief.pk], [])


def test_a_limited_key_sees_no_relative_of_another_project(workspace: Workspace) -> None:
    """B21."""
    ours, theirs = (factories.project(workspace=workspace) for _ in range(2))
    seen, hidden = (
        factories.belief(workspace=workspace, project=project, scope="project") for project in (ours, theirs)
    )
    lead(hidden, seen, "revision")
    answer = caller("read", workspace=workspace, projects=(ours,)).get(f"/beliefs/{seen.pk}/lineage").json()
    assert ([one["id"] for one in answer["beliefs"]], answer["changes"]) == ([seen.pk], [])


def test_another_workspaces_line_is_a_404(stranger: Caller, line: dict[str, Belief]) -> None:
    assert is_problem(stranger.get(f"/beliefs/{line['one'].pk}/lineage"), 404)


def test_a_key_that_may_only_write_reads_no_line(writer: Caller, line: dict[str, Belief]) -> None:
    assert is_problem(writer.get(f"/beliefs/{line['one'].pk}/lineage"), 403)


def test_a_missing_belief_is_a_404(reader: Caller) -> None:
    assert is_problem(reader.get("/beliefs/bl_000000000000/lineage"), 404)


def test_an_unknown_parameter_is_named(reader: Caller, line: dict[str, Belief]) -> None:
    response = reader.get(f"/beliefs/{next(iter(line.values())).pk}/lineage", depth=2)

    assert is_problem(response, 422)
    assert list(response.json()["errors"]) == ["depth"]
