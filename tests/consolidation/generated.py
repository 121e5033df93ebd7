"""Histories drawn by a seed: things are said of a few matters over months, and curators act in between."""

import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from memory.consolidation.curator_actions import CuratorAction, curate_belief
from memory.domain.evidence import Verdict
from memory.domain.identity import Actor, ActorKind
from memory.domain.lifecycle import IllegalTransitionError
from memory.models import Belief
from tests.consolidation.world import World
from tests.model_server_acts import Asked, judged

LENA = Actor(kind=ActorKind.PERSON, name="lena")
COLOURS = ("red", "blue")
GIVEN = ("red", "blue", "red and blue")
MATTERS = ("boat", "gate")
STATUS_ACTS = (CuratorAction.ARCHIVE, CuratorAction.CHALLENGE, CuratorAction.RESTORE, CuratorAction.FORGET)

Said = dict[str, str]


class History:
    """A workspace in which every text gives a matter a colour, or both, and every statement claims one."""

    def __init__(self, world: World, *, seed: int, acts: tuple[CuratorAction, ...] = STATUS_ACTS) -> None:
        self.world, self.drawn, self.acts, self.count = world, random.Random(seed), acts, 0
        world.server.script = self.answer

    def live(self, *, cycles: int, after_cycle: Callable[[], object] = lambda: None) -> None:
        """Let something be said before each cycle, and something be done to a belief after some."""
        for _ in range(cycles):
            for matter in self.drawn.sample(MATTERS, k=self.drawn.randint(0, 2)):
                for colour in self.drawn.sample(GIVEN, k=self.drawn.randint(1, 2)):
                    self._say(matter, colour)
            self.world.cycle(after=timedelta(days=self.drawn.choice((1, 8, 30, 95))))
            after_cycle()
            if self.drawn.random() < 0.5:
                self._act()

    def _say(self, matter: str, colour: str) -> None:
        """Say the same in several sessions: a cluster of its own, which lies near every statement of its matter."""
        for _ in range(self.drawn.randint(2, 8)):
            self.count += 1
            text = f"Note {self.count}: the {matter} is {colour}."
            self.world.say(text, about=matter, origin=f"session:{self.drawn.randint(1, 9)}")
            self.world.directions.place(text, {matter: 0.75, f"{matter} {colour}": 0.6})

    def _act(self) -> None:
        beliefs = list(Belief.objects.order_by("created_at", "statement"))
        if not beliefs:
            return
        chosen, act = self.drawn.choice(beliefs), self.drawn.choice(self.acts)
        try:
            curate_belief(belief_id=chosen.pk, act=act, reason="by hand", actor=LENA, now=self.world.now)
        except IllegalTransitionError:
            return

    def answer(self, asked: Asked) -> dict[str, Any]:
        """Answer by colours: what has a statement's colour supports it, what has both does so in part."""
        match asked.purpose:
            case "synthesize":
                return self._state(asked.episodes[0]["text"])
            case "classify":
                return judged(asked, lambda belief, each: _verdict(belief["belief"], each["text"]))
            case "revise":
                return self._state(asked.items[0]["belief"], is_turned=True)
            case "split":
                matter = _matter_of(asked.items[0]["belief"])
                return {"parts": [self._claim(matter, colour, f"{colour} days") for colour in COLOURS]}
        one, other = (_colours_of(item["belief"]) for item in asked.items[:2])
        return {"same": one == other, **self._state(asked.items[0]["belief"])}

    def _state(self, text: str, *, is_turned: bool = False) -> dict[str, Any]:
        colours = _colours_of(text)
        kept = sorted(set(COLOURS) - colours) if is_turned and len(colours) == 1 else sorted(colours)
        return self._claim(_matter_of(text), kept[0])

    def _claim(self, matter: str, colour: str, context: str = "general") -> dict[str, Any]:
        statement = (
            f"The harbour's {matter} is painted {colour}."
            if context == "general"
            else f"On {context} the {matter} is {colour}."
        )
        self.world.directions.place(statement, {matter: 0.99})
        return {
            "statement": statement, "subject": matter, "predicate": "is", "context": context, "timeframe": "current",
        }  # fmt: skip


def _verdict(statement: str, text: str) -> tuple[str, str]:
    claimed, told = _colours_of(statement), _colours_of(text)
    verdict = Verdict.SUPPORTS if told == claimed else Verdict.PARTIAL if told & claimed else Verdict.CONTRADICTS
    if "days" in statement:
        verdict = Verdict.SUPPORTS if told & claimed else Verdict.IRRELEVANT
    return verdict, "by its colour"


def _matter_of(text: str) -> str:
    return next(matter for matter in MATTERS if matter in text)


def _colours_of(text: str) -> set[str]:
    return {colour for colour in COLOURS if colour in text}
