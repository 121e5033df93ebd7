"""Say why two beliefs cannot both hold, by rules alone; unsure means nothing (R11).

Both are taken to be said plainly and of the same time; nothing here depends on which of them came first.
"""

import re
from collections.abc import Callable, Collection, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property, lru_cache

from memory.domain.evidence import Verdict
from memory.language.analysis import Analysis, PolarClause, SpokenText, analyse, guess_language
from memory.language.clauses import denies
from memory.language.lexicon import STEMMERS, load_lexicon
from memory.language.readings import PERSON, Reading, Subject, content_stems, put_name, read_sentence, read_subject
from memory.language.relations import relate_claim
from memory.language.slots import (
    OF_PEOPLE,
    Attributes,
    countries,
    holds_word,
    is_kind,
    kinds_in,
    number_of,
    read_attributes,
    slots_by_name,
    things_in,
)
from memory.language.verdicts import judge_by_rules
from memory.language.words import has_cue, word_list


@dataclass(frozen=True, kw_only=True)
class Side:
    """One of the two, as the rules see it."""

    reading: Reading
    subject: Subject
    analysis: Analysis
    attributes: Attributes
    is_actual: bool  # so now: neither over, nor planned, wished or only possible

    @property
    def language(self) -> str:
        """Return the language that it is read in."""
        return self.reading.language

    @cached_property
    def is_denial(self) -> bool:
        """Tell whether a clause of it says no."""
        return any(clause.polarity < 0 or clause.local for clause in self.analysis.clauses)

    @cached_property
    def values(self) -> Mapping[str, frozenset[str]]:
        """Return by kind the values that another would exclude, a time in words among them ("half past five")."""
        spelt = {" ".join(found.group().lower().split()) for found in _SPELT_TIME.finditer(self.reading.sentence)}
        return self.reading.values.excluding() | ({"time": frozenset(spelt)} if spelt else {})

    @cached_property
    def concepts(self) -> frozenset[str]:
        """Return the concepts of all its words but its subject's, and those of times."""
        spoken = frozenset(word.concept for word in self.analysis.words)
        return spoken - load_lexicon(self.language).times - self.subject.words

    @cached_property
    def names(self) -> frozenset[str]:
        """Return the concepts that are written as names; in German every noun is."""
        if self.language == "de":
            return frozenset()
        times = load_lexicon(self.language).times
        return frozenset(word.concept for word in self.analysis.words if word.is_name and word.concept not in times)

    @cached_property
    def content(self) -> frozenset[str]:
        """Return what it says of its subject, but for when, how much, and words that say little."""
        lexicon = load_lexicon(self.language)
        dull = lexicon.times | lexicon.numbers.keys() | lexicon.ordinals.keys() | light(self.language)
        dull |= concepts("beside_values", self.language)
        said = (word.concept for word in self.analysis.words if not word.concept[0].isdigit())
        return frozenset(said) - dull - self.subject.words - {self.subject.owner}

    @property
    def contexts(self) -> frozenset[str]:
        """Return in which circumstances it holds; on which day may be what it says."""
        return self.reading.contexts - _DAYS

    @property
    def circumstances(self) -> frozenset[str]:
        """Return the same without the times of a day."""
        return self.contexts - _PARTS_OF_DAY

    def expand(self, clause: PolarClause) -> frozenset[str]:
        """Return the concepts of a clause, and the kinds of what the sentence names: who eats steak eats meat."""
        lexicon = load_lexicon(self.language)
        kinds = kinds_in(self.reading.sentence) - (OF_PEOPLE - self.attributes.had)
        return clause.concepts | {lexicon.look_up(kind).concept for kind in kinds}

    @cached_property
    def things(self) -> frozenset[str]:
        """Return the keys of what it tells of whom; two that have none in common contradict each other by no rule."""
        of = self.subject.words | {self.subject.owner}
        said = frozenset(one for clause in self.analysis.clauses for one in self.expand(clause)) | self.reading.stems
        told = {*self.reading.slots, *self.attributes.values, *self.attributes.had, *self.attributes.ruled_out}
        return frozenset(f"{key} of {who}" for who in of for key in said | told if key != who)

    @cached_property
    def ended_things(self) -> frozenset[str]:
        """Return the stems of what it says has ended, whoever tells of it."""
        return content_stems(" ".join(self.reading.ended), language=self.language)


Rule = Callable[[Side, Side], str]


def find_contradiction(*, one: Side, other: Side) -> str:
    """Say by which rule two sentences of one person's cannot both hold, "" where nothing tells that."""
    if one.language != other.language:
        return ""
    mine, theirs = sorted((one, other), key=lambda side: side.reading.sentence)
    if ended := _say_that_it_ended(mine, theirs) or _say_that_it_ended(theirs, mine):
        return ended
    if mine.is_actual != theirs.is_actual or _are_of_other_circumstances(mine, theirs):
        return ""
    rules = _OF_ONE if mine.subject.may_be(theirs.subject) else _OF_SOMEBODY_AND_THEIRS
    return next((reason for rule in rules if (reason := rule(mine, theirs))), "")


def _either(rule: Rule) -> Rule:
    """Let a rule that takes the two for different parts try both ways round."""
    return lambda mine, theirs: rule(mine, theirs) or rule(theirs, mine)


def _say_that_it_ended(claim: Side, belief: Side) -> str:
    """See one of the two say that what the other says is over."""
    sentence = belief.reading.sentence.lower()
    if not any(holds_word(sentence, thing.lower()) for thing in claim.reading.ended):
        return ""
    found = relate_claim(claim=claim.reading, belief=belief.reading, is_explicit=True)
    is_over = found.ends and found.verdict is Verdict.CONTRADICTS
    return "One says that what the other says has ended." if is_over else ""


def _are_of_other_circumstances(mine: Side, theirs: Side) -> bool:
    """Tell whether both name when or where they hold, and nothing of that in common."""
    return bool(mine.contexts and theirs.contexts and not mine.contexts & theirs.contexts)


def _fill_slot_otherwise(mine: Side, theirs: Side) -> str:
    """See a slot filled differently (E3): another home, another manager."""
    shared = mine.reading.slots.keys() & theirs.reading.slots.keys() - _SEVERAL_HOLD
    things = [side.reading.possession.thing for side in (mine, theirs) if side.reading.possession]
    if not shared and len(set(things)) != len(things) - 1:
        return ""
    found = relate_claim(claim=mine.reading, belief=theirs.reading, is_explicit=True)
    if found.verdict is not Verdict.CONTRADICTS:
        return ""
    is_of_person = any(slots_by_name()[name].is_of_person for name in shared)
    if shared and not is_of_person and mine.circumstances != theirs.circumstances:
        return ""
    if "home" in shared and _may_lie_in(mine.reading.slots["home"], theirs.reading.slots["home"]):
        return ""
    return found.reason.replace("It ", "One ", 1)


def _may_lie_in(mine: AbstractSet[str], theirs: AbstractSet[str]) -> bool:
    """Tell whether one names a country, in which the town that the other names may lie for all that is known."""
    return bool(countries() & mine) != bool(countries() & theirs)


# One at a time in what is said, and not in what somebody does, or told apart better as an attribute.
_SEVERAL_HOLD = frozenset(("sport", "trip", "diet"))


def _have_another(mine: Side, theirs: Side) -> str:
    """See what there is one of named differently: an age, a trade, what a pet is called."""
    if not mine.subject.words or not theirs.subject.words or "weekday" in _other_kinds(mine, theirs):
        return ""
    here, there = mine.attributes.values, theirs.attributes.values
    names = (name for name in sorted(here.keys() & there.keys()) if not here[name] & there[name])
    other = next((name for name in names if not _may_both_be_named(name, mine, theirs)), "")
    return f"They name two of what there is one of: {other.replace('_', ' ')}." if other else ""


def _may_both_be_named(attribute: str, mine: Side, theirs: Side) -> bool:
    if attribute in ("home", "birthplace", "origin", "childhood"):
        return _may_lie_in(mine.attributes.values[attribute], theirs.attributes.values[attribute])
    return attribute == "name" and _may_be_several(mine)


def _may_be_several(side: Side) -> bool:
    is_one = side.subject.owner or _DEFINITE.match(side.reading.sentence)
    return not is_one or not side.subject.words.isdisjoint(_several(side.language))


_DEFINITE = re.compile(r"(?:The|Our|My|Der|Die|Das|Unsere?|Meine?) ")


@lru_cache
def _several(language: str) -> frozenset[str]:
    return concepts("of_many", language) - concepts("pets_and_family", language)


def _rule_out(mine: Side, theirs: Side) -> str:
    """See what somebody is rule out what they have, eat or drink: a vegetarian and a steak."""
    if not mine.subject.words or not theirs.subject.words:
        return ""
    barred, had = mine.attributes.ruled_out | _denied_kinds(mine), theirs.attributes.had
    if theirs.subject.owner in mine.subject.words:  # "Mara's daughter …": she has one
        barred, had = barred & OF_PEOPLE, things_in(" ".join(theirs.reading.sentence.split()[:3]))
    elif not mine.subject.may_be(theirs.subject):
        return ""
    return "One rules out what the other has." if barred & had else ""


def _denied_kinds(side: Side) -> frozenset[str]:
    """Return the kinds of which a sentence says that there is nothing ("has no pets", "never eats meat")."""
    found = _NO_KIND.search(side.reading.sentence)
    if found is None:
        return frozenset()
    is_whole = is_kind(found["what"].lower())
    return frozenset(kind for kind in kinds_in(found["what"]) if is_whole or kind in ("child", "sibling"))


_NO_KIND = re.compile(
    r"(?:\b(?:has|have|eats?|drinks?|owns?|keeps?) no|"
    r"(?:\b(?:never|cannot|not)|n't|n’t) (?:eat|drink|have|own|keep|touch)s?(?: any)?|"
    r"\b(?:hat|isst|trinkt|besitzt|hält) (?:\w+ )?kein(?:e|en|er)?) "
    r"(?P<what>[\w-]+)(?=[.,;]|$| (?:or|and|at|oder|und)\b)",
    re.IGNORECASE,
)


def _deny_each_other(denier: Side, asserter: Side) -> str:
    """See one say no to what the other says, which may say when, how often or how much as well."""
    if not denier.is_denial:
        return ""
    if _BOUND.search(denier.reading.sentence):
        return _break_bound(denier, asserter)
    if denies(asserter.reading.sentence) or asserter.analysis.is_limited:
        return ""
    if denier.analysis.quantities and not asserter.analysis.quantities:
        return ""
    said = [asserter.expand(clause) for clause in asserter.analysis.clauses if clause.polarity > 0]
    spoken = frozenset(word.concept for word in denier.analysis.words)
    little = denier.subject.words | light(denier.language) | concepts("beside_denials", denier.language)
    for clause in denier.analysis.clauses:
        denied = (clause.concepts & spoken) - little
        if denied <= load_lexicon(denier.language).times:  # what is said of a day or a morning is more than the day
            denied = (clause.concepts & spoken) - denier.subject.words - concepts("having", denier.language)
        if clause.polarity > 0 or not denied - concepts("liking", denier.language):
            continue
        if any(denied <= told for told in said) and not _is_elsewhere(denied, denier, asserter):
            return "One says no to what the other says."
    return ""


def _is_elsewhere(denied: Collection[str], denier: Side, asserter: Side) -> bool:
    """Tell whether what is denied is a place to go to, and the other says nothing of being there."""
    to = {word.concept for word in denier.analysis.words if word.is_name and word.governor in ("to", "in", "nach")}
    there = {word.concept for word in asserter.analysis.words if word.governor in _THERE}
    return bool(to.intersection(denied)) and not to & there


_THERE = frozenset(("to", "in", "at", "around", "through", "across", "nach", "durch"))

_BOUND = re.compile(
    r"(?:\b(?:not|never|nie|nicht)|n't|n’t)\b[^,;]*?\b(?P<side>before|after|until|vor|nach|bis) "
    r"(?P<hour>\d{1,2}|[a-zäöü]+)(?::\d\d)?(?P<part> ?[ap]\.?m)?\b",
    re.IGNORECASE,
)


def _break_bound(denier: Side, asserter: Side) -> str:
    """See a time at which something is said never to be: "never before eight", and "at five"."""
    bound = _BOUND.search(denier.reading.sentence)
    limit, at = number_of(bound["hour"]) if bound else None, list(map(_hour, asserter.reading.values.time))
    if bound is None or limit is None or not at or asserter.is_denial or not denier.content & asserter.content:
        return ""
    limit += 12 * ((bound["part"] or "").strip().lower().startswith("p") and limit < 12)
    is_early = bound["side"].lower() in ("before", "until", "vor", "bis")
    return "One names a time that the other rules out." if (max(at) < limit if is_early else min(at) > limit) else ""


def _hour(time: str) -> float:
    hour, _, minute = time.partition(":")
    return int(hour) + int(minute) / 60


def _name_other_value(mine: Side, theirs: Side) -> str:
    """See the same said with another day, time, date, price or quantity."""
    kinds = _other_kinds(mine, theirs)
    if not kinds or not mine.subject.words or not theirs.subject.words or _may_both_be(mine, theirs, kinds):
        return ""
    if mine.content or theirs.content:
        is_part = mine.content <= theirs.content or theirs.content <= mine.content
        is_same = bool(mine.content and theirs.content) and is_part and len(mine.content ^ theirs.content) <= 1
    else:  # all is said in the subject: "Mara's piano lesson is at four"
        is_same = mine.subject == theirs.subject and len(mine.subject.words) + bool(mine.subject.owner) > 1
    return f"They say the same of another {kinds[0]}." if is_same else ""


def _name_other_value_of_theirs(mine: Side, theirs: Side) -> str:
    """See what is somebody's at one time, and what they do at another: "Mara's bridge evening", "Mara plays bridge"."""
    kinds = _other_kinds(mine, theirs)
    if not kinds or mine.subject.owner not in theirs.subject.words or _may_both_be(mine, theirs, kinds):
        return ""
    what = mine.subject.words - concepts("beside_values", mine.language)
    done = theirs.content - load_lexicon(theirs.language).verbs
    return f"They say the same of another {kinds[0]}." if what and what == done and not mine.content - what else ""


def _other_kinds(mine: Side, theirs: Side) -> list[str]:
    """Return the kinds of values that both name, and none of them the same."""
    return [kind for kind in mine.values if kind in theirs.values and not mine.values[kind] & theirs.values[kind]]


def _may_both_be(mine: Side, theirs: Side, kinds: Collection[str]) -> bool:
    """Tell whether it may be so twice: in two circumstances, two years, or on two days of a week that has many such."""
    if mine.is_denial or theirs.is_denial or mine.circumstances != theirs.circumstances:
        return True
    said = {word.lower() for side in (mine, theirs) for word in side.reading.sentence.strip(".").split()}
    if "weekday" in kinds and (
        not said.isdisjoint(word_list("on_several_days"))
        or (len(kinds) > 1 and PERSON in mine.subject.words | theirs.subject.words)
    ):
        return True
    here, there = (set(_YEAR.findall(side.reading.sentence)) for side in (mine, theirs))
    return bool(here and there and not here & there) and said.isdisjoint(word_list("of_one_year"))


_YEAR = re.compile(r"\b(?:19|20)\d\d\b")


def _differ_in_a_word(mine: Side, theirs: Side) -> str:
    """See two versions of one sentence that differ in a number, or in words that exclude each other (B8)."""
    shared = (mine.concepts & theirs.concepts) | (mine.subject.words & theirs.subject.words) - {PERSON}
    if mine.is_denial != theirs.is_denial or not shared or _say_other_things(mine, theirs):
        return ""
    if mine.names - theirs.names and theirs.names - mine.names:
        return ""
    if _chooses(mine) != _chooses(theirs):
        return ""  # what is chosen over another may be liked, and the other, too
    kinds = _other_kinds(mine, theirs)
    years = [_YEAR.search(side.reading.sentence) for side in (mine, theirs)]
    if (kinds or all(years)) and _may_both_be(mine, theirs, kinds):
        return ""
    left, right = (
        SpokenText(text=side.reading.sentence, speaker=side.reading.subject, language=side.language)
        for side in (mine, theirs)
    )
    is_other = judge_by_rules(episode=left, belief=right).verdict is Verdict.CONTRADICTS
    return "They say opposite things in the same words." if is_other else ""


def _chooses(side: Side) -> bool:
    return any(relation.kind == "choice" for relation in side.analysis.relations)


def _say_other_things(mine: Side, theirs: Side) -> bool:
    """Tell whether each says something that the other does not, and none of it excludes the other."""
    lexicon = load_lexicon(mine.language)
    here, there = mine.concepts - theirs.concepts, theirs.concepts - mine.concepts
    return bool(here and there) and not any(
        lexicon.exclude_each_other(one, other) or lexicon.kinds.get(one, -1) == lexicon.kinds.get(other, -2)
        for one in here
        for other in there
    )


_SPELT_TIME = re.compile(
    r"\b(?:half past|quarter past|quarter to|halb|viertel nach|viertel vor|dreiviertel) [a-zäöü]+\b", re.IGNORECASE
)
_DAYS = frozenset(("saturday", "sunday"))
_PARTS_OF_DAY = frozenset(("morning", "evening", "breakfast"))


@lru_cache
def light(language: str) -> frozenset[str]:
    """Return the concepts that say no more than that something is had; whether it is liked says more."""
    return (load_lexicon(language).light | concepts("having", language)) - concepts("liking", language)


@lru_cache
def concepts(name: str, language: str) -> frozenset[str]:
    """Return the concepts of a closed list of words."""
    lexicon = load_lexicon(language)
    return frozenset(lexicon.look_up(word).concept for word in word_list(name))


_OF_ONE: tuple[Rule, ...] = (
    _either(_fill_slot_otherwise),
    _have_another,
    _either(_rule_out),
    _either(_deny_each_other),
    _name_other_value,
    _either(_differ_in_a_word),
)
_OF_SOMEBODY_AND_THEIRS: tuple[Rule, ...] = (_either(_rule_out), _either(_name_other_value_of_theirs))


@lru_cache(maxsize=8192)
def read_side(sentence: str, *, person: str, subject: str = "", language: str = "en") -> Side | None:
    """Read a sentence of a person's as the rules see it, None in a language that they do not know."""
    if language not in STEMMERS:
        return None
    told = _retell(sentence)
    text = put_name(told, person=person)
    for pattern, plain in _FEARS:
        text = pattern.sub(plain, text)
    return Side(
        reading=read_sentence(sentence, person=person, subject=subject, language=language),
        subject=read_subject(told, person=person, language=language),
        analysis=analyse(SpokenText(text=text, language=language)),
        attributes=read_attributes(told),
        is_actual=not (_NOT_NOW.search(sentence) or has_cue("plan", sentence, language=language)),
    )


def language_of(sentence: str, *, known: str, usual: str = "") -> str:
    """Return the language that a sentence is read in where nobody could tell: the likelier one, else the usual."""
    return known or guess_language(sentence) or usual or "en"


def _retell(sentence: str) -> str:
    for pattern, plain in _RETOLD:
        sentence = pattern.sub(plain, sentence)
    return sentence


# What can be said in two ways is read in one: "Mara has a cat called Tilly" as what her cat is called.
_RETOLD: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(
            r"^(?P<who>[\w ]+?) (?:has|owns|keeps|got|hat|besitzt|hält) (?:got )?(?:an?|eine?n?) (?:\w+ )?"
            r"(?P<what>\w+),? (?:which is |who is |that is |die |der |das )?(?:called|named|namens|heißt)\b"
        ),
        r"\g<who>'s \g<what> is called",
    ),
    (re.compile(r"(?<=['’]s) name is\b"), " is called"),
    (re.compile(r"['’]s? (?:home|flat|house|apartment|place) is in (?=[A-ZÄÖÜ])"), " lives in "),
    (re.compile(r"['’]s? favou?rite (?:dish|food|meal|drink|snack|herb|fruit|animal|pastime|hobby) is\b"), " likes"),
    (re.compile(r"\b(?:is|was) (?:an? )?(?:\w+ )?smoker\b"), "smokes"),
    (re.compile(r"\bis (?:an? )?non-?smoker\b"), "does not smoke"),
    (re.compile(r"\bist (?:eine? )?(?:\w+ )?Raucher(?:in)?\b"), "raucht"),
    (re.compile(r"\bist (?:eine? )?Nichtraucher(?:in)?\b"), "raucht nicht"),
)

# To be afraid of something is, for two sentences, not to like it.
_FEARS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\b(?:is|are) (?:\w+ly |very |so )?(?:afraid|scared|terrified|frightened|phobic) of\b"), "hates"),
    (re.compile(r"\b(?:is|are) not (?:at all )?(?:afraid|scared|terrified|frightened) of\b"), "likes"),
    (re.compile(r"\b(?:has|have) (?:an? )?(?:\w+ )?(?:fear|phobia|horror) of\b"), "hates"),
    (re.compile(r"\bhat keine Angst vor\b"), "mag"),
    (re.compile(r"\bhat (?:\w+ )?Angst vor\b|\bfürchtet sich vor\b"), "hasst"),
)

_NOT_NOW = re.compile(
    r"\b(?:used to|was (?!born|called|named)|were|had been|formerly|previously|once|ago|"
    r"as a (?:child|girl|boy|kid|teenager|student)|in the past|(?<!has )(?<!have )(?:lived|worked)|"
    r"wants? to|would|hopes?|plans?|might|may(?= [a-z])|maybe|perhaps|considering|thinking|dreams? of|wishes|could|"
    r"should|if|will|going to|about to|soon|next (?:year|month|summer|winter|spring|autumn)|"
    r"früher|damals|einst|ehemals|als kind|war|hatte|wohnte|lebte|arbeitete|"
    r"möchte|würde|könnte|vielleicht|plant|überlegt|hofft|bald|wird|wenn|falls)\b",
    re.IGNORECASE,
)
