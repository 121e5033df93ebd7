"""Which beliefs say what a new statement says: above 0.92, and past the guard (B8.5, B22)."""

from django.conf import settings
from django.db.models import QuerySet

from memory.domain.erasure import digest_of_statement
from memory.ledger.guarding import passes_guard
from memory.ledger.statements import BeliefSource, source_of_belief
from memory.llm.workspace_model import embedder_of
from memory.models import Belief, Erased, Workspace
from memory.models.nearest import alike_beliefs
from memory.models.vectors import Vectors


def find_same(*, workspace_id: int, candidate: BeliefSource, vector: Vectors, among: QuerySet[Belief]) -> str | None:
    """Return the id of the most similar belief that says what a candidate (768) says, None where none does."""
    model = embedder_of(workspace_id)
    threshold = float(model.profile.raw(settings.POLICY.consolidation.twin_similarity))
    alike = alike_beliefs(workspace_id=workspace_id, among=among, model=model.name, vector=vector, above=threshold)
    beliefs = Belief.objects.defer("search").in_bulk(alike)
    return next(
        (key for key in alike if passes_guard(left=candidate.claim, right=source_of_belief(belief=beliefs[key]).claim)),
        None,
    )


def find_tombstone(*, workspace_id: int, candidate: BeliefSource, vector: Vectors) -> str | None:
    """Find what says the same and a person archived or had forgotten, where the candidate would be seen (B22)."""
    beliefs = Belief.objects.for_workspace(workspace_id).tombstones().visible_in(candidate.project_id)
    mine = beliefs.filter(user__in=("", candidate.user), language=candidate.language)
    return find_same(workspace_id=workspace_id, candidate=candidate, vector=vector, among=mine)


def was_erased(*, workspace_id: int, candidate: BeliefSource) -> bool:
    """Tell whether a belief was erased that said just this (L4); of another wording nobody can tell."""
    key = Workspace.objects.values_list("erasure_key", flat=True).get(pk=workspace_id)
    if key is None:
        return False
    digest = digest_of_statement(key=bytes(key), user=candidate.user, statement=candidate.statement)
    return bool(Erased.objects.for_workspace(workspace_id).filter(digest=digest).exists())
