"""B21: what a recall may reach, by workspace, project and the limits of a key."""

import pytest

from memory.models import Belief, Episode, Project, Workspace
from memory.search.related import read_texts
from tests import factories
from tests.recall.memories import ask, believed, remembered

pytestmark = pytest.mark.django_db


@pytest.fixture
def workspace() -> Workspace:
    return factories.workspace()


@pytest.fixture
def ours(workspace: Workspace) -> Project:
    return factories.project(workspace=workspace, slug="ours")


@pytest.fixture
def theirs(workspace: Workspace) -> Project:
    return factories.project(workspace=workspace, slug="theirs")


@pytest.fixture(autouse=True)
def memories(workspace: Workspace, ours: Project, theirs: Project) -> None:
    """Store an episode and a belief for each project and for none, the global beliefs with different evidence."""
    places = {"ours": ours, "theirs": theirs, "none": None}
    episodes = {
        name: remembered(f"tea episode {name}", workspace=workspace, project=place) for name, place in places.items()
    }
    for name in ("ours", "theirs"):
        believed(f"tea belief {name}", workspace=workspace, project=places[name])
    for name, evidence in {"of ours": ["ours"], "of both": ["ours", "theirs"], "of none": ["ours", "none"]}.items():
        belief = believed(f"tea global {name}", workspace=workspace)
        for place in evidence:
            factories.evidence(belief=belief, episode=episodes[place])
    believed("tea global of nothing", workspace=workspace)
    remembered("tea elsewhere", workspace=factories.workspace())


GLOBALS = {"tea global of ours", "tea global of both", "tea global of none", "tea global of nothing"}


def texts(
    workspace: Workspace, project: Project | None = None, limited_to: tuple[Project, ...] | None = None
) -> set[str]:
    recalled = ask("tea", workspace=workspace, project=project, limited_to=limited_to, limit=50)
    return {result.text for result in recalled.results}


def test_without_a_project_the_whole_workspace_answers(workspace: Workspace) -> None:
    everything = {f"tea {kind} {name}" for kind in ("episode", "belief") for name in ("ours", "theirs")}
    assert texts(workspace) == everything | {"tea episode none"} | GLOBALS


def test_with_a_project_its_own_and_the_global_answer(workspace: Workspace, ours: Project) -> None:
    assert texts(workspace, project=ours) == {"tea episode ours", "tea belief ours", "tea episode none"} | GLOBALS


@pytest.mark.parametrize("names_project", [True, False])
def test_a_limited_viewer_sees_only_what_is_wholly_theirs(
    workspace: Workspace, ours: Project, names_project: bool
) -> None:
    """B21: no episode without a project, and a global belief only if all projects of its evidence are among theirs."""
    seen = texts(workspace, project=ours if names_project else None, limited_to=(ours,))
    assert seen == {"tea episode ours", "tea belief ours", "tea global of ours"}


def test_a_viewer_limited_to_both_projects_sees_what_rests_on_both(
    workspace: Workspace, ours: Project, theirs: Project
) -> None:
    seen = texts(workspace, limited_to=(ours, theirs))
    assert {"tea global of both", "tea episode theirs"} <= seen
    assert not {"tea global of none", "tea global of nothing", "tea episode none"} & seen


def test_a_limited_viewer_gains_nothing_by_naming_another_project(
    workspace: Workspace, ours: Project, theirs: Project
) -> None:
    assert not {text for text in texts(workspace, project=theirs, limited_to=(ours,)) if "theirs" in text}


def test_a_viewer_limited_to_no_project_sees_nothing(workspace: Workspace) -> None:
    assert texts(workspace, limited_to=()) == set()


def test_texts_are_read_only_for_whoever_may_see_them(workspace: Workspace, ours: Project) -> None:
    """B21: by ids, however these were come by."""
    episodes = dict(Episode.objects.values_list("pk", "text"))
    beliefs = dict(Belief.objects.values_list("pk", "statement"))

    def read(workspace: Workspace, allowed: tuple[int, ...] | None) -> set[str]:
        texts = read_texts(episodes=[*episodes], beliefs=[*beliefs], workspace_id=workspace.pk, allowed=allowed)
        return {text.text for text in texts.values()}

    assert read(workspace, None) == {*episodes.values(), *beliefs.values()} - {"tea elsewhere"}
    assert read(workspace, (ours.pk,)) == {"tea episode ours", "tea belief ours", "tea global of ours"}
    assert read(workspace, ()) == set()
    assert read(factories.workspace(), None) == set()
