"""The reader of the scenes: what each of their texts says is laid down, so that no training changes an answer."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

from memory.domain.evidence import Verdict
from memory.language.subjects import Timeframe
from memory.llm import offline
from memory.llm.offline import OfflineModel
from memory.llm.reader import Reader
from memory.llm.replies import Contradiction, EpisodeVerdict, Reply, Synthesis, Verdicts
from memory.llm.requests import (
    ClassificationRequest,
    ContradictionRequest,
    ReadingRequest,
    Request,
    RevisionRequest,
    SynthesisRequest,
)
from memory.text.words import words_key
from tests.consolidation.telling import Said, read_as_told

_TABS, _SPACES = "{who} prefers tabs over spaces.", "{who} prefers spaces over tabs."
_DANA, _RAVI = "{who}'s manager is Dana.", "{who}'s manager is Ravi."
_LUND, _BRANDT = "{who}'s dentist is Dr. Lund.", "{who}'s dentist is Dr. Brandt."
_SAID = {
    "Mara prefers tabs over spaces.": Said(states=_TABS),
    "As ever, Mara prefers tabs over spaces.": Said(states=_TABS),
    "Mara prefers spaces over tabs.": Said(states=_SPACES, denies=_TABS),
    "My manager is Dana.": Said(states=_DANA),
    "Dana is my manager.": Said(states=_DANA),
    "From April my manager is Ravi, no longer Dana.": Said(states=_RAVI, ends=_DANA, since="2026-04-01"),
    "My manager is Ravi.": Said(states=_RAVI),
    "My dentist is Dr. Lund in Harbour Street.": Said(states=_LUND),
    "From April my dentist is Dr. Brandt, no longer Dr. Lund.": Said(states=_BRANDT, ends=_LUND, since="2026-04-01"),
    "The stove in the cottage burns beech wood only.": Said(states="The stove in the cottage burns beech wood only."),
    "The press stands in the cottage.": Said(states="The press stands in the cottage."),
    "No, I am allergic to rye.": Said(states="{who} is allergic to rye."),
    "We decided to paint the attic white.": Said(states="The attic is to be painted white."),
}
_OPPOSITES = (
    ("mara prefers tabs over spaces", "mara prefers spaces over tabs"),
    ("agnes binds her books in linen", "agnes does not bind her books in linen"),
)
_THE_SAME = ({"the printer is on the second floor", "on the second floor there is the office printer"},)
_SHARED_WORDS = 3  # from which one says what the other says


@contextmanager
def reading_as_laid_down() -> Iterator[None]:
    """Let this machine's model answer by what stands here, and by itself where nothing does."""
    by_itself = offline._answer

    def answer(request: Request) -> Reply:
        match request:
            case ReadingRequest():
                return read_as_told(request, sentences=_SAID)
            case SynthesisRequest():
                return _state(request.episodes[0].text, request.episodes[0].speaker)
            case RevisionRequest():
                against = zip(request.episodes, request.verdicts, strict=True)
                return _state(next(one.text for one, verdict in against if verdict == Verdict.CONTRADICTS))
            case ClassificationRequest():
                return _judge(request)
            case ContradictionRequest():
                beliefs = enumerate(request.beliefs, start=1)
                rivals = [place for place, one in beliefs if _are_opposite(one.statement, request.fact.statement)]
                return Contradiction(contradicts=rivals, reason="as laid down" if rivals else "")
        return by_itself(request)

    def says_the_same(self: Reader, one: str, other: str) -> bool:
        return {words_key(one), words_key(other)} in _THE_SAME or words_key(one) == words_key(other)

    with (
        mock.patch.object(offline, "_answer", answer),
        mock.patch.object(Reader, "says_the_same", says_the_same),
        mock.patch.object(
            OfflineModel, "model_for", return_value="offline-reader"
        ),  # its name tells the file's version
    ):
        yield


def _state(statement: str, speaker: str = "") -> Synthesis:
    subject = speaker or statement.split()[0]
    return Synthesis(statement=statement, subject=subject, predicate="says", timeframe=Timeframe.CURRENT)


def _judge(request: ClassificationRequest) -> Verdicts:
    return Verdicts(
        verdicts=[
            EpisodeVerdict(belief=belief.id, id=episode.id, verdict=_verdict(belief.statement, episode.text))
            for belief in request.beliefs
            for episode in request.episodes
        ]
    )


def _verdict(statement: str, text: str) -> Verdict:
    if _are_opposite(statement, text):
        return Verdict.CONTRADICTS
    shared = set(words_key(statement).split()) & set(words_key(text).split())
    return Verdict.SUPPORTS if len(shared) >= _SHARED_WORDS else Verdict.IRRELEVANT


def _are_opposite(one: str, other: str) -> bool:
    pair = [words_key(one), words_key(other)]
    return any(a in x and b in y for a, b in _OPPOSITES for x, y in (pair, reversed(pair)))
