import itertools
from enum import StrEnum

import pytest

from memory.domain.lifecycle import (
    BeliefStatus,
    ConsolidationState,
    CycleState,
    EpisodeStatus,
    IllegalTransitionError,
    JobState,
    check_transition,
    next_states,
)

ALL: list[type[StrEnum]] = [EpisodeStatus, BeliefStatus, ConsolidationState, CycleState, JobState]


@pytest.mark.parametrize("states", ALL)
def test_every_state_has_its_row(states: type[StrEnum]) -> None:
    """D3: one table, and no status outside it; none follows itself."""
    followers = {state: next_states(state=state) for state in states}

    assert all(type(new) is states for new in itertools.chain(*followers.values()))
    assert not any(state in followers[state] for state in states)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (EpisodeStatus.ACTIVE, EpisodeStatus.FORGOTTEN),
        (EpisodeStatus.ARCHIVED, EpisodeStatus.ACTIVE),
        (BeliefStatus.ACTIVE, BeliefStatus.ARCHIVED),
        (BeliefStatus.ARCHIVED, BeliefStatus.ACTIVE),
        (BeliefStatus.CHALLENGED, BeliefStatus.REVISED),
        (ConsolidationState.NEW, ConsolidationState.LEASED),
        (ConsolidationState.LEASED, ConsolidationState.NEW),
        (ConsolidationState.POOLED, ConsolidationState.SETTLED),
        (ConsolidationState.SETTLED, ConsolidationState.HELD),
        (ConsolidationState.SETTLED, ConsolidationState.POOLED),
        (ConsolidationState.NEW, ConsolidationState.HELD),
        (ConsolidationState.NEW, ConsolidationState.POOLED),
        (ConsolidationState.HELD, ConsolidationState.NEW),
        (CycleState.QUEUED, CycleState.RUNNING),
        (CycleState.RUNNING, CycleState.OVER_BUDGET),
        (JobState.SYNTHESIZED, JobState.CLASSIFIED),
        (JobState.CLASSIFIED, JobState.APPLIED),
        (JobState.QUEUED, JobState.APPLIED),
    ],
)
def test_legal_transitions_pass(old: StrEnum, new: StrEnum) -> None:
    """D3: archiving, restoring, leasing, putting back, pooling and holding."""
    check_transition(old=old, new=new)

    assert new in next_states(state=old)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (EpisodeStatus.FORGOTTEN, EpisodeStatus.ACTIVE),
        (EpisodeStatus.MERGED, EpisodeStatus.ARCHIVED),
        (BeliefStatus.FORGOTTEN, BeliefStatus.ACTIVE),
        (BeliefStatus.REVISED, BeliefStatus.MERGED),
        (BeliefStatus.ARCHIVED, BeliefStatus.MERGED),
        (ConsolidationState.NEW, ConsolidationState.FAILED),
        (ConsolidationState.SETTLED, ConsolidationState.LEASED),
        (ConsolidationState.HELD, ConsolidationState.LEASED),
        (CycleState.FINISHED, CycleState.RUNNING),
        (CycleState.RUNNING, CycleState.QUEUED),
        (JobState.SYNTHESIZED, JobState.APPLIED),
        (JobState.APPLIED, JobState.FAILED),
    ],
)
def test_illegal_transitions_name_both_states(old: StrEnum, new: StrEnum) -> None:
    """D3: an illegal transition is an error naming both states."""
    with pytest.raises(IllegalTransitionError, match=f"What is {old.value} cannot become {new.value}"):
        check_transition(old=old, new=new)


@pytest.mark.parametrize("live", [BeliefStatus.ACTIVE, BeliefStatus.CHALLENGED])
def test_what_a_cycle_does_to_a_belief_can_be_undone(live: BeliefStatus) -> None:
    """B22: status goes back to the live one it came from."""
    done_by_cycles = next_states(state=live) - {BeliefStatus.FORGOTTEN, BeliefStatus.ACTIVE, BeliefStatus.CHALLENGED}

    assert all(live in next_states(state=status) for status in done_by_cycles)


@pytest.mark.parametrize("status", [BeliefStatus.REVISED, BeliefStatus.MERGED, BeliefStatus.SPLIT])
def test_what_came_back_and_was_changed_in_one_cycle_can_go_back_to_the_archive(status: BeliefStatus) -> None:
    """B14, B22: the cycle found it archived."""
    assert BeliefStatus.ARCHIVED in next_states(state=status)


@pytest.mark.parametrize("status", set(BeliefStatus) - {BeliefStatus.INVALIDATED})
def test_what_was_born_in_a_cycle_can_be_invalidated_with_it(status: BeliefStatus) -> None:
    """B22: whatever became of it, but what a person had forgotten or pruned stays so."""
    kept = {BeliefStatus.FORGOTTEN, BeliefStatus.PRUNED}

    assert (BeliefStatus.INVALIDATED in next_states(state=status)) is (status not in kept)


def test_an_archived_belief_may_carry_the_same_word_as_an_archived_episode() -> None:
    """D3: the tables are kept apart by type, though the words are equal."""
    beliefs, episodes = (set(next_states(state=kind("archived"))) for kind in (BeliefStatus, EpisodeStatus))

    assert BeliefStatus.PRUNED in beliefs
    assert "pruned" not in episodes
