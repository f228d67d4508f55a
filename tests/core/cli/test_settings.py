"""docs/settings.md says what the declarations say."""

from __future__ import annotations

from pathlib import Path

from core.cli.arguments import settings_page

DOCUMENT = Path(__file__).parents[3] / "docs" / "settings.md"


def test_the_document_is_that_of_the_declarations() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == settings_page(), "make settings-doc writes it"
