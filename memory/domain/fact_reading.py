"""Read the facts that a turn tells by rules alone (L3): each a sentence that stands without the others."""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from datetime import date

from memory.domain.category import Category
from memory.domain.conversation import Fact, Role
from memory.domain.entities import find_entities
from memory.domain.fact_traits import (
    GENERAL_IMPORTANCE,
    IMPORTANCE,
    read_category,
    read_causes,
    read_confidence,
    read_valence,
)
from memory.domain.introductions import as_introduction
from memory.domain.language import detect_language
from memory.domain.lexicon import ENGLISH_PAST, ENGLISH_VERBS, words
from memory.domain.noting import hear_note
from memory.domain.person import is_first_person, to_third_person
from memory.domain.references import is_verb_form
from memory.domain.refusals import DEFAULTS, NOTHING_SAID, Refusal, has_verb, is_german, refuse_statement
from memory.domain.relative_dates import date_sentence
from memory.domain.residue import drop_output
from memory.domain.sentences import (
    drop_shared,
    list_shortened,
    list_words,
    split_sentences,
    strip_opening,
    strip_pictographs,
)
from memory.domain.short_facts import is_short_fact

_LONG = replace(DEFAULTS, statement_words=45)  # a fact may say more than a belief
_READ = 4_000  # characters of a turn: what comes after them was pasted
# Without a name; in German without an article, which would have to be declined.
_NAMELESS = {
    (Role.USER, False): "the user",
    (Role.USER, True): "Nutzer",
    (Role.ASSISTANT, False): "the assistant",
    (Role.ASSISTANT, True): "Assistent",
}
_ADDRESS = re.compile(
    r"\b(?:you|your|yours|you're|you've|you'll|you'd|yourself|y'all|ya|du|dich|dir|dein\w*|euch|euer\w*)\b",
    re.IGNORECASE,
)
_OFFER = re.compile(
    r"(?:let me|i can (?:help|show|also)|here(?:'s| is| are)|i(?:'ll| will) (?:help|explain|show|be here)|feel free|"
    r"i(?:'m| am) (?:here|happy|glad) to|as an ai|i understand|i see|ich kann (?:dir|ihnen|gern)|gerne)\b",
    re.IGNORECASE,
)
_LEANING = re.compile(
    r"(?:it|it's|its|so|then|this|that|these|those|they|he|she|one|another|some|both|same|such|there|here|gonna|gotta|"
    r"wanna|not|or|which|who|like|kind|sort|any|es|das|dies|dann|so|dort|hier)\b(?! (?:ist|is) (?:important|wichtig))",
    re.IGNORECASE,
)
_GERUND = re.compile(r"\w+ing\b", re.IGNORECASE)
_FINITE = re.compile(
    r"\b(?:is|are|was|were|has|have|had|can|could|will|would|should|must|may|might|does|did|helps?|makes?|gives?|keeps?|"
    r"takes?|means?|brings?|feels?|lets?|gets?|requires?|needs|works)\b|'s\b",
    re.IGNORECASE,
)
# Praise of nothing in particular says little of anybody.
_PLATITUDE = re.compile(
    r"\b(?:awesome|amazing|the best|all about|so (?:much|important|special|great|cool)|such an?|really (?:important|"
    r"special|great|cool|nice)|wonderful|fantastic|incredible|beautiful|inspiring|makes (?:all|a) (?:the )?"
    r"difference|worth it|the key|priceless)\b|!$",
    re.IGNORECASE,
)
_AGREED = re.compile(
    r"^(?:(?:i|we|ich) )?(?:totally |completely |so |definitely |voll und ganz )*(?:agree|stimme zu)\b", re.I
)
_PERSONAL = re.compile(r"\b(?:I|my|me|mine|ich|mein\w*|mir|mich)\b")
# Words at the head of a sentence that are verbs elsewhere.
_NOUNS = words(
    "tests builds deploys merges releases reviews reports commits plans notes calls changes updates prices needs cats "
    "stores shops works backups logs lists names types uses runs prints values cycles points checks costs"
)
_DROPPED = {
    "been": "have been",
    "gotta": "have to",
    "wanna": "want to",
    "planning": "am planning",
    "hoping": "am hoping",
}
_AMBIGUOUS = words("set let cut read cost quit hit put shut spread hurt found left made told thought felt kept built")
_MARK = re.compile(r"^\s*(?:[>*•#-]+|\d+[.)])\s+")
_NAME_WISH = re.compile(r"^(?:please |just )?call me ([A-Z]\w+)", re.IGNORECASE)
_OF_ONESELF = re.compile(r"(?:I|I'm|I'll|I'd|I've|We|We'll|My)\b")
# What an assistant does when it is told something: it says so, and often says it again.
_ASSENT = re.compile(
    r"(?:(?:will do|noted|got it|understood|okay|ok|sure|certainly|of course|alright|verstanden|alles klar|mache ich)"
    r"\s*[:,.!–—-]|(?:i(?:'ll| will) (?:always|never|remember|note|keep|make sure)|ich (?:werde|merke)) \w)",
    re.IGNORECASE,
)
_WILL_DO = re.compile(r"will do\s*[:,–—-]\s*(?=\w)", re.IGNORECASE)
_REQUEST = re.compile(r"(?:bitte|please|kindly)\b(?!.*\b(?:always|never|immer|nie|niemals)\b)", re.IGNORECASE)
_SUBORDINATE = words("since because when while until after before if although though as weil wenn als nachdem bevor")
_CODE = re.compile(r"```.*?(?:```|\Z)|^ {4}\S[^\n]*$", re.DOTALL | re.MULTILINE)
_FINAL = NOTHING_SAID | {Refusal.SHARES_SPAN}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Voice:
    """Who speaks, in which language, and whom they may name."""

    role: Role
    speaker: str
    german: bool
    known: Collection[str]
    is_wished: bool = False  # that this sentence be remembered

    @property
    def name(self) -> str:
        return self.speaker or _NAMELESS.get((self.role, self.german), "")

    @property
    def tag(self) -> str:
        return "de" if self.german else "en"

    def refuses(self, text: str) -> Refusal | None:
        """Name why a text is no fact; a short clause is enough for what lasts, or is to be remembered."""
        refusal = refuse_statement(text, language=self.tag, policy=_LONG)
        if refusal is not Refusal.FRAGMENT:
            return refusal
        is_wished = self.is_wished and has_verb(list_words(text), german=self.german)
        is_short = self.role is Role.USER and is_short_fact(text=text, names={self.name, *self.known})
        return None if is_wished or is_short else refusal


def find_facts(
    *,
    text: str,
    role: Role,
    number: int,
    speaker: str = "",
    known: Collection[str] = (),
    said_on: date | None = None,
) -> list[Fact]:
    """List the facts that one turn tells; `known` are names that a sentence may hold.

    With the day on which it was said, a fact says which day "yesterday" is.
    """
    facts: dict[str, Fact] = {}
    language = detect_language(text[:_READ])
    for sentence in _list_sentences(text[:_READ]):
        german = is_german(sentence, language=language)
        voice = _Voice(role=role, speaker=speaker, german=german, known={*known, speaker} - {""})
        fact = _read_sentence(sentence, voice)
        if fact:
            dated = date_sentence(text=fact.text, said_on=said_on)
            facts.setdefault(dated.casefold(), replace(fact, text=dated, turns=(number,)))
    return list(facts.values())


def _list_sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a turn line by line, without code, what programs print, marks of lists, and pictures."""
    for line in _CODE.sub("\n", drop_output(text)).splitlines():
        yield from split_sentences(strip_pictographs(drop_shared(_MARK.sub("", line))))


def _read_sentence(sentence: str, voice: _Voice) -> Fact | None:
    is_model = voice.role is Role.ASSISTANT
    if is_model and not voice.speaker and _ASSENT.match(sentence):
        return None
    plain = sentence if is_model else _WILL_DO.sub("", sentence)
    noted = hear_note(plain, may_ask=not is_model)
    voice = replace(voice, is_wished=noted is not None)
    sentence = _NAME_WISH.sub(r"I want to be called \1", noted or plain)
    sentence = sentence if is_model else as_introduction(sentence=sentence, known=voice.known)
    said = strip_opening(sentence, is_addressed=bool(voice.speaker), keeps_date=True)
    category = _categorise(sentence, said, german=voice.german)
    if is_model and (_OFFER.match(said) or category is Category.COMMITMENT):
        return None  # an assistant announces each of its steps
    told = next(_tellings(said, voice), None)
    if told is None or (category is Category.FACT and _is_order(said)) or _AGREED.search(said):
        return None
    bare = _bare(told, voice)
    own = (voice.speaker,) if bare != told else ()
    entities = find_entities(text=bare, known=voice.known, own=own, german=voice.german)
    names_nobody = not entities and not (voice.name and voice.name.casefold() in told.casefold())
    if names_nobody and (category is Category.MOMENT or _PLATITUDE.search(bare)):
        return None
    is_general = names_nobody and category is Category.FACT and bool(voice.speaker)
    return Fact(
        text=told,
        category=category,
        confidence=read_confidence(said=sentence, is_by_model=voice.role is not Role.USER),
        turns=(),
        entities=entities,
        causes=read_causes(sentence=bare),
        importance=GENERAL_IMPORTANCE if is_general else IMPORTANCE[category],
        valence=read_valence(said=sentence),
    )


def _categorise(sentence: str, said: str, *, german: bool) -> Category:
    """Read the category off the whole sentence, where "No, …" corrects, else off what is left of it."""
    whole = read_category(said=sentence, german=german)
    return whole if whole not in (Category.FACT, Category.MOMENT) else read_category(said=said, german=german)


def _tellings(said: str, voice: _Voice) -> Iterator[str]:
    """Yield the sentence told so that it stands alone, whole at first, then without what trails."""
    for part in list_shortened(_name_listener(said, voice)):
        if voice.refuses(part) in _FINAL or _ADDRESS.search(part) or _hangs(part, voice):
            continue
        whole = part if voice.german else _give_subject(part)
        told = to_third_person(whole, speaker=voice.name, language=voice.tag) or _quote(whole, voice)
        if not voice.refuses(told) and not _is_empty_praise(told, voice):
            yield _close(told)


def _name_listener(said: str, voice: _Voice) -> str:
    """Say who "you" is in what somebody says of themselves, where only one can be meant."""
    others = set(voice.known) - {voice.speaker}
    listener = others.pop() if voice.speaker and len(others) == 1 else ""
    if not voice.speaker:
        listener = {Role.USER: "the assistant", Role.ASSISTANT: "the user"}.get(voice.role, "")
    if voice.german or not listener or not _OF_ONESELF.match(said):
        return said
    return re.sub(r"(?<=\w )you(?= \w|[.!,]|$)(?! (?:are|were|have|can|will|do|did|said|know))", listener, said)


def _give_subject(part: str) -> str:
    """Give "Took a trip" its "I", which chats leave out."""
    first, _, rest = part.partition(" ")
    word = first.lower()
    if word in ENGLISH_PAST - _AMBIGUOUS or (word.endswith("ed") and is_verb_form(word)):
        return f"I {word} {rest}"
    return f"I {_DROPPED[word]} {rest}" if word in _DROPPED else part


def _hangs(part: str, voice: _Voice) -> bool:
    """Tell whether a sentence leans on the one before it, or is no sentence: "It was made there", "Taking in kids"."""
    if voice.refuses(part) is Refusal.UNRESOLVED_REFERENCE or _LEANING.match(part):
        return True
    first = part.partition(" ")[0].lower()
    if first in _SUBORDINATE and "," not in part:
        return True
    lacks_subject = first.endswith("s") and first not in _NOUNS and is_verb_form(first)
    return lacks_subject or (_GERUND.match(part) is not None and not _FINITE.search(part))


def _is_empty_praise(told: str, voice: _Voice) -> bool:
    """Tell praise of nothing in particular, that says little of anybody."""
    bare = _bare(told, voice)
    is_personal = voice.name in bare or _PERSONAL.search(bare)
    return not is_personal and _PLATITUDE.search(bare) is not None


def _quote(part: str, voice: _Voice) -> str:
    """Leave in the first person what cannot safely be told in the third; its speaker stands beside it."""
    return f"{voice.speaker}: {part}" if voice.speaker and is_first_person(part) else part


def _bare(told: str, voice: _Voice) -> str:
    return told.removeprefix(f"{voice.speaker}: ")


def _is_order(said: str) -> bool:
    """Tell a request that is done with ("Fix the tests") from what holds; rules say always, never or must."""
    if _REQUEST.match(said):
        return True
    first, _, rest = said.partition(" ")
    lowered = first.lower()
    return lowered in ENGLISH_VERBS - _NOUNS and not is_verb_form(rest.partition(" ")[0].lower())


def _close(told: str) -> str:
    return told.rstrip(" .!…,;:-–—") + "."
