"""E3: whom or what a sentence is about, where it begins with a bare name."""

import pytest

from memory.language.subjects import find_named_person, find_named_subject, find_owner


@pytest.mark.parametrize(
    ("sentence", "name"),
    [
        ("Bruno no longer plays tennis.", {"bruno"}),
        ("From June on Bruno works at the mill.", {"bruno"}),
        ("Anna Lena drinks coffee.", {"anna", "lena"}),
        ("Dr. Kern works there.", {"kern"}),
        ("Dana is a vegetarian.", {"dana"}),
        ("Bruno's sister Eva swims.", set()),
        ("Dana is the tech lead.", set()),
        ("Ravi is Mara's manager.", set()),
        ("Tuesday is release day.", set()),
        ("Practice starts at seven.", set()),
        ("Prefers tabs.", set()),
        ("Never deploys on Fridays.", set()),
        ("Tabs are better.", set()),
        ("The bakery opens at six.", set()),
    ],
)
def test_a_sentence_begins_with_whom_it_tells_of(sentence: str, name: set[str]) -> None:
    assert find_named_subject(sentence) == name


def test_german_verbs_follow_a_name_too() -> None:
    assert find_named_subject("Vera wohnt in Triest.", language="de") == {"vera"}


@pytest.mark.parametrize(("sentence", "owner"), [("Bruno's car is red.", "bruno"), ("Bruno drives.", ""), ("", "")])
def test_whose_something_is_comes_first(sentence: str, owner: str) -> None:
    assert find_owner(sentence) == owner


@pytest.mark.parametrize(
    ("sentence", "is_of_person"),
    [
        ("Bruno lives in Basel.", True),
        ("Bruno has moved to Basel.", True),
        ("Bruno doesn't drive any more.", True),
        ("Bruno used to cycle.", True),
        ("Dana is a vegetarian.", True),
        ("Flour comes from the mill.", False),
        ("SumUp is out.", False),
        ("Postgres runs on port 5433.", False),
    ],
)
def test_people_are_told_by_what_they_do(sentence: str, is_of_person: bool) -> None:
    assert bool(find_named_person(sentence)) is is_of_person


def test_a_german_noun_is_no_person_by_an_english_stem() -> None:
    assert not find_named_person("Zotero hat 2.400 Einträge.", language="de")
    assert find_named_person("Vera wohnt in Triest.", language="de") == {"vera"}
