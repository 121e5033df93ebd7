"""E3: whom or what a sentence is about, where it begins with a bare name."""

import pytest

from memory.domain.named_subjects import find_named_subject, find_owner


@pytest.mark.parametrize(
    ("sentence", "name"),
    [
        ("Bruno no longer plays tennis.", {"bruno"}),
        ("From June on Bruno works at the mill.", {"bruno"}),
        ("Anna Lena drinks coffee.", {"anna", "lena"}),
        ("Dr. Kern works there.", {"kern"}),
        ("Dana is a vegetarian.", {"dana"}),
        ("Bruno's sister Eva swims.", {"bruno", "eva"}),
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
