"""What a claim says about a belief, by slots, values and words alone; unsure means nothing (E3).

`judge_pair` at the end adds a classifier of pairs, under the rules' veto.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass

from memory.domain.evidence import Verdict
from memory.language.analysis import SpokenText
from memory.language.clauses import denies
from memory.language.guard import GuardReason, analyse_pair, check_polarity, differ_in_numbers
from memory.language.quantities import NUMBER_OF, TITLE, WEEKDAYS
from memory.language.readings import Reading, content_stems
from memory.language.sentences import list_words
from memory.language.slots import MEMBER, Slot, holds_word, is_ended, slots_by_name
from memory.language.verdicts import Judgement, judge_by_rules
from memory.language.words import common_words, stem_english, stem_german, word_list


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRelation:
    """A verdict with its reason; `ends` where the claim announces that what the belief says holds no longer."""

    verdict: Verdict
    reason: str
    ends: bool = False


NO_RELATION = ClaimRelation(verdict=Verdict.IRRELEVANT, reason="")


def relate_claim(*, claim: Reading, belief: Reading, is_explicit: bool, is_sure: bool = False) -> ClaimRelation:
    """Say what a claim says about a belief of the same person; `is_explicit` where it plainly states what lasts.

    `is_sure`: only what needs no judgement, where a model is asked about the rest.
    """
    are_of_two = _are_of_two(claim, belief)
    if (ended := _ends(claim, belief)) and not are_of_two:
        return ClaimRelation(verdict=Verdict.CONTRADICTS, reason=f"It says that {ended} has ended.", ends=True)
    if claim.contexts and belief.contexts and not claim.contexts & belief.contexts:
        return NO_RELATION
    if (label := _label(claim.sentence)) and label == _label(belief.sentence):
        return ClaimRelation(verdict=Verdict.SUPPORTS, reason="It stands under the same heading.")
    if _end_the_same(claim, belief) and not are_of_two:
        return ClaimRelation(verdict=Verdict.SUPPORTS, reason="It says that the same has ended.")
    if _are_contrary(claim, belief) and (claim.is_change or is_explicit):
        return ClaimRelation(verdict=Verdict.CONTRADICTS, reason="It says the contrary.", ends=claim.is_change)
    by_slot = _by_slot(claim, belief, is_explicit)
    by_words = by_slot or (
        NO_RELATION if are_of_two or _name_others(claim, belief) else _by_words(claim, belief, is_explicit)
    )
    if not by_words.reason and not are_of_two and (other := _names_another_of_it(claim, belief, is_explicit)):
        by_words = other
    return NO_RELATION if is_sure and not _say_nearly_the_same(claim, belief) else by_words


def _names_another_of_it(claim: Reading, belief: Reading, is_explicit: bool) -> ClaimRelation | None:
    """Say what it means that both say what one thing of somebody's is, and name another ("her plan is with Telmo")."""
    mine, theirs = claim.possession, belief.possession
    if not mine or not theirs or not (claim.is_change or is_explicit):
        return None
    if (mine.thing, mine.where) != (theirs.thing, theirs.where) or _have_other_owners(claim, belief):
        return None
    if set(mine.thing.split()) & _OF_MANY or _share_name({mine.name}, {theirs.name}):
        return None
    return ClaimRelation(verdict=Verdict.CONTRADICTS, reason=f"It names another {mine.thing}.", ends=claim.is_change)


_OF_MANY = frozenset(word_list("of_many"))
_MOST_OF_BOTH = 0.75  # share of all their content words


def _say_nearly_the_same(claim: Reading, belief: Reading) -> bool:
    """Tell whether two sentences share most of their words, numbers that are spelt aside."""
    shared, both = claim.stems & belief.stems, (claim.stems | belief.stems) - NUMBER_OF.keys()
    return len(shared) >= _MOST_OF_BOTH * len(both)


def _label(sentence: str) -> str:
    """Return the heading before a colon with which a standing wish begins ("Staging: …"), "" for none."""
    head, colon, _ = sentence.partition(": ")
    return head.lower() if colon and len(head.split()) <= 3 else ""


def _end_the_same(claim: Reading, belief: Reading) -> bool:
    """Tell whether both say that one thing has ended; of a weekday they must share another word as well."""
    same = {one.lower() for one in claim.ended} & {one.lower() for one in belief.ended}
    return bool(same.difference(WEEKDAYS) or (same and (claim.stems & belief.stems) - same))


def _are_contrary(claim: Reading, belief: Reading) -> bool:
    """Tell whether both say one thing in the same words, and one of them says no to it."""
    return claim.denies != belief.denies and _words_without_no(claim) == _words_without_no(belief)


def _words_without_no(reading: Reading) -> frozenset[str]:
    stem = stem_german if reading.language == "de" else stem_english
    words = list_words(_CONTRACTED.sub(" not", reading.sentence).lower())
    return frozenset(stem(word) for word in words if word not in _NO)


_CONTRACTED = re.compile(r"(?<!ca)n['’]t\b|(?<=can)['’]t\b")
_NO = frozenset(word_list("denials"))


def _ends(claim: Reading, belief: Reading) -> str:
    """Name what the claim ends and the belief rests on; "" where it ends nothing of it.

    What somebody by name has given up ends nothing of what is believed of another.
    """
    if claim.ended_by and not claim.ended_by & {
        word.lower().removesuffix("'s") for word in list_words(belief.sentence)
    }:
        return ""
    for thing in claim.ended:
        if not is_ended(thing.lower(), belief.ended) and (
            _ends_value(thing, claim, belief) or _ends_word(thing, belief)
        ):
            return thing
    return ""


def _ends_value(thing: str, claim: Reading, belief: Reading) -> bool:
    return any(
        slots_by_name()[name].is_single
        and (name in claim.slots or thing not in WEEKDAYS)
        and any(is_ended(value, [thing]) for value in values)
        and not values & claim.slots.get(name, frozenset())
        for name, values in belief.slots.items()
    )


def _ends_word(thing: str, belief: Reading) -> bool:
    """Tell whether all words of what ended stand in the belief, which must be more than one that everybody says."""
    stem = stem_german if belief.language == "de" else stem_english
    heads = [word.lower().removesuffix("'s") for word in list_words(thing)]
    stems = {stem(word.lower().removesuffix("'s")) for word in list_words(belief.sentence)}
    is_telling = len(heads) > 1 or (heads and heads[0] not in common_words().union(WEEKDAYS))
    return bool(is_telling) and all(stem(word) in stems for word in heads)


def _by_slot(claim: Reading, belief: Reading, is_explicit: bool) -> ClaimRelation | None:
    for name in claim.slots.keys() & belief.slots.keys():
        slot, mine, theirs = slots_by_name()[name], claim.slots[name], belief.slots[name]
        # Who is somebody's may come first ("Ravi is Mara's manager"): there it matters whose they are.
        if slot.is_of_person and _have_other_owners(claim, belief):
            continue
        if (slot.value != "person" and _are_of_two(claim, belief)) or not _is_about_same(slot, claim, belief):
            continue
        if slot.contrary and (wish := _compare_wishes(slot, claim, belief, is_explicit)):
            return wish
        if mine & theirs or (slot.value in ("name", "person") and _share_name(mine, theirs)):
            if (
                slot.value == MEMBER
                and not slot.ignores_denial
                and not _is_of_slot(slot, belief)
                and not _share_more(slot, mine, claim, belief)
            ):
                continue  # the value is named by the way
            if _denies_it(claim) == _denies_it(belief) or slot.value not in (MEMBER, "weekday") or slot.ignores_denial:
                return ClaimRelation(verdict=Verdict.SUPPORTS, reason=f"It names the same {name.replace('_', ' ')}.")
            if claim.is_change:
                return ClaimRelation(
                    verdict=Verdict.CONTRADICTS, reason=f"It denies the {name.replace('_', ' ')}.", ends=True
                )
            continue
        if slot.is_single and not claim.is_denial and (claim.is_change or is_explicit):
            return ClaimRelation(
                verdict=Verdict.CONTRADICTS, reason=f"It names another {name.replace('_', ' ')}.", ends=claim.is_change
            )
    return None


def _compare_wishes(slot: Slot, claim: Reading, belief: Reading, is_explicit: bool) -> ClaimRelation | None:
    mine, theirs = _wants(slot, claim), _wants(slot, belief)
    if mine & theirs:
        return ClaimRelation(verdict=Verdict.SUPPORTS, reason=f"It wants the same {slot.name.replace('_', ' ')}.")
    if {(value, not is_wanted) for value, is_wanted in mine} & theirs and (claim.is_change or is_explicit):
        reason = f"It wants another {slot.name.replace('_', ' ')}."
        return ClaimRelation(verdict=Verdict.CONTRADICTS, reason=reason, ends=claim.is_change)
    return None


def _wants(slot: Slot, reading: Reading) -> set[tuple[str, bool]]:
    """Return the values of a slot, each with whether it is wanted; a contrary as the denial of the other."""
    found = reading.slots.get(slot.name, frozenset())
    return {
        (slot.contrary.get(value, value), _is_denied(slot, value, reading) == (value in slot.contrary))
        for value in found
    }


def _is_denied(slot: Slot, value: str, reading: Reading) -> bool:
    """Tell whether the clauses that name a value deny it."""
    spellings = [spelling for spelling, meant in slot.members.items() if meant == value]
    clauses = [part for part in _CLAUSES.split(reading.sentence.lower()) if any(holds_word(part, s) for s in spellings)]
    return any(map(denies, clauses)) if clauses else reading.denies


def _are_of_two(claim: Reading, belief: Reading) -> bool:
    """Tell whether two sentences are of two: of two people by name, or of somebody close to the person and another."""
    if _name_others(claim, belief) and not _mention(claim, belief.named) and not _mention(belief, claim.named):
        return True
    mine, theirs = _relatives_in(claim.subject), _relatives_in(belief.subject or belief.sentence)
    return bool(
        (mine and theirs and not mine & theirs)
        or (claim.is_of_person and theirs)
        or (mine and not theirs and (belief.is_of_person or not belief.subject))
    )


def _name_others(claim: Reading, belief: Reading) -> bool:
    return bool(claim.named and belief.named and not claim.named & belief.named)


def _mention(reading: Reading, named: Collection[str]) -> bool:
    """Tell whether a sentence has a name in it, be it not the one of whom it tells."""
    return not reading.names.isdisjoint(named)


def _have_other_owners(claim: Reading, belief: Reading) -> bool:
    return bool(claim.owner and belief.owner and claim.owner != belief.owner)


def _relatives_in(subject: str) -> frozenset[str]:
    return frozenset(subject.lower().split()) & _RELATIVES


_RELATIVES = frozenset(word_list("relatives"))
_MOST_BESIDE = 3  # content words of a sentence that is about a value, beside the value itself


def _is_of_slot(slot: Slot, belief: Reading) -> bool:
    """Tell whether a sentence says what the slot's value is, and not something else in which the value is named."""
    return len(belief.stems) <= _MOST_BESIDE or slot.named.search(belief.sentence) is not None


def _share_more(slot: Slot, values: Collection[str], claim: Reading, belief: Reading) -> bool:
    named = content_stems(" ".join(key for key, value in slot.members.items() if value in values), language="en")
    return bool((claim.stems & belief.stems) - named)


def _denies_it(reading: Reading) -> bool:
    """Tell whether a sentence denies what its slots hold: what it says has ended is not in them any more."""
    return reading.denies and not reading.ended


def _is_about_same(slot: Slot, claim: Reading, belief: Reading) -> bool:
    """Tell whether two fillings of a slot are of one thing: a price of two things is two slots."""
    if slot.name in ("release_day", "opening", "closing", "home_office") or slot.value in (
        MEMBER,
        "name",
        "person",
        "unit",
    ):
        return True
    if (
        slot.name == "meeting"
        and claim.is_change
        and (_GATHERING.search(claim.sentence) or _GATHERING.search(belief.sentence))
    ):
        return True
    return bool(_told_of_both(claim, belief) - content_stems(slot.bare, language=claim.language))


def _told_of_both(claim: Reading, belief: Reading) -> frozenset[str]:
    """Return the stems that both hold, but for those of a group of the person's, of which many things are said."""
    return (claim.stems & belief.stems) - (claim.owned & belief.owned)


_GATHERING = re.compile(
    r"^(?:the |our )?(?:practice|rehearsals?|meetings?|training|class|lessons?|probe|treffen|training)\b", re.IGNORECASE
)


def _share_name(mine: Collection[str], theirs: Collection[str]) -> bool:
    bare = [[set(_TITLED.sub(r"\1", name).split()) for name in names] for names in (mine, theirs)]
    return any(one & other for one in bare[0] for other in bare[1])


def _names_another_too(claim: Reading, belief: Reading) -> bool:
    """Tell whether a claim names somebody by a title beside the one whom the belief names so."""
    mine, theirs = (set(_TITLED.findall(of.sentence.lower())) for of in (claim, belief))
    return bool(theirs and mine - theirs)


_TITLED = re.compile(rf"\b{TITLE.lower()} ([a-zäöüß-]+)")


def _share_a_name(claim: Reading, belief: Reading) -> bool:
    """Tell whether both name the same person or thing of a name, beside the one whose claims these are."""
    return bool(claim.names & belief.names)


def _by_words(claim: Reading, belief: Reading, is_explicit: bool) -> ClaimRelation:
    shared = _told_of_both(claim, belief)
    if not shared:
        return NO_RELATION
    coverage = len(shared) / max(1, min(len(claim.stems), len(belief.stems)))
    here, there = claim.values.excluding(), belief.values.excluding()
    differ = [kind for kind in here if kind in there and not here[kind] & there[kind]]
    agree = [kind for kind in here if kind in there and here[kind] & there[kind]]
    if claim.is_change and differ and not agree and coverage >= 0.34:
        return ClaimRelation(
            verdict=Verdict.CONTRADICTS, reason=f"It names another {differ[0]} from now on.", ends=True
        )
    alike = _denies_what_is_shared(claim, shared) == _denies_what_is_shared(belief, shared)
    if agree and not differ and coverage >= 0.34 and alike:
        return ClaimRelation(verdict=Verdict.SUPPORTS, reason=f"It names the same {agree[0]} of it.")
    if len(shared) >= 2 and (coverage >= 0.6 or _share_a_name(claim, belief)):
        if differ and not agree:
            return (
                ClaimRelation(verdict=Verdict.CONTRADICTS, reason=f"It names another {differ[0]}.")
                if is_explicit
                else NO_RELATION
            )
        if not alike:
            ended = ClaimRelation(verdict=Verdict.CONTRADICTS, reason="It denies that from now on.", ends=True)
            return ended if claim.is_change else NO_RELATION
        if _names_another_too(claim, belief) or (claim.is_change and not _say_nearly_the_same(claim, belief)):
            return NO_RELATION
        if _count_otherwise(claim, belief):
            otherwise = ClaimRelation(verdict=Verdict.CONTRADICTS, reason="The numbers differ.", ends=claim.is_change)
            return otherwise if is_explicit else NO_RELATION
        return ClaimRelation(verdict=Verdict.SUPPORTS, reason="It says the same in most of its words.")
    if (
        not claim.is_change
        and claim.subject
        and claim.subject == belief.subject
        and claim.subject[:1].isalpha()
        and shared - content_stems(claim.subject, language=claim.language)
        and not differ
        and claim.is_denial == belief.is_denial
        and not _count_otherwise(claim, belief)
    ):
        return ClaimRelation(verdict=Verdict.SUPPORTS, reason="It says it of the same person or thing.")
    return NO_RELATION


def _count_otherwise(claim: Reading, belief: Reading) -> bool:
    """Tell whether both count the same, and come to other numbers ("five engineers", "7 engineers")."""
    if not _say_nearly_the_same(claim, belief):
        return False
    pair = analyse_pair(
        left=SpokenText(text=claim.sentence, language=claim.language),
        right=SpokenText(text=belief.sentence, language=belief.language),
    )
    return pair is not None and differ_in_numbers(*pair)


def _denies_what_is_shared(reading: Reading, shared: frozenset[str]) -> bool:
    """Tell whether a sentence denies in the clauses that hold the shared words, those that name somebody aside."""
    told = shared - reading.names or shared
    clauses = [
        clause for clause in _CLAUSES.split(reading.sentence) if told & content_stems(clause, language=reading.language)
    ]
    return any(map(denies, clauses))


_CLAUSES = re.compile(r"[,;:]| but | aber | and not | und nicht ")


@dataclass(frozen=True, slots=True, kw_only=True)
class PairPolicy:
    """How sure a classifier must be; a contradiction costs a belief more than a support gives it."""

    entailment: float = 0.7
    contradiction: float = 0.8


PAIR_POLICY = PairPolicy()

# What the guard knows by itself. That it sees too few words in common, no language of its own, or another word in one
# place is why a classifier is asked.
_FIRM = frozenset(GuardReason) - {GuardReason.LANGUAGE, GuardReason.UNLIKE, GuardReason.ALTERNATIVE}


def judge_pair(
    *,
    episode: SpokenText,
    belief: SpokenText,
    similarity: float | None = None,
    entailment: float,
    contradiction: float,
    policy: PairPolicy = PAIR_POLICY,
) -> Judgement:
    """Judge one pair by how likely the belief follows from the episode, and cannot be true beside it (0 to 1)."""
    ruled = judge_by_rules(episode=episode, belief=belief, similarity=similarity)
    if ruled.verdict is Verdict.SUPPORTS and contradiction >= policy.contradiction:
        return _leave_pair("By rules the episode states it, and a classifier finds that both cannot be true.")
    if ruled.verdict is not Verdict.IRRELEVANT or ruled.is_firm:
        return ruled
    if contradiction >= policy.contradiction:
        return Judgement(verdict=Verdict.CONTRADICTS, reason="A classifier finds that both cannot be true.")
    if entailment < policy.entailment:
        return _leave_pair("A classifier finds neither.")
    differs = check_polarity(left=episode, right=belief).reason
    if differs in _FIRM:
        return _leave_pair(f"A classifier finds that the belief follows, but the texts differ in one thing: {differs}.")
    return Judgement(verdict=Verdict.SUPPORTS, reason="A classifier finds that the belief follows from the episode.")


def _leave_pair(reason: str) -> Judgement:
    return Judgement(verdict=Verdict.IRRELEVANT, reason=reason)
