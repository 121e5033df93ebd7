"""B8: the language of a text decides which tables compare it."""

import pytest

from memory.language.words import could_be_either, detect_language


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Mara prefers tabs over spaces", "en"),
        ("The worker doesn't retry", "en"),
        ("Jonas trinkt keinen Kaffee", "de"),
        ("Freitags läuft kein Deployment", "de"),
        ("Mon éditeur préféré est Vim", ""),
        ("El servidor está en la nube", ""),
        ("Het team gebruikt geen Jenkins meer", ""),
        ("Команда больше не использует Jenkins", ""),
        ("チームはもう使っていない", ""),
        ("vim", ""),
        ("", ""),
    ],
)
def test_language_is_named_only_where_sure(text: str, language: str) -> None:
    assert detect_language(text) == language


@pytest.mark.parametrize(("text", "possible"), [("Kubernetes cluster", True), ("una mesa para dos", False)])
def test_unsure_text_is_told_from_a_foreign_one(text: str, possible: bool) -> None:
    assert could_be_either(text) is possible
