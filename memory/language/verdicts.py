"""Judge what an episode says of a belief by rules alone: the offline classifier. Unsure means IRRELEVANT.

Two versions of one sentence are laid over each other word by word, and the edits between them named.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum, auto
from itertools import pairwise

from memory.domain.evidence import Verdict
from memory.language.analysis import Analysis, SpokenText
from memory.language.guard import (
    align,
    analyse_pair,
    are_swapped,
    choose_otherwise,
    compare,
    differ_in_negation,
    displace_names,
    have_other_names,
    have_other_speakers,
    name_opposites,
    replace_each_other,
    take_opposite_stands,
)
from memory.language.lexicon import Lexicon, Mark, Token, count_negators, load_lexicon
from memory.language.quantities import have_other_numbers


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


VERDICT_POLICY = VerdictPolicy()


@dataclass(frozen=True, slots=True)
class Edit:
    """What one text has where the other has something else; either may be empty."""

    left: tuple[Token, ...]
    right: tuple[Token, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlay:
    """The edits from left to right, and the share of the shorter text's words that are in both."""

    edits: tuple[Edit, ...]
    shared: int
    share: float


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


class EditKind(StrEnum):
    """What an edit does to the claim."""

    NONE = auto()
    DROPPED = auto()  # the belief leaves out something of the episode
    ADDED = auto()
    OTHER = auto()
    DENIED = auto()
    NUMBER = auto()
    OPPOSITE = auto()
    NAME = auto()


EDIT_REASONS = {
    EditKind.DENIED: "Only one of the two sentences is negated.",
    EditKind.NUMBER: "The numbers differ in the same sentence.",
    EditKind.OPPOSITE: "The sentences differ in words that exclude each other.",
    EditKind.NAME: "The same sentence names something else.",
}


def judge_by_rules(
    *, episode: SpokenText, belief: SpokenText, similarity: float | None = None, policy: VerdictPolicy = VERDICT_POLICY
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
MAX_WORDS = 80  # words of a text that are laid over the other: the table grows with their product
ALTERNATIVES = frozenset({"or", "oder"})
ORDINAL_ENDINGS = ("th", "st", "nd", "rd")
NOW = frozenset({"now", "currently", "jetzt", "nun"})

# Words that say there is only one: beside them another member of a kind is another claim.
SINGLING = frozenset(
    {"is", "are", "was", "were", "now", "only", "always", "ist", "sind", "war", "jetzt", "nur", "immer"}
)
TELLING = frozenset({Mark.WORD, Mark.HEDGE, Mark.LIMITER, Mark.CONTRAST})


def overlay(left: Analysis, right: Analysis) -> Overlay:
    """Return how right differs from left, by concept and in order."""
    mine, theirs = _read(left), _read(right)
    pairs = align([_key(token) for token in mine], [_key(token) for token in theirs])
    edges = [(-1, -1), *pairs, (len(mine), len(theirs))]
    edits = (Edit(tuple(mine[a + 1 : c]), tuple(theirs[b + 1 : d])) for (a, b), (c, d) in pairwise(edges))
    return Overlay(
        edits=tuple(edit for edit in edits if edit.left or edit.right),
        shared=len(pairs),
        share=len(pairs) / max(1, min(len(mine), len(theirs))),
    )


def _read(analysis: Analysis) -> Sequence[Token]:
    return [token for token in analysis.tokens if token.surface[0].isalnum()][:MAX_WORDS]


def _key(token: Token) -> str:
    return f"{token.entry.sign}{token.entry.concept}" if token.entry.concept else token.lower


def classify_edit(edit: Edit, *, episode: Analysis, belief: Analysis, laid: Overlay, long_frame: int) -> EditKind:
    """Say what an edit does; another name counts in a frame of `long_frame` words or beside a "now"."""
    lexicon = load_lexicon(belief.language)
    if _is_denial(edit):
        return EditKind.DENIED
    if not edit.left or not edit.right:
        return _classify_addition(edit)
    if ALTERNATIVES & belief.markers:  # one of several alternatives may change and the sentence stay true
        return EditKind.OTHER if _says_something(edit.right) else EditKind.DROPPED
    left, right = _numbers(edit.left, lexicon), _numbers(edit.right, lexicon)
    if left and right:
        return EditKind.NUMBER if left != right else EditKind.NONE
    if _excludes(edit, lexicon=lexicon) or _is_other_of_kind(edit, belief=belief, lexicon=lexicon):
        return EditKind.OPPOSITE
    is_event = laid.shared >= long_frame or (bool(NOW & episode.markers) and not edit.left[0].first)
    if is_event and _is_renaming(edit, episode=episode):
        return EditKind.NAME
    if not (_says_something(edit.right) and _says_something(edit.left)):
        return _classify_addition(edit)
    return EditKind.DROPPED if _is_light(edit.right, lexicon=lexicon) else EditKind.OTHER


def _classify_addition(edit: Edit) -> EditKind:
    if _says_something(edit.right):
        return EditKind.ADDED
    return EditKind.DROPPED if _says_something(edit.left) else EditKind.NONE


def _is_denial(edit: Edit) -> bool:
    """Say whether nothing but a negation came or went, or stands where another word stood."""
    if _only_denies(edit.left, edit.right) or _only_denies(edit.right, edit.left):
        return True
    if count_negators(edit.left) % 2 == count_negators(edit.right) % 2:
        return False
    return max(len(_content(edit.left)), len(_content(edit.right))) <= (1 if edit.left and edit.right else 0)


def _only_denies(tokens: Iterable[Token], others: Iterable[Token]) -> bool:
    """Say whether one side has nothing but a verb of denial ("stopped") and the other nothing."""
    content = _content(tokens)
    return len(content) == 1 and content[0].entry.sign < 0 and not _content(others)


def _numbers(tokens: Iterable[Token], lexicon: Lexicon) -> set[str]:
    return {_number(token.lower, lexicon) for token in tokens} - {""}


def _number(word: str, lexicon: Lexicon) -> str:
    if any(character.isdigit() for character in word):
        return word[:-2] if word.endswith(ORDINAL_ENDINGS) else word
    value = lexicon.numbers.get(word, lexicon.ordinals.get(word))
    return "" if value is None else f"{value:g}"


def _says_something(tokens: Iterable[Token]) -> bool:
    return any(token.entry.mark in TELLING or token.lower[0].isdigit() for token in tokens)


def _is_light(tokens: Iterable[Token], *, lexicon: Lexicon) -> bool:
    return all(token.entry.concept in lexicon.light for token in _content(tokens))


def _content(tokens: Iterable[Token]) -> list[Token]:
    return [token for token in tokens if token.entry.mark is Mark.WORD]


def _excludes(edit: Edit, *, lexicon: Lexicon) -> bool:
    return any(_are_opposite(one, other, lexicon=lexicon) for one in edit.left for other in edit.right)


def _are_opposite(one: Token, other: Token, *, lexicon: Lexicon) -> bool:
    if one.entry.concept == other.entry.concept:
        return one.entry.sign != other.entry.sign
    return lexicon.exclude_each_other(one.entry.concept, other.entry.concept)


def _is_other_of_kind(edit: Edit, *, belief: Analysis, lexicon: Lexicon) -> bool:
    mine = {lexicon.kinds.get(token.entry.concept) for token in edit.left} - {None}
    kinds = [token.entry.concept for token in edit.right if lexicon.kinds.get(token.entry.concept) in mine]
    governed = any(word.governor for word in belief.words if word.concept in kinds) or bool(lexicon.times & set(kinds))
    return bool(kinds) and (governed or bool(SINGLING & belief.markers))


def _is_renaming(edit: Edit, *, episode: Analysis) -> bool:
    """Say whether names gave way to names that the episode has nowhere."""
    left, right = ({token.entry.concept for token in _content(side)} for side in (edit.left, edit.right))
    if right & episode.concepts or left <= right:
        return False
    return _are_names(edit.left) and _are_names(edit.right)


def _are_names(tokens: Iterable[Token]) -> bool:
    content = _content(tokens)
    return bool(content) and all(token.surface[0].isupper() for token in content)
