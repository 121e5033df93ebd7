"""What a text to be remembered claims, and what becomes of each claim beside what is believed (R1, R2)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum

from memory.domain.introductions import is_persons_name
from memory.domain.lexicon import words
from memory.domain.noting import hear_note
from memory.domain.policy_remembering import RememberPolicy
from memory.domain.refusals import NOTHING_SAID, refuse_statement
from memory.domain.relative_dates import date_sentence
from memory.domain.residue import drop_output
from memory.domain.sentences import drop_shared, split_sentences, strip_opening
from memory.domain.turns import Turn, list_claims

OWNER = "owner"
FACTUAL = "factual"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One claim of a text: importance from 1 to 10, and whom it is about, in lower case."""

    text: str
    fact_type: str = FACTUAL
    importance: int
    subject: str = OWNER


class Course(StrEnum):
    """What is to be done about a fact."""

    REINFORCE = "reinforce"
    CHECK = "check"  # ask whether it contradicts something
    CREATE = "create"


@dataclass(frozen=True, slots=True, kw_only=True)
class Near:
    """A belief near a fact: similarity on the reference scale, and whether the polarity guard passes between them."""

    id: str
    similarity: float
    passes_guard: bool
    is_live: bool = True  # what is archived can be borne out, and is contradicted by nobody


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """What to do about a fact: reinforce `target` or make a belief, having asked of `candidates`, the nearest first."""

    course: Course
    target: str = ""
    candidates: tuple[str, ...] = ()


def choose_course(*, near: Sequence[Near], policy: RememberPolicy) -> Match:
    """Decide by likeness and guard what a fact does to the beliefs near it (R2).

    What is live and says the same takes its word before what is archived. Of those that are more alike than it, and
    that the guard holds apart, somebody is asked all the same whether the fact contradicts them.
    """
    ordered = sorted(near, key=lambda one: (not one.is_live, -one.similarity, one.id))
    same = next((one for one in ordered if one.similarity > policy.reinforce_similarity and one.passes_guard), None)
    least = policy.contradiction_similarity if same is None else same.similarity
    doubtful = [one.id for one in ordered if one.is_live and one is not same and one.similarity >= least]
    candidates = tuple(doubtful[: policy.candidates])
    if same:
        return Match(course=Course.REINFORCE, target=same.id, candidates=candidates)
    return Match(course=Course.CHECK if candidates else Course.CREATE, candidates=candidates)


def whole_text(*, text: str, policy: RememberPolicy) -> Fact:
    """Take a text for a fact as it stands: what is left where nobody could read it."""
    return Fact(text=clamp_fact(text=text, policy=policy), importance=policy.importance)


def clamp_fact(*, text: str, policy: RememberPolicy) -> str:
    """Cut a text at a word to the length of a fact, on one line."""
    words = " ".join(text.split())
    if len(words) <= policy.fact_characters:
        return words
    return words[: policy.fact_characters - 2].rsplit(" ", 1)[0] + " …"


def says_something(*, text: str, language: str) -> bool:
    """Tell whether a fact claims anything: no question, greeting or thanks, and nothing that nobody said."""
    return refuse_statement(text, language=language) not in NOTHING_SAID


def read_facts(
    *, text: str, speaker: str, language: str, policy: RememberPolicy, said_on: date | None = None
) -> list[Fact]:
    """Read a text's claims by rules: each sentence that stands for itself, told of its speaker where one is known.

    With the day on which it was said, a claim says which day "tomorrow" is.
    """
    said = drop_output(text)
    turn = Turn(text=_without_wishes(drop_shared(said) if speaker else said), speaker=speaker, language=language)
    claims = dict.fromkeys(list_claims(turn) if speaker else _as_written(turn))
    return [
        Fact(
            text=clamp_fact(text=date_sentence(text=claim, said_on=said_on), policy=policy),
            importance=policy.importance,
            subject=_subject_of(claim, speaker),
        )
        for claim in list(claims)[: policy.facts]
    ]


def _without_wishes(text: str) -> str:
    """Drop the words with which a sentence wishes to be remembered."""
    return "\n".join(hear_note(sentence) or sentence for sentence in split_sentences(text))


def _as_written(turn: Turn) -> list[str]:
    """List the sentences that claim something, in the first person too: whoever remembers speaks of themselves."""
    sentences = (strip_opening(sentence, is_addressed=False) for sentence in split_sentences(turn.text))
    return [plain for plain in sentences if plain and says_something(text=plain, language=turn.language)]


_OTHER = re.compile(
    r"(?:(?:my|our|meine?|unsere?|[^\W\d_]\w*(?:['’]s?|s)) (?:\w+ ){0,2}?(?P<relation>"
    r"sister|brother|mother|father|mom|mum|dad|wife|husband|partner|daughter|son|friend|colleague|boss|manager|cousin|"
    r"aunt|uncle|niece|nephew|neighbou?r|girlfriend|boyfriend|flatmate|roommate|fiancée?|teacher|"
    r"schwester|bruder|mutter|vater|mama|papa|frau|mann|partnerin|tochter|sohn|freund|freundin|kollege|kollegin|chef|"
    r"chefin|cousine|tante|onkel|nichte|neffe|nachbar|nachbarin|mitbewohner|mitbewohnerin|lehrer|lehrerin) )?"
    r"(?-i:(?P<name>[^\W\d_a-zäöüß]\w+) (?P<next>[a-zäöü]\w*))",
    re.IGNORECASE,
)
_ALSO_THINGS = words("manager partner boss friend freund chef")  # "our manager Jira", "our partner Siemens"
_ALSO_WORDS = words("max jan")  # "Max retries", "Jan release": names where a verb follows
_VERBS = words(
    "is was has had lives works likes loves hates prefers wants needs uses drinks eats plays moved said says told can "
    "will ist war hat hatte wohnt lebt arbeitet mag liebt hasst will möchte braucht trinkt isst spielt kann wird heißt"
)
_MORE_OR_ORDER = words("and or und oder out up down off in on over away back around through along aus auf ab")


def _subject_of(claim: str, speaker: str) -> str:
    """Name whom a claim is told of: another person whom it begins with, the speaker it names, else the owner.

    Somebody else is "My sister Anna …", and "Anna …" where that is nothing but a first name; nobody alone is, where
    another follows ("Anna and Tom"), and nobody at all in an order ("Max out the volume").
    """
    other = _OTHER.match(claim)
    if other and _is_person(name=other["name"], relation=other["relation"] or "", following=other["next"]):
        return other["name"].lower()
    return speaker.lower() if speaker and speaker.lower() in claim.lower() else OWNER


def _is_person(*, name: str, relation: str, following: str) -> bool:
    if following in _MORE_OR_ORDER:
        return False
    if relation and relation.lower() not in _ALSO_THINGS:
        return True
    return is_persons_name(name) and (name.lower() not in _ALSO_WORDS or following in _VERBS)


def distinct_facts(*, facts: Sequence[Fact]) -> list[Fact]:
    """Keep one of those that say the same in the same words, the first."""
    return list({fact.text.casefold(): fact for fact in reversed(facts)}.values())[::-1]
