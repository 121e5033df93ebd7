"""What one person's new messages do to what is believed, read by the small model that ships with the project (F1, F6).

Each sentence is weighed with its message; one that may be worth something is compared with the beliefs nearest to it.
Statements are quotes: nothing is rewritten, and no rule says what words mean. Where the reader is unsure it is silent,
since a memory that believes less is better than one that believes what is not so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from memory.domain.taxonomy import Role
from memory.llm.reader import (
    CHANGE,
    CONTRADICTS,
    EVENT,
    LASTING,
    NONE,
    PARTIAL,
    SUPPORTS,
    Reader,
    reader,
    spoken,
)
from memory.llm.replies import LONGEST_STATEMENT, AboutBelief, BeliefWord, NewStatement, Reading
from memory.llm.requests import Message, ReadingRequest
from memory.text.names import NOBODY
from memory.text.quotes import is_first_person, quote, unquote
from memory.text.sentences import split_sentences
from memory.text.words import count_words, is_question, list_names, words_key


def read_offline(request: ReadingRequest) -> Reading:
    """Return what the request's messages say: new statements, and a line for each belief that one bears on."""
    model = reader()
    model.load()
    session = _Session(request=request, model=model)
    for number, message, before in _read_in_order(request):
        session.read(number=number, message=message, before=before)
    return session.reading()


def _read_in_order(request: ReadingRequest) -> Iterator[tuple[int, Message, str]]:
    """Yield each message that is to be read, its number, and what an assistant said directly before it."""
    number, before, conversation = 0, "", ""
    for message in request.episodes:
        before = before if message.session == conversation else ""
        conversation = message.session
        if message.is_read:
            number += 1
            yield number, message, before
        before = message.text if message.role == Role.ASSISTANT else ""


@dataclass(slots=True, kw_only=True)
class _Belief:
    """A shown belief or an entry of this reading, as sentences are compared with it."""

    label: str
    said: str  # spoken: "Mara: Fridays are for my own comic."
    vector: NDArray[np.float32]
    since: str = ""
    until: str = ""  # the last day on which it holds; long ago for one that this reading has ended
    message: int = 0  # the number of the message that founded it; 0 for a shown one

    def is_over(self, day: str) -> bool:
        """Tell whether it has ended before a day."""
        return bool(self.until) and self.until < (day or "9999")

    def is_to_come(self, day: str) -> bool:
        """Tell whether it begins after a day: a message that arrives late."""
        return bool(day) and day < self.since


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sentence:
    """A sentence of a message, and what the reader makes of it."""

    text: str
    said: str
    person: str
    context: str
    message: int
    day: str
    worth: NDArray[np.float32]
    vector: NDArray[np.float32]

    @property
    def lasting(self) -> float:
        """Return how likely it tells what lasts, or a change of it."""
        return float(self.worth[LASTING] + self.worth[CHANGE])


# Thresholds belong to a training of the reader: choose them anew for each, on lives that it was not trained on.
IDLE = 0.7  # probability of *none* from which a sentence is compared with nothing: it is a question or small talk
NEW_STATE = 0.4  # of lasting or change for a statement in the place of what it ends
LASTING_STATEMENT = 0.9  # of lasting or change for a new statement: 97 of 100 are right, and a quarter is left out
EVENT_STATEMENT = 0.7  # of event; a wrong one founds no belief, so that less is asked than of what lasts
NEAR = 0.2  # centred cosine from which a sentence may speak of a belief
ALIKE = 0.5  # centred cosine from which a belief ends with the one that a sentence denies most: it says the same
BORNE_OUT = 0.5  # SUPPORTS: a wrong one leaves a statement unsaid, a missed one makes a second belief of the same
BORNE_OUT_AGAIN = 0.95  # SUPPORTS for a belief that is over: what replaced it is so near that less brings back the old
DENIED = 0.8  # CONTRADICTS; less ends more beliefs that hold, more lets former ones stand
HOLDS_IN_PART = 0.85  # PARTIAL, of which there were few to learn from
ASSERTED = 0.2  # of lasting or change, from which a sentence may deny a belief: questions and small talk deny none
SAME_BOTH_WAYS = 0.15  # SUPPORTS each way, from which a sentence is no statement of its own
SAME_ONE_WAY, SAME_COSINE = 0.8, 0.75  # or one way, where vectors are near; near alone is as often a contradiction
REMEMBERED_NONE = 0.8  # of none, below which a sentence is kept when its message is to be remembered
REMEMBERED_WHOLE_NONE = 0.9  # the same for a whole message that gave nothing: somebody asked for it

_FEWEST_WORDS = 3  # of a new statement
_FEWEST_READ = 2  # words of a sentence that is read at all: "yes", "ok" say nothing alone
_NEAREST = 8  # beliefs that a sentence is compared with
_CONTEXT, _BEFORE = 900, 200  # characters of the message and of what was said before it, as in training
_RANK = {BeliefWord.SUPPORTS: 0, BeliefWord.PARTIAL: 1, BeliefWord.CONTRADICTS: 2, BeliefWord.ENDED: 3}


@dataclass(slots=True, kw_only=True)
class _Session:
    """The state of one reading: the beliefs so far, and the lines of the reply."""

    request: ReadingRequest
    model: Reader
    beliefs: list[_Belief] = field(default_factory=list)
    new: list[NewStatement] = field(default_factory=list)
    about: dict[tuple[int, str], BeliefWord] = field(default_factory=dict)
    by_words: dict[str, _Belief] = field(default_factory=dict)  # for what is said again in the same words

    def __post_init__(self) -> None:
        for number, shown in enumerate(self.request.beliefs, start=1):
            person, sentence = unquote(shown.statement) or (self.request.person, shown.statement)
            self._add_belief(label=str(number), person=person, sentence=sentence, since=shown.since, until=shown.until)

    def reading(self) -> Reading:
        """Return the reply; what a later sentence of the same message took back replaces nothing."""
        ended = {key for key, word in self.about.items() if word == BeliefWord.ENDED}
        new = [
            line if not line.replaces or (line.m, line.replaces) in ended else line.model_copy(update={"replaces": ""})
            for line in self.new
        ]
        about = [AboutBelief(m=message, b=label, verdict=word) for (message, label), word in self.about.items()]
        return Reading.model_validate(
            {
                "new": [line.model_dump(mode="json") for line in new],
                "about": [line.model_dump(mode="json") for line in about],
            }
        )

    def read(self, *, number: int, message: Message, before: str) -> None:
        """Read one message, sentence by sentence: a later one sees what an earlier one founded or ended."""
        is_user = message.role == Role.USER
        person = message.speaker or (self.request.person if is_user else "") or (NOBODY if is_user else "The assistant")
        texts = [text for text in split_sentences(message.text) if count_words(text) >= _FEWEST_READ]
        if not texts or message.role == Role.TOOL:  # a tool's output asserts nothing (F1)
            return
        context = f"{'user' if is_user else 'assistant'}: {' '.join(texts)[:_CONTEXT]}"
        context += f" | before: {before[:_BEFORE]}" if before else ""
        lines = len(self.new) + len(self.about)
        for text, worth in zip(texts, self.model.worth([(text, context) for text in texts]), strict=True):
            if worth[NONE] < (REMEMBERED_NONE if self.request.is_to_be_remembered else IDLE):
                self._read_sentence(self._weighed(text, worth, person, context, number, message.occurred_on))
        if self.request.is_to_be_remembered and lines == len(self.new) + len(self.about):
            self._keep_whole(message.text, person, context, number, message.occurred_on)

    def _weighed(
        self, text: str, worth: NDArray[np.float32], person: str, context: str, number: int, day: str
    ) -> _Sentence:
        said = f"{person}: {text}"
        return _Sentence(
            text=text,
            said=said,
            person=person,
            context=context,
            message=number,
            day=day,
            worth=worth,
            vector=self.model.centred_vector(text, is_query=False),
        )

    def _read_sentence(self, sentence: _Sentence) -> None:
        """Say what a sentence does to the beliefs near it, and state it where it says something of its own."""
        if is_question(sentence.text):  # it asserts nothing
            return
        same = self.by_words.get(words_key(spoken(sentence.person, sentence.text)))
        if same:
            if same.message != sentence.message:
                self._say(sentence, same, BeliefWord.SUPPORTS)
            return
        near = self._nearest(sentence)
        relations = self.model.relation([(belief.said, sentence.said) for belief in near])
        is_known, ended = False, ""
        for belief, word in _choose_words(sentence, near, relations):
            is_outdated = word != BeliefWord.SUPPORTS and belief.is_to_come(sentence.day)
            is_known |= word == BeliefWord.SUPPORTS or is_outdated
            # A message goes on about its matter, and seldom denies it.
            if is_outdated or belief.message == sentence.message:
                continue
            self._say(sentence, belief, word)
            if word == BeliefWord.ENDED and not ended:  # the one that it denies most comes first
                ended = belief.label
        if is_known or not self._is_statement(sentence, replaces=ended):
            return
        same = self._find_same(sentence, near, relations)
        if same:
            if same.message != sentence.message:
                self._say(sentence, same, BeliefWord.SUPPORTS)
            return
        self._state(sentence, replaces=ended)

    def _nearest(self, sentence: _Sentence) -> list[_Belief]:
        """Return the beliefs that a sentence may speak of: the nearest ones that are near at all."""
        if not self.beliefs:
            return []
        cosines = np.stack([belief.vector for belief in self.beliefs]) @ sentence.vector
        nearest = np.argsort(-cosines, kind="stable")[:_NEAREST]
        return [self.beliefs[place] for place in nearest if cosines[place] >= NEAR]

    def _say(self, sentence: _Sentence, belief: _Belief, word: BeliefWord) -> None:
        """Put down one line for a message and a belief: the stronger word, the later one of opposite ones."""
        key = sentence.message, belief.label
        earlier = self.about.get(key)
        is_opposite = earlier is not None and (earlier == BeliefWord.SUPPORTS) != (word == BeliefWord.SUPPORTS)
        is_turned = is_opposite and BeliefWord.PARTIAL not in (earlier, word)
        if earlier is None or is_turned or _RANK[word] > _RANK[earlier]:
            self.about[key] = word
            if word == BeliefWord.ENDED:
                belief.until = _ENDED_NOW
            elif word == BeliefWord.SUPPORTS:
                belief.until = ""

    def _is_statement(self, sentence: _Sentence, *, replaces: str) -> bool:
        if count_words(sentence.text) < _FEWEST_WORDS:
            return False
        if len(quote(sentence.person, sentence.text).split()) > LONGEST_STATEMENT:
            return False
        least = NEW_STATE if replaces else LASTING_STATEMENT
        return self.request.is_to_be_remembered or sentence.lasting >= least or _is_event(sentence)

    def _find_same(
        self, sentence: _Sentence, near: Sequence[_Belief], relations: NDArray[np.float32]
    ) -> _Belief | None:
        """Return the belief that says the same by the lower bar of the pair question, the surest one; None if none."""
        found: list[tuple[float, _Belief]] = []
        for belief, relation in zip(near, relations, strict=True):
            forth = float(relation[SUPPORTS])
            is_near = float(belief.vector @ sentence.vector) >= SAME_COSINE
            if (
                belief.is_over(sentence.day)
                or relation[CONTRADICTS] >= DENIED
                or (forth < SAME_BOTH_WAYS and not is_near)
            ):
                continue
            back = float(self.model.relation([(sentence.said, belief.said)])[0, SUPPORTS])
            if min(forth, back) >= SAME_BOTH_WAYS or (is_near and max(forth, back) >= SAME_ONE_WAY):
                found.append((forth + back, belief))
        return max(found, key=lambda pair: pair[0])[1] if found else None

    def _state(self, sentence: _Sentence, *, replaces: str = "") -> None:
        label = f"n{len(self.new) + 1}"
        self.new.append(
            NewStatement(
                m=sentence.message,
                statement=quote(sentence.person, sentence.text),
                subject=sentence.person if is_first_person(sentence.text) else "",
                category=self.model.categories([sentence.text], messages=[sentence.context])[0],
                entities=list_names(sentence.text),
                kind="event" if _is_event(sentence) else "lasting",
                replaces=replaces,
            )
        )
        if self.new[-1].kind == "lasting":  # an event founds no belief that a later sentence could bear on
            self._add_belief(label=label, person=sentence.person, sentence=sentence.text, message=sentence.message)

    def _keep_whole(self, text: str, person: str, context: str, number: int, day: str) -> None:
        """State a message that somebody asked to have remembered and of which no sentence was kept."""
        whole = " ".join(text.split())
        worth = self.model.worth([(whole, context)])[0]
        if worth[NONE] < REMEMBERED_WHOLE_NONE and whole:
            self._read_sentence(self._weighed(whole, worth, person, context, number, day))

    def _add_belief(
        self, *, label: str, person: str, sentence: str, since: str = "", until: str = "", message: int = 0
    ) -> None:
        said = spoken(person, sentence)
        belief = _Belief(
            label=label,
            said=said,
            vector=self.model.centred_vector(sentence, is_query=False),
            since=since,
            until=until,
            message=message,
        )
        self.beliefs.append(belief)
        self.by_words[words_key(said)] = belief


_ENDED_NOW = "0001-01-01"  # before any message's day


def _choose_words(
    sentence: _Sentence, near: Sequence[_Belief], relations: NDArray[np.float32]
) -> list[tuple[_Belief, BeliefWord]]:
    """Return what a sentence says of beliefs; it bears out one at most, and denies one and what is like that one.

    Of all that is surer than the same thresholds half is right on an author left out; of what is so chosen, two of
    three that are borne out and four of five that are denied.
    """
    said = [
        (belief, word, relation)
        for belief, relation in zip(near, relations, strict=True)
        if (word := _word_for(relation, sentence=sentence, belief=belief)) is not None
    ]
    chosen: list[tuple[_Belief, BeliefWord]] = [
        (belief, word) for belief, word, _ in said if word is BeliefWord.PARTIAL
    ]
    borne_out = [(float(relation[SUPPORTS]), belief) for belief, word, relation in said if word is BeliefWord.SUPPORTS]
    if borne_out:
        chosen.append((max(borne_out, key=lambda pair: pair[0])[1], BeliefWord.SUPPORTS))
    denied = [(float(relation[CONTRADICTS]), belief) for belief, word, relation in said if word is BeliefWord.ENDED]
    if denied:
        surest = max(denied, key=lambda pair: pair[0])[1]
        alike = [one for _, one in denied if one is not surest and float(one.vector @ surest.vector) >= ALIKE]
        chosen += [(belief, BeliefWord.ENDED) for belief in (surest, *alike)]
    return chosen


def _word_for(relation: NDArray[np.float32], *, sentence: _Sentence, belief: _Belief) -> BeliefWord | None:
    """Return what a sentence says of a belief; None where it says nothing, or the reader is not sure."""
    if belief.is_over(sentence.day):  # what is over cannot be denied, only hold again
        return BeliefWord.SUPPORTS if relation[SUPPORTS] >= BORNE_OUT_AGAIN else None
    if relation[SUPPORTS] >= BORNE_OUT:
        return BeliefWord.SUPPORTS
    if relation[CONTRADICTS] >= DENIED:
        return BeliefWord.ENDED if sentence.lasting >= ASSERTED else None
    return BeliefWord.PARTIAL if relation[PARTIAL] >= HOLDS_IN_PART else None


def _is_event(sentence: _Sentence) -> bool:
    return int(sentence.worth.argmax()) == EVENT and float(sentence.worth[EVENT]) >= EVENT_STATEMENT
