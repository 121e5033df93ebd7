"""What is read offline of plain messages; that quotes come back as they were said, and any text is cut in no time."""

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.llm import offline_reading
from memory.llm.offline_reading import read_offline
from memory.llm.reader import NONE, Reader, reader
from memory.llm.replies import BeliefWord, NewStatement, Reading, validate_reply, write_reply
from memory.llm.requests import Message, ReadingRequest, ShownBelief
from memory.text.quotes import is_first_person, quote, quote_words, stands_alone, unquote
from memory.text.sentences import MOST_SENTENCES, split_sentences
from memory.text.words import count_words, is_question, list_names

DAY = "2026-05-04"
PIANO, RATE = "Jonna: “My piano lesson is on Wednesdays.”", "Jonna: “I charge 65 an hour.”"


def message(text: str, **given: Any) -> Message:
    """Make a message of Jonna's."""
    fields: dict[str, Any] = {"id": "ep_1", "speaker": "Jonna", "occurred_on": DAY, "session": "s1"}
    return Message(text=text, **fields | given)


def read(*messages: str | Message, beliefs: tuple[str | ShownBelief, ...] = (), **given: Any) -> Reading:
    """Read a few messages beside a few beliefs."""
    shown = (
        one if isinstance(one, ShownBelief) else ShownBelief(id=f"bl_{n}", statement=one)
        for n, one in enumerate(beliefs)
    )
    made = (one if isinstance(one, Message) else message(one) for one in messages)
    request = ReadingRequest(person="Jonna", today=DAY, episodes=tuple(made), beliefs=tuple(shown), **given)
    reading = read_offline(request)
    assert validate_reply(request, write_reply(request=request, reply=reading)) == reading
    return reading


def stated(reading: Reading) -> list[NewStatement]:
    """Return the new statements of a reading, none of which was refused."""
    assert None not in reading.new
    return [line for line in reading.new if line is not None]


def said(reading: Reading) -> list[tuple[int, str, BeliefWord]]:
    """Return what a reading says of beliefs: message, belief, word."""
    assert None not in reading.about
    return [(line.m, line.b, line.verdict) for line in reading.about if line is not None]


def test_what_lasts_is_quoted_and_a_request_is_not() -> None:
    [line] = stated(read("I work as a nurse at the children's ward. Could you check this mail for typos?"))
    assert line.statement == "Jonna: “I work as a nurse at the childrenʼs ward.”"
    assert (line.m, line.subject, line.kind, line.replaces) == (1, "Jonna", "lasting", "")


def test_a_sentence_that_names_its_subject_stands_as_it_was_said() -> None:
    [line] = stated(read("Wout is coeliac."))
    assert (line.statement, line.subject, line.entities) == ("Wout is coeliac.", "", ["Wout"])


@pytest.mark.parametrize("text", ["Ich wohne seit Mai in Kassel.", "Je travaille à la mairie depuis dix ans."])
def test_other_languages_are_quoted_as_they_are(text: str) -> None:
    [line] = stated(read(text))
    assert line.statement == f"Jonna: “{text}”"


def test_a_change_ends_the_belief_that_it_replaces() -> None:
    reading = read("My piano lesson is on Mondays now, no longer on Wednesdays.", beliefs=(RATE, PIANO))
    assert said(reading) == [(1, "2", BeliefWord.ENDED)]
    assert [line.replaces for line in stated(reading)] == ["2"]


def test_a_later_use_bears_a_belief_out_and_states_nothing_new() -> None:
    reading = read("can't do wednesday, that's my piano lesson as always", beliefs=(PIANO, RATE))
    assert said(reading) == [(1, "1", BeliefWord.SUPPORTS)]
    assert not reading.new


def test_a_later_message_ends_what_an_earlier_one_founded() -> None:
    reading = read("I charge 65 an hour.", "My rate is 80 an hour from June.")
    assert said(reading) == [(2, "n1", BeliefWord.ENDED)]
    assert [line.replaces for line in stated(reading)] == ["", "n1"]


def test_a_sentence_said_twice_is_one_statement_and_support() -> None:
    reading = read("I never eat fish.", "what a day", "i never eat FISH")
    assert [line.m for line in stated(reading)] == [1]
    assert said(reading) == [(3, "n1", BeliefWord.SUPPORTS)]


def test_a_sentence_said_twice_in_one_message_is_one_statement() -> None:
    reading = read("I never eat fish. Could you plan dinner? I never eat fish.")
    assert len(stated(reading)) == 1
    assert not reading.about


def test_a_belief_that_is_over_is_not_denied_again() -> None:
    over = ShownBelief(id="bl_1", statement=PIANO, until="2026-02-28")
    assert not said(read("My piano lesson is on Mondays now, no longer on Wednesdays.", beliefs=(over,)))


def test_a_belief_that_will_be_over_is_still_denied() -> None:
    open_yet = ShownBelief(id="bl_1", statement=PIANO, until="2026-12-31")
    reading = read("My piano lesson is on Mondays now, no longer on Wednesdays.", beliefs=(open_yet,))
    assert said(reading) == [(1, "1", BeliefWord.ENDED)]


def test_what_arrives_late_denies_nothing_that_began_since() -> None:
    """F2: what was so before a belief began says nothing of it."""
    later = ShownBelief(id="bl_1", statement=PIANO, since="2026-06-01")
    reading = read("My piano lesson is on Mondays now, no longer on Wednesdays.", beliefs=(later,))
    assert reading == Reading()


def test_a_question_in_a_beliefs_words_is_no_support() -> None:
    assert read("My piano lesson is on Wednesdays?", beliefs=(PIANO,)) == Reading()


def test_what_happened_once_is_an_event() -> None:
    [line] = stated(read("Yesterday I flew to Lisbon for a wedding."))
    assert (line.kind, line.entities) == ("event", ["Lisbon"])


@pytest.mark.parametrize(
    "text",
    [
        "Could you move the meeting to Friday?",
        "thanks, perfect!",
        "> I never eat fish.",
        "```\nI never eat fish.\n```",
        "If we moved to Rust we would need a year.",
        "",
        "…",
    ],
)
def test_what_nobody_asserts_says_nothing(text: str) -> None:
    reading = read(text, beliefs=(PIANO, RATE))
    assert not reading.new
    assert not reading.about


def test_context_is_not_read() -> None:
    reading = read(message("I never eat fish.", is_read=False), "ok, thanks")
    assert reading == Reading()


def test_messages_are_numbered_among_those_read() -> None:
    offer = message("Shall I plan meals?", role="assistant", speaker="", is_read=False)
    assert [line.m for line in stated(read("hi there", offer, "I never eat fish."))] == [2]


def test_an_assistants_advice_and_a_tools_output_found_nothing() -> None:
    advice = message("You should drink two litres of water every day.", role="assistant", speaker="")
    output = message("I never eat fish.", role="tool", speaker="")
    assert not read(advice, output).new


def test_an_assistants_words_are_context_of_their_own_conversation_only(monkeypatch: pytest.MonkeyPatch) -> None:
    contexts: list[str] = []
    ask = Reader.worth

    def keep(model: Reader, pairs: Any) -> Any:
        contexts.extend(context for _, context in pairs)
        return ask(model, pairs)

    monkeypatch.setattr(Reader, "worth", keep)
    offer = message("Tea or coffee?", role="assistant", speaker="", is_read=False)
    read(offer, "Always green tea.", "And no sugar ever.", offer, message("Always green tea.", session="s2"))
    assert contexts == [
        "user: Always green tea. | before: Tea or coffee?",
        "user: And no sugar ever.",
        "user: Always green tea.",
    ]


def test_what_is_to_be_remembered_is_kept_where_it_would_not_be() -> None:
    """Somebody asked for it."""
    text = "the wifi code of the cabin is 4417"
    assert [line.statement for line in stated(read(text, is_to_be_remembered=True))] == [f"Jonna: “{text}”"]


@pytest.mark.parametrize("text", ["Thanks!", "Do I still charge 65?", "word " * 40])
def test_thanks_questions_and_long_texts_are_not_remembered(text: str) -> None:
    assert not read(text, is_to_be_remembered=True).new


def test_what_is_remembered_and_believed_is_support() -> None:
    reading = read("I charge 65 an hour.", beliefs=(PIANO, RATE), is_to_be_remembered=True)
    assert not reading.new
    assert said(reading) == [(1, "2", BeliefWord.SUPPORTS)]


def test_a_statement_is_no_longer_than_it_may_be() -> None:
    """A quote's name counts as a word of it."""
    longest = "I work " + "night and day " * 9 + "here"
    assert count_words(longest) == 30
    assert not read(longest, is_to_be_remembered=True).new


def test_a_message_that_breaks_our_code_is_not_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asked reads the others without it, and keeps why it was not read (E6)."""
    split = split_sentences

    def break_over_one(text: str) -> list[str]:
        if "boom" in text:
            raise ValueError("boom")
        return split(text)

    monkeypatch.setattr(offline_reading, "split_sentences", break_over_one)
    with pytest.raises(ValueError, match="boom"):
        read("boom", "I never eat fish.")


def test_a_batch_is_read_the_same_as_its_messages_one_by_one() -> None:
    texts = ("I never eat fish.", "We keep two goats behind the house.", "Yesterday I flew to Lisbon for a wedding.")
    together = [line.statement for line in stated(read(*texts))]
    assert together == [line.statement for text in texts for line in stated(read(text))]


@pytest.mark.slow
def test_a_hundred_sentences_and_pairs_are_read_in_seconds() -> None:
    """The measured rate is some 100 a second of processor time; here a fifth will do, whoever else is busy."""
    pairs = [(f"Jonna: room {n} is painted green", f"Jonna: we painted room {n} blue") for n in range(100)]
    fresh = Reader()
    fresh.load()
    began = time.process_time()
    fresh.relation(pairs)
    assert time.process_time() - began < 5


def test_worth_knows_small_talk() -> None:
    assert reader().worth([("good morning!", "user: good morning!")])[0, NONE] > 0.7


# Quotes


def test_a_first_person_sentence_is_quoted_behind_the_name() -> None:
    assert quote("Mara", "Fridays are for my own comic.") == "Mara: “Fridays are for my own comic.”"
    assert quote("", "I'm vegan") == "The user: “Iʼm vegan”"


def test_inner_marks_are_single_and_apostrophes_letters() -> None:
    statement = quote("Mara", 'She calls it "home", I don\'t, nor “the nest”.')
    assert statement == "Mara: “She calls it ‘home’, I donʼt, nor ‘the nest’.”"
    assert unquote(statement) == ("Mara", "She calls it “home”, I don't, nor “the nest”.")
    assert unquote(quote_words("Ike O'Dell", "„Nie“ sagt er")) == ("Ike O'Dell", "“Nie” sagt er")


@pytest.mark.parametrize("text", ["Wout is coeliac.", "The staging database is on Hetzner.", "Anna Berg leads Atlas."])
def test_a_sentence_with_a_name_and_no_person_stands(text: str) -> None:
    assert stands_alone(text)
    assert quote("Mara", text) == text


@pytest.mark.parametrize(
    "text",
    [
        "I live in Ghent.",
        "You owe Tom a beer.",
        "He lives in Ghent.",
        "Mein Chef heißt Timo.",
        "Der Hund frisst alles.",
        "Mum is coeliac.",
        "deploys go out on tuesdays",
        "Coeliac, Wout.",
        "Je suis à Lyon.",
        "Zij woont in Gent.",
        "Vivo con mi hermana en Sevilla.",
        "La mia capa è Giulia.",
        "¿Y Ana?",
        "",
    ],
)
def test_in_doubt_a_sentence_is_quoted(text: str) -> None:
    assert not stands_alone(text)


@pytest.mark.parametrize("text", ["Wout is coeliac.", "Mara: tea", "“tea”", "Mara: “tea” and “cake”", ": “tea”", ""])
def test_what_is_no_quote_is_not_unquoted(text: str) -> None:
    assert unquote(text) is None


@given(person=st.text(max_size=30), sentence=st.text(max_size=200))
@settings(max_examples=300, deadline=None)
def test_a_quote_comes_back_and_has_one_pair_of_marks(person: str, sentence: str) -> None:
    statement = quote_words(person, sentence)
    found = unquote(statement)
    assert found is not None
    assert quote_words(*found) == statement
    assert (statement.count("“"), statement.count("”")) == (1, 1)
    assert not set(statement) & set("\"'„")
    letters = [letter for letter in found[1] if letter.isalnum() and letter != "ʼ"]
    assert letters == [letter for letter in sentence if letter.isalnum() and letter != "ʼ"]


@given(st.text(max_size=200))
@settings(max_examples=200, deadline=None)
def test_a_sentence_that_stands_is_returned_as_it_is(sentence: str) -> None:
    statement = quote("Mara", sentence)
    assert unquote(statement) is not None or statement.split() == sentence.rstrip(" ,;:").split()


def test_names_are_found_and_nouns_are_not() -> None:
    assert list_names("I work with Anna Berg and Tom at Hetzner") == ["Anna Berg", "Tom", "Hetzner"]
    assert list_names("Der Hund von Timo frisst das Brot") == ["Timo"]
    assert list_names("On Friday I rest") == []


def test_first_person_words_are_known_in_six_languages() -> None:
    texts = ("it's mine", "das ist meins", "dat is van mij", "c'est à moi", "es de nosotros", "questo è mio")
    assert all(map(is_first_person, texts))
    assert not any(map(is_first_person, ("Wout is coeliac", "Timo fährt Rad", "")))


# Sentences


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        (
            "Dr. Smith pays 3.5 % since 2026-03-01. See https://a.example/b.c?d=1. Ok",
            ["Dr. Smith pays 3.5 % since 2026-03-01.", "See https://a.example/b.c?d=1.", "Ok"],
        ),
        (
            "Das ist z. B. so. Am 3. März geht es los usw. Und dann?",
            ["Das ist z. B. so.", "Am 3. März geht es los usw.", "Und dann?"],
        ),
        ("- milk\n* eggs\n1. large; brown\n2) two", ["milk", "eggs", "large", "brown", "two"]),
        ("we moved – finally - to Ghent", ["we moved", "finally", "to Ghent"]),
        ("open 9 - 17, mostly", ["open 9 - 17, mostly"]),
        ("我喜欢茶。我不喝咖啡！好", ["我喜欢茶。", "我不喝咖啡！", "好"]),
        ("أحب الشاي. هل تحبه؟ نعم", ["أحب الشاي.", "هل تحبه؟", "نعم"]),
        ("before\n> quoted by him\n```\ncode here\n```\nafter", ["before", "after"]),
        ("so it goes... and on. Next… Last", ["so it goes... and on.", "Next…", "Last"]),
        ('He said "no." She left.', ['He said "no."', "She left."]),
        ("tea  no\tsugar. milk", ["tea no sugar.", "milk"]),
        ("… --- !!!", []),
    ],
)
def test_a_message_is_cut_into_its_sentences(text: str, sentences: list[str]) -> None:
    assert split_sentences(text) == sentences


def test_a_message_has_no_more_sentences_than_are_read() -> None:
    assert len(split_sentences("One more. " * 1_000)) == MOST_SENTENCES


@given(st.text(max_size=300))
@settings(max_examples=200, deadline=None)
def test_every_sentence_stands_in_the_text(text: str) -> None:
    squeezed = "".join(text.split())
    assert all("".join(sentence.split()) in squeezed.replace("**", "") for sentence in split_sentences(text))


@given(st.text(alphabet=st.sampled_from("a1I. ,;:-–!?…\"'“”„’‘>*`\n\t。؟()[]#"), min_size=1, max_size=8))
@settings(max_examples=60, deadline=None)
def test_any_32_kb_are_cut_and_quoted_in_no_time(piece: str) -> None:
    """A pattern that tries each place for each would take minutes."""
    text = (piece * 32_768)[:32_768]
    began = time.perf_counter()
    split_sentences(text)
    unquote(quote("Mara", text))
    assert time.perf_counter() - began < 2


@pytest.mark.parametrize("piece", ["the ", "1 ", "x", "A. ", "“", '"', "```", "> \n", "1. ", "- "])
def test_32_kb_of_one_thing_are_cut_in_no_time(piece: str) -> None:
    text = (piece * 32_768)[:32_768]
    began = time.perf_counter()
    split_sentences(text)
    quote("Mara", text)
    assert time.perf_counter() - began < 1


def test_words_of_scripts_without_spaces_are_counted() -> None:
    assert count_words("I never eat fish") == 4
    assert count_words("我不喝咖啡") == 2
    assert count_words("") == 0


def test_question_marks_of_other_scripts_are_known() -> None:
    assert all(map(is_question, ("tea?", "お茶？", "شاي؟", "“tea?”")))
    assert not is_question("tea.")
