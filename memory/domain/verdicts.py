"""Judge what an episode says of a belief by rules alone: the offline classifier. Unsure means IRRELEVANT."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from memory.domain.matching import Claim
from memory.domain.matching.analysis import Analysis
from memory.domain.matching.arguments import (
    are_swapped,
    choose_otherwise,
    displace_names,
    name_opposites,
    replace_each_other,
)
from memory.domain.matching.checks import have_other_names, have_other_speakers
from memory.domain.matching.edits import EditKind, Overlay, classify_edit, overlay
from memory.domain.matching.guard import analyse_pair, compare
from memory.domain.matching.negation import differ_in_negation, take_opposite_stands
from memory.domain.matching.quantities import have_other_numbers
from memory.domain.matching.tokens import count_negators


class Verdict(StrEnum):
    """What an episode says of a belief (B11)."""

    SUPPORTS = "SUPPORTS"
    CONTRADICTS = "CONTRADICTS"
    PARTIAL = "PARTIAL"
    IRRELEVANT = "IRRELEVANT"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """A verdict and one short sentence that says why.

    `is_firm`: a rule knows that the episode may not count, whatever else somebody finds; else it only found nothing.
    """

    verdict: Verdict
    reason: str
    is_firm: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictPolicy:
    """How much two texts must share before a rule speaks; shares are of content words unless stated."""

    near_share: float = 0.75  # of the shorter text's words, in order: the texts are one sentence with edits
    near_words: int = 3
    long_frame: int = 7  # words shared, from which another name in the same place tells of the same event
    aligned: float = 0.6  # of the belief, found in the episode
    covered: float = 0.8
    covered_alike: float = 0.7  # of the belief, where the texts are alike and the polarity guard passes
    alike: float = 0.85  # similarity
    mirrored: float = 0.6  # of the episode, found in the belief: the episode says little else
    min_shared: int = 2  # content words
    short: int = 6  # content words
    related: float = 0.45  # calibrated similarity below which only near-identical texts are judged


POLICY = VerdictPolicy()


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """An episode and a belief side by side, as the rules see them."""

    episode: Analysis
    belief: Analysis
    laid: Overlay
    shared: frozenset[str]
    similarity: float | None
    policy: VerdictPolicy

    @property
    def coverage(self) -> float:
        """Share of the belief's content words that the episode has."""
        return len(self.shared) / max(1, len(self.belief.concepts))

    @property
    def mirroring(self) -> float:
        """Share of the episode's content words that the belief has."""
        return len(self.shared) / max(1, len(self.episode.concepts))

    @property
    def is_near(self) -> bool:
        """Whether the texts are versions of one sentence."""
        return self.laid.share >= self.policy.near_share and self.laid.shared >= self.policy.near_words

    @property
    def is_aligned(self) -> bool:
        """Whether the episode has most of what the belief talks about."""
        return self.coverage >= self.policy.aligned and self.shares_enough

    @property
    def shares_enough(self) -> bool:
        """Whether more than one thing, amounts included, is in both texts."""
        said, believed = ({amount[:2] for amount in text.quantities} for text in (self.episode, self.belief))
        return len(self.shared) + len(said & believed) >= self.policy.min_shared

    @property
    def is_short(self) -> bool:
        """Whether both texts are simple enough for their order of words to mean something."""
        return max(len(self.episode.concepts), len(self.belief.concepts)) <= self.policy.short

    @property
    def has_choice(self) -> bool:
        """Whether a text rejects one thing for another, which may agree with a denial in the other text."""
        return any(relation.kind == "choice" for text in (self.episode, self.belief) for relation in text.relations)

    @property
    def is_mirrored(self) -> bool:
        """Whether each text has most of the other's content."""
        return self.is_aligned and self.mirroring >= self.policy.mirrored


Rule = Callable[[Comparison], Judgement | None]

EDIT_REASONS = {
    EditKind.DENIED: "Only one of the two sentences is negated.",
    EditKind.NUMBER: "The numbers differ in the same sentence.",
    EditKind.OPPOSITE: "The sentences differ in words that exclude each other.",
    EditKind.NAME: "The same sentence names something else.",
}


def judge_by_rules(
    *, episode: Claim, belief: Claim, similarity: float | None = None, policy: VerdictPolicy = POLICY
) -> Judgement:
    """Judge one pair; `similarity` is their cosine on the reference scale (0 to 1) where it is known."""
    pair = analyse_pair(left=episode, right=belief)
    if pair is None:
        return _leave("The texts share no language that the rules know.")
    case = _compare(*pair, similarity=similarity, policy=policy)
    if similarity is not None and similarity < policy.related and not case.is_near:
        return _leave("The texts are about different things.")
    for rule in RULES:
        judgement = rule(case)
        if judgement is not None:
            return judgement
    return _leave("The episode does not clearly bear on the belief.")


def _compare(episode: Analysis, belief: Analysis, *, similarity: float | None, policy: VerdictPolicy) -> Comparison:
    return Comparison(
        episode=episode,
        belief=belief,
        laid=overlay(episode, belief),
        shared=episode.concepts & belief.concepts,
        similarity=similarity,
        policy=policy,
    )


def _leave(reason: str) -> Judgement:
    return Judgement(verdict=Verdict.IRRELEVANT, reason=reason)


def _refuse(reason: str) -> Judgement:
    return Judgement(verdict=Verdict.IRRELEVANT, reason=reason, is_firm=True)


def _contradict(reason: str) -> Judgement:
    return Judgement(verdict=Verdict.CONTRADICTS, reason=reason)


def leave_unstated(case: Comparison) -> Judgement | None:
    """Leave questions, other people's words and texts that share nothing."""
    if case.episode.is_question:
        return _refuse("The episode asks and does not state.")
    if have_other_speakers(case.episode, case.belief):
        return _refuse("The episode tells of another person.")
    if not case.shared:
        return _leave("The texts have no content word in common.")
    return None


def judge_same(case: Comparison) -> Judgement | None:
    """See the same words in the same order."""
    if case.laid.edits:
        return None
    return Judgement(verdict=Verdict.SUPPORTS, reason="The episode says the same in the same words.")


def judge_choice(case: Comparison) -> Judgement | None:
    """See the belief's choice, comparison or direction turned round."""
    if case.is_aligned and choose_otherwise(case.episode, case.belief):
        return _contradict("The episode chooses or ranks the other way round.")
    if case.is_short and case.is_mirrored and are_swapped(case.episode, case.belief):
        return _contradict("The episode gives the same things each other's places.")
    return None


def judge_change(case: Comparison) -> Judgement | None:
    """See the episode leave behind what the belief states."""
    if case.is_short and case.is_aligned and replace_each_other(case.episode, case.belief):
        return _contradict("The episode replaces what the belief states.")
    return None


def judge_edits(case: Comparison) -> Judgement | None:
    """Judge two versions of one sentence by what was edited."""
    if not case.is_near:
        return None
    kinds = {
        classify_edit(edit, episode=case.episode, belief=case.belief, laid=case.laid, long_frame=case.policy.long_frame)
        for edit in case.laid.edits
    }
    has_more = bool(kinds & {EditKind.OTHER, EditKind.ADDED})
    conflict = next((kind for kind in EDIT_REASONS if kind in kinds), None)
    if conflict is EditKind.DENIED and (has_more or case.has_choice):
        return _leave("It is not clear what is denied.")
    if conflict is not None:
        return _contradict(EDIT_REASONS[conflict])
    if has_more and (EditKind.ADDED in kinds or not _is_alike(case)):
        return _leave("The belief says something that the episode does not.")
    return None


def judge_numbers(case: Comparison) -> Judgement | None:
    """See different amounts in one role."""
    if case.is_mirrored and have_other_numbers(case.episode.quantities, case.belief.quantities, is_strict=True):
        return _contradict("The numbers differ.")
    return None


def judge_negation(case: Comparison) -> Judgement | None:
    """See a belief denied, or a denial contradicted."""
    if not case.is_aligned or not differ_in_negation(case.episode, case.belief):
        return None
    if case.episode.is_limited:
        return None
    if case.has_choice:
        return _leave("It is not clear what is denied.")
    if case.is_short and case.is_mirrored and take_opposite_stands(case.episode, case.belief):
        return _contradict("The episode takes the opposite stand.")
    said, believed = count_negators(case.episode.tokens), count_negators(case.belief.tokens)
    if believed == 1 and said == 0 and _covers_denials(case.belief, case.shared, least=case.policy.aligned):
        return _contradict("The episode states what the belief denies.")
    is_clear = case.is_short and case.is_mirrored and said == 1 and believed == 0
    if is_clear and _covers_denials(case.episode, case.shared, least=case.policy.covered):
        return _contradict("The episode denies what the belief states.")
    return _leave("It is not clear what is denied.")


def _covers_denials(one: Analysis, shared: frozenset[str], *, least: float) -> bool:
    """Say whether both texts talk about what the one denies."""
    denials = [clause for clause in one.clauses if clause.polarity < 0 or clause.local]
    return all(
        clause.denied <= shared and len(clause.concepts & shared) >= least * len(clause.concepts) for clause in denials
    )


def judge_opposites(case: Comparison) -> Judgement | None:
    """See words that exclude each other in texts that say little else."""
    if not case.is_aligned:
        return None
    if case.is_mirrored and name_opposites(case.episode, case.belief):
        return _contradict("Episode and belief use words that exclude each other.")
    if have_other_names(case.episode, case.belief):
        return _refuse("The texts name different things.")
    return None


def judge_support(case: Comparison) -> Judgement | None:
    """See the whole belief stated in the episode."""
    if not case.shares_enough or not _is_covered(case):
        return None
    if case.belief.is_limited and not case.episode.is_limited:
        return _refuse("The belief has a condition of which the episode says nothing.")
    if case.episode.is_limited and not case.belief.is_limited:
        return Judgement(verdict=Verdict.PARTIAL, reason="The episode holds it under a condition or with an exception.")
    if case.episode.is_hedged and not case.belief.is_hedged:
        return _refuse("The episode only considers it.")
    if displace_names(case.episode, case.belief):
        return _refuse("The episode puts another name in that place.")
    return Judgement(verdict=Verdict.SUPPORTS, reason="The episode states all that the belief says.")


def _is_covered(case: Comparison) -> bool:
    """Say whether the episode has the belief's words, or most of them where cosine and guard vouch for the rest."""
    if case.coverage >= case.policy.covered:
        return True
    return _is_alike(case)


def _is_alike(case: Comparison) -> bool:
    """Say whether cosine and polarity guard together vouch for what the words leave open."""
    is_close = case.similarity is not None and case.similarity >= case.policy.alike
    return is_close and case.coverage >= case.policy.covered_alike and compare(case.episode, case.belief).passed


RULES: tuple[Rule, ...] = (
    leave_unstated,
    judge_same,
    judge_change,
    judge_choice,
    judge_edits,
    judge_numbers,
    judge_negation,
    judge_opposites,
    judge_support,
)
