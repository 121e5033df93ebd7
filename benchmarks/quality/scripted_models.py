"""Scripts for the model server that answer about any conversation, each in a way of its own.

`rules` answers as the offline rules do: it states little, and where it is unsure everything is IRRELEVANT. `topics`
finds something to state in every cluster, so that there are many beliefs to be asked about. `agreeing` repeats the
first episode and supports everything.
"""

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from memory.language.analysis import SpokenText
from memory.language.verdicts import judge_by_rules
from memory.llm.offline import OfflineModel
from memory.llm.requests import EpisodeText, SynthesisRequest
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


def by_rules(asked: Asked) -> dict[str, Any]:
    """Answer as the offline model does; messages are repeated."""
    if asked.purpose == "read":
        return sensible(asked)
    if asked.purpose == "classify":
        return judged(asked, _judge_by_rules)
    episodes = (EpisodeText(id=e["text"], text=e["text"], speaker=e.get("speaker", "")) for e in asked.episodes)
    completion = OfflineModel().complete(request=SynthesisRequest(episodes=tuple(episodes)), timeout=1.0)
    reply: dict[str, Any] = completion.reply.model_dump(mode="json")
    return reply


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


SCRIPTS: dict[str, Script] = {"rules": by_rules, "topics": by_topic, "agreeing": sensible}


def _judge_by_rules(belief: dict[str, str], episode: dict[str, str]) -> tuple[str, str]:
    judgement = judge_by_rules(
        episode=SpokenText(text=episode["text"], speaker=episode.get("speaker", "")),
        belief=SpokenText(text=belief["belief"], speaker=belief["subject"]),
    )
    return judgement.verdict, judgement.reason


def _judge_by_topic(belief: dict[str, str], episode: dict[str, str]) -> tuple[str, str]:
    has_word = belief["belief"].removesuffix(".").split()[-1] in _topics(episode["text"])
    return "SUPPORTS" if has_word else "IRRELEVANT", ""


def _topics(text: str) -> set[str]:
    return {word for word in _WORD.findall(text.lower()) if word not in _COMMON}


def _commonest(names: Iterable[str]) -> str:
    return Counter(names).most_common(1)[0][0]
