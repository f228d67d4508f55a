"""Selection and what copying gives."""

from __future__ import annotations

from app.richtext.markdown.markdown import parse_block
from app.richtext.selection import TextPlace, TextSelection, everything, selected_text, word_at

SOURCE = "# Title\n\nSome **bold** text.\n\n1. one\n2. two\n   - deep\n\n```py\nx = 1\n```\n"
PIECES = parse_block(SOURCE, 0, len(SOURCE))


def test_everything_is_clean_text() -> None:
    assert selected_text(PIECES, everything(PIECES)) == (
        "Title\n\nSome bold text.\n\n1. one\n2. two\n  - deep\n\nx = 1"
    )


def test_backwards_is_the_same() -> None:
    selection = TextSelection(TextPlace(2, 2), TextPlace(1, 5))
    assert selected_text(PIECES, selection) == "bold text.\n\n1. on"
    assert selected_text(PIECES, TextSelection(selection.head, selection.anchor)) == "bold text.\n\n1. on"


def test_words_inside_an_item_come_without_its_marker() -> None:
    assert selected_text(PIECES, TextSelection(TextPlace(2, 0), TextPlace(2, 3))) == "one"


def test_a_marker_comes_only_with_its_first_character() -> None:
    assert selected_text(PIECES, TextSelection(TextPlace(2, 1), TextPlace(3, 3))) == "ne\n2. two"


def test_what_is_selected_in_a_piece() -> None:
    selection = TextSelection(TextPlace(1, 5), TextPlace(3, 0))
    assert selection.in_piece(0, 5) is None
    assert selection.in_piece(1, 15) == (5, 15)
    assert selection.in_piece(2, 3) == (0, 3)
    assert selection.in_piece(3, 3) is None


def test_nothing() -> None:
    assert everything([]).is_empty
    assert selected_text([], everything([])) == ""


def test_words() -> None:
    assert word_at("one two", 5) == (4, 7)
    assert word_at("a, b", 1) == (1, 2)
    assert word_at("a", 1) == (1, 1)
