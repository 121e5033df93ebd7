"""R11: by which rule two beliefs cannot both hold, and which of them only look as if they could not."""

import pytest

from memory.language.contradictions import Side, find_contradiction, read_side


def side(sentence: str, *, person: str = "Nora", language: str = "en") -> Side:
    """Return a belief of a person's as the rules see it."""
    seen = read_side(sentence, person=person, language=language)
    assert seen is not None
    return seen


def rule_between(one: str, other: str, *, person: str = "Nora", language: str = "en") -> str:
    """Return by which rule two cannot both hold; whichever comes first, it is the same."""
    left, right = (side(text, person=person, language=language) for text in (one, other))
    found = find_contradiction(one=left, other=right)
    assert find_contradiction(one=right, other=left) == found
    return found


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Nora lives in Trieste.", "Nora lives in Aarhus."),
        ("Nora's flat is in Trieste.", "Nora lives in Aarhus."),
        ("Bruno lives in Basel.", "Bruno lives in Lugano."),
        ("Nora's brother lives in Basel.", "Nora's brother lives in Lugano."),
        ("Nora works as a midwife.", "Nora is a carpenter."),
        ("Nora teaches maths at a grammar school.", "Nora works as a paramedic."),
        ("Nora works at a bank.", "Nora works in a bakery."),
        ("Nora is retired.", "Nora works full time at the harbour."),
        ("Nora is 29 years old.", "Nora is thirty-four."),
        ("Nora's son is seven.", "Nora's son is ten years old."),
        ("Nora's dog is called Pickle.", "Nora's dog is named Juno."),
        ("Nora's car is a Fiat.", "Nora's car is a Skoda."),
        ("Nora's doctor is Dr Falk.", "Nora's doctor is Dr Osei."),
        ("Nora has lived in Trieste since 2019.", "Nora lives in Aarhus."),
        ("Nora has a parrot called Pickle.", "Nora's parrot's name is Juno."),
        ("Nora is married.", "Nora is divorced."),
        ("Nora was born in 1979.", "Nora was born in 1984."),
        ("Nora is a night owl.", "Nora is an early riser."),
        ("Nora is very tidy.", "Nora is rather messy."),
        ("Nora's favourite colour is red.", "Nora's favourite colour is yellow."),
        ("Nora walks to work.", "Nora drives to the office."),
    ],
)
def test_of_what_there_is_one_two_are_too_many(one: str, other: str) -> None:
    assert rule_between(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Nora lives in Trieste.", "Bruno lives in Aarhus."),
        ("Nora lives in Trieste.", "Nora's brother lives in Aarhus."),
        ("Nora's sister lives in Trieste.", "Nora's daughter lives in Aarhus."),
        ("Nora lives in Trieste.", "Nora lives in Italy."),
        ("Nora lives in Trieste.", "Nora lives in a small flat."),
        ("Nora lives in Trieste.", "Nora used to live in Aarhus."),
        ("Nora lives in Trieste.", "Nora wants to move to Aarhus."),
        ("Nora works at a bank.", "Nora works as a lawyer."),
        ("Nora works as a lawyer.", "Nora is a keen gardener."),
        ("Nora's son is seven.", "Nora's daughter is ten."),
        ("Nora's son Emil is seven.", "Nora's son Jakob is ten."),
        ("Nora's dog is called Pickle.", "Nora's cat is called Juno."),
        ("Nora's friend is called Ines.", "Nora's friend is called Marta."),
        ("Nora's mother was born in 1951.", "Nora was born in 1979."),
        ("The bakery is closed on Mondays.", "The bakery is open on Tuesdays."),
    ],
)
def test_what_is_of_two_people_or_times_may_both_hold(one: str, other: str) -> None:
    assert rule_between(one, other) == ""


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Nora doesn't smoke.", "Nora smokes ten cigarettes a day."),
        ("Nora has never smoked.", "Nora is a heavy smoker."),
        ("Nora can't swim.", "Nora can swim."),
        ("Nora has never been to Iceland.", "Nora spent a summer in Iceland."),
        ("Nora hates karaoke.", "Nora loves karaoke."),
        ("Nora is afraid of spiders.", "Nora likes spiders."),
        ("Nora never gets up before nine.", "Nora gets up at six every morning."),
        ("Nora is a vegetarian.", "Nora eats ham for breakfast."),
        ("Nora drinks no alcohol.", "Nora drinks a glass of wine with dinner."),
        ("Nora is allergic to hazelnuts.", "Nora eats hazelnuts by the handful."),
        ("Nora has no children.", "Nora's daughter lives in Aarhus."),
        ("Nora has no pets.", "Nora has a hamster."),
        ("Nora doesn't work on Mondays.", "Nora works every Monday."),
        ("Nora is an only child.", "Nora has two brothers."),
        ("Nora prefers tea to cocoa.", "Nora prefers cocoa to tea."),
    ],
)
def test_what_one_denies_or_rules_out_the_other_says(one: str, other: str) -> None:
    assert rule_between(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Nora doesn't drink coffee.", "Nora drinks tea."),
        ("Nora doesn't eat beef.", "Nora eats chicken."),
        ("Nora likes jazz.", "Nora likes opera."),
        ("Nora hates olives.", "Nora loves capers."),
        ("Nora has no car.", "Nora has a bike."),
        ("Nora never drinks at home.", "Nora drinks wine when she is out."),
        ("Nora never gets up before nine.", "Nora gets up at ten."),
        ("Nora is a vegan.", "Nora cooks meat for her children."),
        ("Nora is allergic to nuts.", "Nora is allergic to penicillin."),
        ("Nora prefers tea over coffee.", "Nora likes coffee in the morning."),
        ("Nora wants no emojis.", "Nora wants no emojis, no suns and no hearts."),
        ("Nora is also not pleased.", "Nora loves dogs."),
        ("Nora has no pets.", "Nora loves dogs."),
        ("Nora eats no meat.", "Nora is a vegan."),
        ("Nora is not a morning person.", "Nora drinks coffee in the morning."),
        ("Nora doesn't work on Mondays.", "Nora swims on Mondays."),
    ],
)
def test_what_denies_something_else_leaves_it(one: str, other: str) -> None:
    assert rule_between(one, other) == ""


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Nora plays chess on Mondays.", "Nora plays chess on Fridays."),
        ("The reading circle meets on the first Monday.", "The reading circle meets on Wednesdays."),
        ("Nora's fencing class is at six.", "Nora's fencing class is at half past seven."),
        ("Nora's chess evening is on Mondays.", "Nora plays chess on Fridays."),
        ("Nora's birthday is on 3 May.", "Nora's birthday is on 21 August."),
        ("Nora pays £700 in rent.", "Nora's rent is £950."),
        ("The shop opens at eight.", "The shop opens at ten."),
    ],
)
def test_the_same_is_said_of_two_times_or_prices(one: str, other: str) -> None:
    assert rule_between(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Nora plays chess on Mondays.", "Nora fences on Fridays."),
        ("Nora gets up at six on weekdays.", "Nora gets up at nine at the weekend."),
        ("Nora meets Ines on Mondays.", "Nora meets Marta on Fridays."),
        ("Nora runs 5 km on Mondays.", "Nora runs 12 km on Sundays."),
        ("Nora works on Mondays.", "Nora works on Fridays."),
        ("Nora visited Rome in 2011.", "Nora visited Rome in 2016."),
        ("Nora pays £700 in rent.", "Nora pays £30 for the gym."),
        ("A rye loaf costs £5.20.", "A wheat loaf costs £4.10."),
    ],
)
def test_two_things_may_have_two_times_or_prices(one: str, other: str) -> None:
    assert rule_between(one, other) == ""


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Nora wohnt in Graz.", "Nora wohnt in Linz."),
        ("Nora trinkt keinen Kaffee.", "Nora trinkt jeden Morgen Kaffee."),
        ("Noras Katze heißt Mimi.", "Noras Katze heißt Schnurri."),
        ("Nora arbeitet als Köchin.", "Nora ist Lehrerin."),
        ("Nora ist ledig.", "Nora ist verheiratet."),
        ("Nora ist 29 Jahre alt.", "Nora ist vierunddreißig."),
        ("Nora hat Angst vor Hunden.", "Nora mag Hunde."),
        ("Nora ist Veganerin.", "Nora isst gern Käse."),
        ("Nora wohnt allein.", "Nora wohnt mit ihrem Bruder zusammen."),
        ("Der Chor probt dienstags.", "Der Chor probt donnerstags."),
    ],
)
def test_german_beliefs_are_held_against_each_other_too(one: str, other: str) -> None:
    assert rule_between(one, other, language="de")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Nora mag Kaffee.", "Nora mag Tee."),
        ("Nora isst kein Fleisch.", "Nora isst gern Fisch."),
        ("Timo wohnt in Graz.", "Nora wohnt in Linz."),
        ("Nora schwimmt montags.", "Nora klettert mittwochs."),
        ("Noras Bruder wohnt in Graz.", "Nora wohnt in Linz."),
    ],
)
def test_german_beliefs_that_both_hold_are_left(one: str, other: str) -> None:
    assert rule_between(one, other, language="de") == ""


def test_who_is_known_by_no_name_is_the_user() -> None:
    assert rule_between("The user is 29.", "The user is thirty-four years old.", person="The user")
    assert rule_between("The user lives in Trieste.", "The user's brother lives in Aarhus.", person="The user") == ""


def test_what_has_ended_contradicts_what_rests_on_it() -> None:
    assert rule_between("The jobs run over RabbitMQ.", "RabbitMQ is gone, the jobs run over Kafka now.")
    assert rule_between("The rabbit is called Juno.", "RabbitMQ is gone, the jobs run over Kafka now.") == ""


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Nora lives in Trieste.", "Nora lives in Aarhus."),
        ("Nora is a vegetarian.", "Nora eats ham for breakfast."),
        ("Nora has no children.", "Nora's daughter lives in Aarhus."),
        ("Nora's chess evening is on Mondays.", "Nora plays chess on Fridays."),
        ("Nora is afraid of spiders.", "Nora likes spiders."),
        ("Nora is retired.", "Nora works full time at the harbour."),
    ],
)
def test_what_contradicts_tells_of_one_thing(one: str, other: str) -> None:
    """Pairs are looked for among those."""
    assert side(one).things & side(other).things


def test_what_is_in_another_language_is_not_judged() -> None:
    assert read_side("Nora vive a Trieste.", person="Nora", language="it") is None
    assert find_contradiction(one=side("Nora lives in Graz."), other=side("Nora wohnt in Linz.", language="de")) == ""
