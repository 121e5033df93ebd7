"""What the offline model answers to each request, and that it says who it is."""

import pytest

from memory.domain.evidence import Verdict
from memory.llm.offline import OFFLINE_MODEL, OfflineModel
from memory.llm.reader import reader
from memory.llm.replies import Contradiction, Division, Reading, Summary, Synthesis, Union, Verdicts
from memory.llm.requests import (
    ClassificationRequest,
    ContradictionRequest,
    EpisodeText,
    MergeRequest,
    Message,
    MetaRequest,
    Purpose,
    ReadingRequest,
    Request,
    RevisionRequest,
    SplitRequest,
    StatedBelief,
    SummaryRequest,
    SynthesisRequest,
    TurnText,
)

MODEL = OfflineModel()
PIANO = "Jonna: “My piano lesson is on Wednesdays.”"


def answer(request: Request) -> object:
    """Return the offline model's reply."""
    return MODEL.complete(request=request, timeout=5).reply


def episodes(*texts: str, speaker: str = "Jonna") -> tuple[EpisodeText, ...]:
    """Make episodes that Jonna spoke, or documents that nobody did."""
    return tuple(EpisodeText(id=f"ep_{n}", text=text, speaker=speaker) for n, text in enumerate(texts))


def believed(statement: str, place: int = 0) -> StatedBelief:
    """State a belief about Jonna."""
    return StatedBelief(statement=statement, subject="Jonna", context="general", id=f"bl_{place}")


def synthesis_of(*texts: str, speaker: str = "Jonna", person: str = "") -> Synthesis:
    """Return the statement made of some episodes."""
    reply = answer(SynthesisRequest(episodes=episodes(*texts, speaker=speaker), person=person))
    assert isinstance(reply, Synthesis)
    return reply


def verdicts_on(*texts: str, statement: str = PIANO, speaker: str = "Jonna") -> list[Verdict]:
    """Return the verdicts of some episodes on one belief."""
    request = ClassificationRequest(beliefs=(believed(statement),), episodes=episodes(*texts, speaker=speaker))
    reply = answer(request)
    assert isinstance(reply, Verdicts)
    assert [line.id for line in reply.verdicts] == [episode.id for episode in request.episodes]
    return [line.verdict for line in reply.verdicts]


def summary_of(*turns: TurnText, person: str = "Jonna") -> str:
    """Return the summary of some turns."""
    reply = answer(SummaryRequest(turns=turns, person=person))
    assert isinstance(reply, Summary)
    return reply.summary


def turn(number: int, text: str, *, role: str = "user", is_beside: bool = False) -> TurnText:
    """Make a turn of a conversation whose user has no name of their own."""
    return TurnText(number=number, role=role, text=text, is_beside=is_beside)


@pytest.mark.parametrize("purpose", list(Purpose))
def test_the_model_is_labelled_offline_and_by_its_file(purpose: str) -> None:
    """What one training answered never passes for what another would."""
    assert MODEL.is_offline
    assert MODEL.model_for(purpose) == f"{OFFLINE_MODEL}@{reader().version}"
    assert MODEL.parameters_for(purpose) == {}


def test_messages_are_read() -> None:
    message = Message(id="ep_1", text="I never eat fish.", speaker="Jonna", occurred_on="2026-05-04")
    reply = answer(ReadingRequest(person="Jonna", today="2026-05-04", episodes=(message,)))
    assert isinstance(reply, Reading)
    assert [line and line.statement for line in reply.new] == ["Jonna: “I never eat fish.”"]


def test_a_cluster_of_what_somebody_said_is_quoted() -> None:
    """F6: nobody is put words into the mouth of."""
    texts = ("I always drink tea in the morning.", "I drink tea every morning.", "Tea is what I drink in the morning.")
    found = synthesis_of(*texts)
    assert found.subject == "Jonna"
    assert found.statement in [f"Jonna: “{text}”" for text in texts]
    assert (found.predicate, found.context) == ("says", "general")


def test_a_cluster_of_documents_gives_a_sentence_as_it_stands() -> None:
    texts = (
        "The billing database is backed up every night at two.",
        "What about the backup? The backup of the billing database runs at night.",
        "Nightly backup of the billing database takes an hour.",
    )
    assert synthesis_of(*texts, speaker="").statement in " ".join(texts)


def test_what_a_text_without_speaker_says_of_itself_is_the_persons() -> None:
    texts = ("I drink tea every morning.", "I always drink tea in the morning.")
    assert synthesis_of(*texts, speaker="", person="Jonna").statement.startswith("Jonna: “")
    assert synthesis_of(*texts, speaker="").statement.startswith("The user: “")


@pytest.mark.parametrize(
    "texts",
    [
        ("Thanks!", "Thank you!", "Many thanks!"),
        ("What time is it?", "Could you check the backup?"),
        (),
    ],
)
def test_a_cluster_that_holds_no_statement_gets_a_blank_one(texts: tuple[str, ...]) -> None:
    """B10: nothing is made up."""
    assert synthesis_of(*texts).statement == ""


def test_a_sentence_that_points_back_is_no_statement_of_documents() -> None:
    assert synthesis_of("It runs at night.", "They run at night.", speaker="").statement == ""


def test_a_statement_is_no_longer_than_it_may_be() -> None:
    assert synthesis_of("I drink tea " + "and tea " * 20 + "every morning.").statement == ""


def test_episodes_bear_out_deny_or_leave_alone() -> None:
    """B11, offline: unsure means IRRELEVANT."""
    verdicts = verdicts_on(
        "can't do wednesday, that's my piano lesson as always",
        "Piano has moved to Mondays for good.",
        "The deploy on Friday took an hour.",
    )
    assert verdicts == [Verdict.SUPPORTS, Verdict.CONTRADICTS, Verdict.IRRELEVANT]


def test_a_turned_preference_never_supports() -> None:
    """B11: "spaces over tabs" never reinforces "tabs over spaces"."""
    verdicts = verdicts_on("I prefer spaces over tabs now.", statement="Jonna prefers tabs over spaces.")
    assert verdicts == [Verdict.CONTRADICTS]


def test_the_same_words_support() -> None:
    assert verdicts_on("Hi. my piano lesson is on wednesdays! Bye") == [Verdict.SUPPORTS]


def test_one_sentence_of_a_long_text_is_enough() -> None:
    text = f"{'We walked along the river. ' * 60}My piano lesson is on Mondays now, no longer on Wednesdays."
    assert verdicts_on(text) == [Verdict.CONTRADICTS]


def test_only_what_is_denied_has_a_reason() -> None:
    reply = answer(
        ClassificationRequest(
            beliefs=(believed(PIANO, 0), believed("Jonna: “I never eat fish.”", 1)),
            episodes=episodes("Piano has moved to Mondays for good."),
        )
    )
    assert isinstance(reply, Verdicts)
    assert {line.belief: line.reason for line in reply.verdicts} == {"bl_0": "it says otherwise", "bl_1": ""}


@pytest.mark.parametrize("text", ["…", "```\ncode\n```", "👍"])
def test_texts_without_a_sentence_say_nothing(text: str) -> None:
    assert verdicts_on(text) == [Verdict.IRRELEVANT]


def test_a_revision_states_what_the_denying_episodes_say() -> None:
    reply = answer(
        RevisionRequest(
            belief=believed(PIANO),
            episodes=episodes("My piano lesson is on Wednesdays.", "My piano lesson is on Mondays now."),
            verdicts=("SUPPORTS", "CONTRADICTS"),
        )
    )
    assert isinstance(reply, Synthesis)
    assert reply.statement == "Jonna: “My piano lesson is on Mondays now.”"


def test_nothing_is_split_and_no_pattern_is_made_offline() -> None:
    split = answer(SplitRequest(belief=believed(PIANO), episodes=episodes("x"), verdicts=("PARTIAL",)))
    pattern = answer(MetaRequest(beliefs=(believed(PIANO),)))
    assert isinstance(split, Division)
    assert isinstance(pattern, Synthesis)
    assert (split.parts, pattern.statement) == ([], "")


@pytest.mark.parametrize(
    ("other", "similarity", "same"),
    [
        ("Jonna: “my piano lesson is on wednesdays”", 0.99, True),
        ("Jonna: “my piano lesson is on wednesdays”", 0.5, False),
        ("Jonna: “My piano lesson is on Mondays.”", 0.99, False),
    ],
)
def test_beliefs_merge_where_they_say_the_same(other: str, similarity: float, same: bool) -> None:
    reply = answer(MergeRequest(beliefs=(believed(PIANO), believed(other)), similarity=similarity))
    assert isinstance(reply, Union)
    assert reply.same is same


def test_what_cannot_hold_beside_a_fact_is_named() -> None:
    fact = believed("Jonna: “My rate is 80 an hour from June.”")
    beliefs = (believed(PIANO), believed("Jonna: “I charge 65 an hour.”"))
    reply = answer(ContradictionRequest(fact=fact, beliefs=beliefs))
    assert isinstance(reply, Contradiction)
    assert (reply.contradicts, reply.reason) == ([2], "it says otherwise")


def test_a_fact_beside_no_beliefs_contradicts_none() -> None:
    assert answer(ContradictionRequest(fact=believed(PIANO), beliefs=())) == Contradiction(contradicts=[])


def test_a_summary_quotes_who_said_it_in_order() -> None:
    summary = summary_of(
        turn(1, "I work as a nurse at the children's ward. Could you help?"),
        turn(2, "From June I am on night shifts."),
        turn(3, "I never eat fish.", is_beside=True),
    )
    assert summary == ("Jonna: “I work as a nurse at the childrenʼs ward.” Jonna: “From June I am on night shifts.”")


def test_a_summary_names_the_assistant() -> None:
    summary = summary_of(
        turn(1, "I work as a nurse at the children's ward."),
        turn(2, "Night shifts are hard on nurses.", role="assistant"),
        person="",
    )
    assert "The user: “I work" in summary
    assert "The assistant: “Night" in summary


def test_small_talk_has_no_summary() -> None:
    assert summary_of(turn(1, "hi!"), turn(2, "Hello, how are you today?", role="assistant"), turn(3, "bye")) == ""
