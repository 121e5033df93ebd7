"""Scripts for the model server that answer about any conversation, each in a way of its own.

`offline` answers as the offline model does: it states little, and where it is unsure everything is IRRELEVANT. `topics`
finds something to state in every cluster, so that there are many beliefs to be asked about. `agreeing` repeats the
first episode and supports everything.
"""

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from memory.llm.offline import OfflineModel
from memory.llm.replies import Reply, Verdicts
from memory.llm.requests import ClassificationRequest, EpisodeText, Request, StatedBelief, SynthesisRequest
from tests.model_server_acts import Asked, Script, judged, sensible

_WORD = re.compile(r"[a-z]{4,}")
# Words that say nothing of a topic, as people talk.
_COMMON_WORDS = (
    "about again also always amazing awesome back been being cool could definitely feel feeling from glad going good "
    "great happy have hear here into just keep know like look looking looks lots love made make mean means more much "
    "need nice over photo really shares should some sounds still such super sure thank thanks that their them then "
    "there they thing things think this time totally want well were what when which will with would yeah your"
)
_COMMON = frozenset(_COMMON_WORDS.split())


def by_reader(asked: Asked) -> dict[str, Any]:
    """Answer as the offline model does; messages are repeated."""
    if asked.purpose == "read":
        return sensible(asked)
    if asked.purpose == "classify":
        return judged(asked, _judge_by_reader)
    reply: dict[str, Any] = _ask(SynthesisRequest(episodes=tuple(map(_episode, asked.episodes)))).model_dump(
        mode="json"
    )
    return reply


def _ask(request: Request) -> Reply:
    return OfflineModel().complete(request=request, timeout=1.0).reply


def _episode(given: dict[str, Any]) -> EpisodeText:
    return EpisodeText(id=given["text"], text=given["text"], speaker=given.get("speaker", ""))


def by_topic(asked: Asked) -> dict[str, Any]:
    """State the word that most episodes share; an episode supports a statement whose word it has."""
    if asked.purpose == "read":
        return sensible(asked)
    if asked.purpose == "classify":
        return judged(asked, _judge_by_topic)
    words = Counter(word for episode in asked.episodes for word in _topics(episode["text"]))
    word = min(words.items(), key=lambda item: (-item[1], item[0]))[0] if words else "nothing"
    speaker = _commonest(episode.get("speaker", "user") for episode in asked.episodes)
    return {
        "statement": f"{speaker} often talks about {word}.",
        "subject": speaker,
        "predicate": "talks about",
        "context": "general",
        "timeframe": "current",
    }


SCRIPTS: dict[str, Script] = {"offline": by_reader, "topics": by_topic, "agreeing": sensible}


def _judge_by_reader(belief: dict[str, str], episode: dict[str, str]) -> tuple[str, str]:
    stated = StatedBelief(id="b", statement=belief["belief"], subject=belief["subject"], context="", language="")
    reply = _ask(ClassificationRequest(beliefs=(stated,), episodes=(_episode(episode),)))
    assert isinstance(reply, Verdicts)
    [found] = reply.verdicts
    return found.verdict, found.reason


def _judge_by_topic(belief: dict[str, str], episode: dict[str, str]) -> tuple[str, str]:
    has_word = belief["belief"].removesuffix(".").split()[-1] in _topics(episode["text"])
    return "SUPPORTS" if has_word else "IRRELEVANT", ""


def _topics(text: str) -> set[str]:
    return {word for word in _WORD.findall(text.lower()) if word not in _COMMON}


def _commonest(names: Iterable[str]) -> str:
    return Counter(names).most_common(1)[0][0]
