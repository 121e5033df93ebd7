"""E2, B10: an id serves as a name, in what words a belief is asked for, if it is made of letters alone."""

import pytest

from memory.language.third_person import name_of_user


@pytest.mark.parametrize(
    ("user", "name"), [("mara", "Mara"), ("Mara", "Mara"), ("jürgen", "Jürgen"), ("McKay", "McKay")]
)
def test_letters_alone_are_a_name(user: str, name: str) -> None:
    assert name_of_user(user=user) == name


@pytest.mark.parametrize(
    "user", ["", "u-17", "mara@mill.test", "mara klein", "9f86d0", "user", "Owner", "admin", "mara_k", "test"]
)
def test_any_other_id_is_none(user: str) -> None:
    assert name_of_user(user=user) == ""
