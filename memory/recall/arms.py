"""Which way the nearest vectors are searched for: it goes by how many there are (B17)."""

from memory.domain.policy import RecallPolicy
from memory.models.reach import Reach
from memory.models.search_statements import VectorArm
from memory.models.vector_counts import count_in_reach
from memory.models.vector_indexes import narrowest_index
from memory.models.vector_kinds import VectorKind


def arm_for(*, kind: VectorKind, model: str, reach: Reach, policy: RecallPolicy) -> VectorArm:
    """Choose the vector arm of a search from counts that were kept, or for a user's memories from a bounded count."""
    if reach.is_narrowed:
        return VectorArm.JOIN
    count = count_in_reach(kind=kind, model=model, reach=reach, most=policy.exact_vectors)
    if count <= policy.exact_vectors:
        return VectorArm.SCAN
    index, indexed = narrowest_index(kind=kind, workspace_id=reach.workspace_id, model=model)
    return choose_arm(count=count, index=index, indexed=indexed, policy=policy)


def choose_arm(*, count: int, index: VectorArm, indexed: int, policy: RecallPolicy) -> VectorArm:
    """Choose between an index and a scan: an index that mostly holds what is not asked for is slow, and overlooks much.

    `count` vectors are in question, `indexed` in the index; `index` is NONE where there is no index. To search an index
    costs as much as to compare `exact_vectors`, and that as often as it takes to come upon enough that is asked for.
    """
    share = min(count / max(indexed, 1), 1.0)
    if index == VectorArm.NONE or share <= policy.least_index_share or count * share <= policy.exact_vectors:
        return VectorArm.SCAN
    return index
