"""A Markdown document in the Document tab: its two views show the same passages, matches and selection."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.panels import formatted_view
from app.panels.document_tab import WIDTH_PX, DocumentTab
from app.panels.formatted_view import MOST_CHARACTERS, FormattedView, is_markdown, pieces_in, source_from
from app.richtext.markdown.blocks import BlockSplitter
from app.richtext.markdown.markdown import parse_block
from app.richtext.markdown.piece import Piece, source_at
from app.theme.theme import color, theme
from tests.app.chat.watching import colours, picture
from tests.app.panels.test_document_tab import document

SECTION = """## Section {n}

A vessel shall **not leave** in fog number {n}, unless the *duty master* waives `condition {n}`.

1. Visibility at the berth
   - with a pilot
2. The [checklist](https://example.org/{n}) is complete

| Berth | Slot |
|---|---:|
| North {n} | {n}:15 |

```python
def slot(vessel, berth, *, fog=False, master=None, condition_one=True, number={n}): return berth.next(vessel)
```

> The formula $a^2 + {n}$ holds.

"""
TEXT = "# Handbook\n\n" + "".join(SECTION.format(n=n) for n in range(40))


@pytest.fixture
def tab(qtbot: QtBot) -> DocumentTab:
    widget = DocumentTab()
    qtbot.addWidget(widget)
    widget.resize(WIDTH_PX, 800)
    with qtbot.waitExposed(widget):
        widget.show()
    return widget


def show(
    qtbot: QtBot, tab: DocumentTab, text: str = TEXT, name: str = "handbook.md", every: int = 10
) -> None:
    tab.show_documents([document(text, every=every, name=name)])
    qtbot.waitUntil(lambda: tab.formatted_view.is_laid_out, timeout=60_000)


def seen(tab: DocumentTab, character: int) -> bool:
    first, last = tab.view.visible_characters()
    return first <= character < last


def test_markdown_is_formatted_and_other_texts_are_not(qtbot: QtBot, tab: DocumentTab) -> None:
    show(qtbot, tab)
    assert tab.view is tab.formatted_view
    assert tab.style_choice.isVisible()
    kinds = {box.piece.kind for box in tab.formatted_view.canvas.boxes}
    assert kinds == {"heading", "text", "table", "code"}
    tab.style_choice.set_value("text")
    assert tab.view is tab.text_view
    assert tab.text_view.toPlainText().startswith("# Handbook")
    tab.style_choice.set_value("formatted")
    assert tab.view is tab.formatted_view
    show(qtbot, tab, name="handbook.txt")
    assert tab.view is tab.text_view
    assert not tab.style_choice.isVisible()
    assert [is_markdown(name) for name in ("A.MD", "a.markdown", "a.mdx.txt", "md")] == [
        True,
        True,
        False,
        False,
    ]


@pytest.mark.sweep
def test_too_long_a_document_is_text_and_the_reason_is_given(qtbot: QtBot, tab: DocumentTab) -> None:
    long = (TEXT * (MOST_CHARACTERS // len(TEXT) + 1))[: MOST_CHARACTERS + 1]
    show(qtbot, tab, long)
    assert tab.view is tab.text_view
    assert not tab.style_choice.isVisible()
    assert "too long to format" in tab.note_label.text()
    assert f"{MOST_CHARACTERS:,} characters" in tab.note_label.toolTip()
    show(qtbot, tab, long[:-1])
    assert tab.view is tab.formatted_view
    assert "too long" not in tab.note_label.text()


def whole(text: str) -> list[Piece]:
    splitter = BlockSplitter()
    blocks = [*splitter.feed(text), *splitter.finish()]
    return [piece for block in blocks for piece in parse_block(text, block.start, block.end)]


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        "\n".join(f"- item {n} with **some** words\n  - deeper `{n}`" for n in range(700)),
        "> " + "\n> ".join(f"line {n} of a quote" for n in range(900)),
        "> - top\n" + "\n".join(f">   - item {n} of a quote with **some** words" for n in range(400)),
        "```\n" + "\n".join(f"code = {n}" for n in range(2_000)) + "\n```\n",
        "One paragraph. " * 2_000,
    ],
    ids=["document", "list", "quote", "quoted list", "code", "paragraph"],
)
def test_a_document_that_is_read_in_parts_reads_as_a_whole(text: str) -> None:
    assert list(pieces_in(text)) == whole(text)


def test_no_part_of_a_document_is_parsed_or_laid_out_at_once_that_is_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of a long list, what is parsed at once is bounded, and so are the cells of a table."""
    parsed: list[int] = []
    stock = formatted_view.read_open

    def noted(source: str, start: int, end: int, before: str = "") -> object:
        parsed.append(end - start)
        return stock(source, start, end, before)

    monkeypatch.setattr(formatted_view, "read_open", noted)
    text = "\n>\n".join(f"> - item {n} with **some** words" for n in range(3_000))
    assert len(list(pieces_in(text))) == 3_000
    assert len(parsed) > 10
    assert max(parsed) <= 4_000
    rows = "\n".join(f"| {n} | b | c |" for n in range(900))
    pieces = list(pieces_in(f"| A | B | C |\n|---|---|---|\n{rows}\n"))
    assert [piece.kind for piece in pieces] == ["text"]
    assert rows in pieces[0].text


@settings(max_examples=80, deadline=None)
@given(st.text("ab *_`#>-|1.\n$[](x)~\\🙂", max_size=120))
def test_each_visible_character_leads_to_its_own_in_the_document(text: str) -> None:
    for piece in pieces_in(text):
        for char in range(len(piece.text)):
            own = source_at(piece.segments, char)
            if own is not None:
                assert source_from(piece, char) == own
        places = [source_from(piece, char) for char in range(len(piece.text) + 1)]
        assert all(0 <= place <= len(text) for place in places)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, len(TEXT) - 1), st.sampled_from(["formatted", "text"]))
def test_a_place_is_shown_in_either_view_and_stays_when_the_view_changes(
    qtbot: QtBot, tab: DocumentTab, character: int, begins: str
) -> None:
    tab.style_choice.set_value(begins)
    if tab.shown is None:
        show(qtbot, tab)
    tab.show_source(0, character, min(character + 30, len(TEXT)))
    other = "text" if begins == "formatted" else "formatted"
    for value in (begins, other, begins):
        tab.style_choice.set_value(value)
        qtbot.waitUntil(lambda: tab.formatted_view.is_laid_out, timeout=60_000)
        first, last = tab.view.visible_characters()
        # Syntax and blank lines are not displayed; the next text is.
        assert first <= character + 150
        assert last >= min(character, len(TEXT) - 150)
        assert tab.view.place is not None
        assert tab.view.current_text == TEXT[character : character + 30].strip()


def test_the_formatted_view_marks_the_read_passages(qtbot: QtBot, tab: DocumentTab) -> None:
    show(qtbot, tab)
    found = colours(picture(tab.view.viewport()))
    assert {color(name).name() for name in ("accent_tint", "accent", "dim")} <= found
    assert tab.jump(1)
    assert tab.view.current_stretch == 0
    assert seen(tab, tab.view.stretches[0].first)
    for _ in range(10):
        tab.jump(1)
    stretch = tab.view.stretches[10]
    assert seen(tab, stretch.first)
    assert tab.formatted_view.canvas.accessibleDescription().startswith("Kept passage 11 of")
    tab.style_choice.set_value("text")
    assert tab.view.current_stretch == 10
    assert seen(tab, stretch.first)
    tab.show_documents([replace(document(TEXT, name="handbook.md"), reading=None)])
    tab.style_choice.set_value("formatted")
    assert color("dim").name() not in colours(picture(tab.view.viewport()))
    assert color("accent_tint").name() not in colours(picture(tab.view.viewport()))


def test_marks_lie_at_their_characters(qtbot: QtBot, tab: DocumentTab) -> None:
    """What a point of a tint shows was read, and what a dim point shows was not."""
    show(qtbot, tab, every=5)
    view = tab.formatted_view
    image, canvas = picture(view.canvas), view.canvas
    tint = color("accent_tint").name()
    checked: list[bool] = []
    for number, box in enumerate(canvas.boxes[:40]):
        if box.is_code or not box.layout.lines:
            continue
        for char, letter in enumerate(box.piece.text):
            if letter.isspace() or (source := source_at(box.piece.segments, char)) is None:
                continue
            rect = canvas.rects_of(number, char, char + 1)[0]
            if rect.width() < 3 or any(
                s.style != "bold" for s in box.piece.styles if s.start <= char < s.end
            ):
                continue
            at = QPointF(rect.center().x(), rect.top() + 1).toPoint()
            is_read = bool(view.marks.read_in(source, source + 1))
            assert (image.pixelColor(at).name() == tint) is is_read, (letter, char, box.piece.text)
            checked.append(is_read)
    assert checked.count(True) > 100
    assert checked.count(False) > 300


def test_kept_only_leaves_out_paragraphs_and_a_place_shows_them_again(qtbot: QtBot, tab: DocumentTab) -> None:
    show(qtbot, tab)
    whole_px = tab.formatted_view.canvas.height()
    tab.filter.set_value("kept")
    qtbot.waitUntil(lambda: tab.formatted_view.is_laid_out, timeout=60_000)
    assert tab.formatted_view.canvas.height() < whole_px / 2
    shown = [box.piece for box in tab.formatted_view.canvas.boxes if not box.hidden]
    assert all(tab.view.marks.read_in(piece.source_start, piece.source_end) for piece in shown)
    skipped = next(at for at in range(2_000, len(TEXT)) if TEXT[at].isalpha() and not tab.view.shows(at))
    tab.show_source(0, skipped, skipped + 5)
    assert tab.filter.value == "all"
    qtbot.waitUntil(lambda: seen(tab, skipped), timeout=60_000)


def test_find_reads_what_is_shown_and_keeps_to_it_when_the_view_changes(
    qtbot: QtBot, tab: DocumentTab
) -> None:
    show(qtbot, tab)
    tab.finder.open()
    field, count = tab.finder.bar.field, tab.finder.bar.count
    field.setText("not leave in fog")
    assert count.text() == "1 of 40"  # without the stars around “not leave”
    found = tab.view.marks.matches
    spans = zip(found.starts, found.ends)
    assert {TEXT[start:end].replace("*", "") for start, end in spans} == {"not leave in fog"}
    for _ in range(30):
        tab.finder.step()
    assert seen(tab, TEXT.index("fog number 30"))
    assert field.hasFocus()
    tab.style_choice.set_value("text")
    assert "of 40" not in count.text()  # the stars are in between
    assert tab.finder.is_open
    assert tab.finder.bar.isVisible()
    assert tab.finder.bar.parentWidget() is tab.text_view
    field.setText("**not leave**")
    assert count.text().endswith("of 40")
    tab.style_choice.set_value("formatted")
    assert not count.text().endswith("of 40")
    field.setText("condition_one")
    assert count.text().endswith("of 40")
    tab.finder.step()
    canvas = tab.formatted_view.canvas
    code = [box for box in canvas.boxes if box.is_code and box.scroll]
    assert code, "the match is beyond the right edge of its code block"
    QTest.keyClick(field, Qt.Key.Key_Escape)
    assert not tab.finder.is_open


def test_find_sees_all_of_a_document_that_is_still_laid_out(qtbot: QtBot, tab: DocumentTab) -> None:
    tab.finder.open()
    tab.finder.bar.field.setText("duty master")
    tab.show_documents([document(TEXT * 3, name="handbook.md")])
    qtbot.waitUntil(lambda: tab.finder.bar.count.text().endswith("of 120"), timeout=60_000)


def test_the_selection_is_the_same_in_both_views(qtbot: QtBot, tab: DocumentTab) -> None:
    show(qtbot, tab)
    canvas = tab.formatted_view.canvas
    number = next(n for n, box in enumerate(canvas.boxes) if "not leave" in box.piece.text)
    start = canvas.boxes[number].piece.text.index("not leave")
    left = canvas.rects_of(number, start, start + 1)[0]
    right = canvas.rects_of(number, start + 8, start + 9)[0]
    y = round(left.center().y())
    QTest.mousePress(canvas, Qt.MouseButton.LeftButton, pos=QPoint(round(left.left()), y))
    QTest.mouseMove(canvas, QPoint(round(right.right()), y))
    QTest.mouseRelease(canvas, Qt.MouseButton.LeftButton, pos=QPoint(round(right.right()), y))
    assert canvas.selected_text == "not leave"
    QApplication.clipboard().clear()
    QTest.keySequence(canvas, QKeySequence.StandardKey.Copy)
    assert QApplication.clipboard().text() == "not leave"
    assert tab.view.selected_text == "not leave"
    tab.style_choice.set_value("text")
    assert tab.view.selected_text == "not leave"
    tab.text_view.selectAll()
    tab.style_choice.set_value("formatted")
    assert canvas.selected_text.startswith("Handbook")
    assert canvas.selected_text.endswith("holds.")
    QTest.keySequence(canvas, QKeySequence.StandardKey.SelectAll)
    assert canvas.selected_text == canvas.readable_text


def test_a_drag_below_the_view_scrolls(qtbot: QtBot, tab: DocumentTab) -> None:
    show(qtbot, tab)
    view, canvas = tab.formatted_view, tab.formatted_view.canvas
    QTest.mousePress(canvas, Qt.MouseButton.LeftButton, pos=QPoint(20, 5))
    below = canvas.mapFromGlobal(view.viewport().mapToGlobal(QPoint(100, view.viewport().height() + 40)))
    QTest.mouseMove(canvas, below)
    qtbot.waitUntil(lambda: view.verticalScrollBar().value() > 300, timeout=60_000)
    QTest.mouseRelease(canvas, Qt.MouseButton.LeftButton, pos=below)
    assert len(canvas.selected_text) > 400


def test_the_keys_scroll_and_scrolling_leaves_the_place(qtbot: QtBot, tab: DocumentTab) -> None:
    show(qtbot, tab)
    tab.view.setFocus()
    focused = QApplication.focusWidget()
    assert tab.isAncestorOf(focused)
    tab.show_source(0, 3_000, 3_010)
    QTest.keyClick(focused, Qt.Key.Key_PageDown)
    assert tab.view.place is None
    QTest.keyClick(focused, Qt.Key.Key_End, Qt.KeyboardModifier.ControlModifier)
    assert tab.view.visible_characters()[1] >= len(TEXT) - 3
    QTest.keyClick(focused, Qt.Key.Key_Home, Qt.KeyboardModifier.ControlModifier)
    assert tab.view.visible_characters()[0] == 0


@pytest.mark.sweep
@pytest.mark.parametrize("placed", [False, True])
def test_what_is_read_stays_in_view_at_other_widths_and_sizes(
    qtbot: QtBot, tab: DocumentTab, placed: bool
) -> None:
    show(qtbot, tab)
    view = tab.formatted_view
    character = TEXT.index("fog number 25")
    tab.show_source(0, character, character + 8)
    if not placed:
        view.leave()
    try:
        for width, height, zoom in (
            (WIDTH_PX, 300, 1.0),
            (WIDTH_PX + 200, 300, 1.0),
            (WIDTH_PX - 60, 800, 1.0),
            (WIDTH_PX, 800, 1.5),
            (WIDTH_PX, 800, 1.0),
        ):
            tab.resize(width, height)
            theme.set_zoom(zoom)
            qtbot.waitUntil(lambda: view.is_laid_out, timeout=60_000)
            QApplication.processEvents()
            first, last = view.visible_characters()
            if placed:
                assert first <= character < last
            else:
                assert first - 400 <= character < last + 400
    finally:
        theme.set_zoom(1.0)


def test_the_gutter_follows_and_leads(qtbot: QtBot, tab: DocumentTab) -> None:
    show(qtbot, tab)
    QTest.mouseClick(tab.gutter, Qt.MouseButton.LeftButton, pos=QPoint(19, tab.gutter.height() // 2))
    first, last = tab.view.visible_characters()
    assert first < len(TEXT) / 2 < last
    middle = tab.gutter.bracket().center().y()
    assert abs(middle - tab.gutter.height() / 2) < 60


def test_a_document_that_cannot_be_laid_out_says_so(
    qtbot: QtBot, tab: DocumentTab, monkeypatch: pytest.MonkeyPatch, unshown: list[str]
) -> None:
    def broken(text: str) -> Iterator[Piece]:
        yield Piece("text", "a", (), 0, 1)
        raise RuntimeError

    monkeypatch.setattr(formatted_view, "pieces_in", broken)
    show(qtbot, tab, "a\n\nb")
    assert isinstance(tab.view, FormattedView)
    assert "cannot be shown" in tab.view.canvas.readable_text
    assert len(unshown) == 1
    unshown.clear()
    tab.style_choice.set_value("text")
    assert tab.text_view.toPlainText() == "a\n\nb"
