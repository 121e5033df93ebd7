"""B8: the language of a text decides which tables compare it."""

import pytest

from memory.language.words import detect_language


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
