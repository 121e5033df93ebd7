"""Recall goes on by text alone where the embedding model fails, and says so."""

import pytest

from memory.llm.embeddings import WrongDimensions
from memory.llm.model import CallFailed, FailureKind
from memory.llm.static_embeddings import StaticEmbedder
from tests import factories
from tests.recall.memories import ask, believed, ids, remembered

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    "failure", [CallFailed("stalled", kind=FailureKind.TIMEOUT), WrongDimensions(model="odd", dimensions=3072)]
)
def test_a_failing_embedder_leaves_the_text_channel(monkeypatch: pytest.MonkeyPatch, failure: Exception) -> None:
    workspace = factories.workspace()
    episode = remembered("Mara likes tea.", workspace=workspace)
    belief = believed("Mara prefers tea.", workspace=workspace)
    remembered("Our cat adores tuna.", workspace=workspace)

    def fail(*_: object, **__: object) -> None:
        raise failure

    monkeypatch.setattr(StaticEmbedder, "embed", fail)
    recalled = ask("Mara's tea", workspace=workspace)
    assert recalled.degraded == ("vectors",)
    assert ids(recalled) == {episode.pk, belief.pk}
