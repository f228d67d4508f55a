"""Code wider than the column scrolls sideways, and everything on it stays at its characters."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PySide6.QtCore import QEvent, QObject, QPoint, QPointF, Qt
from PySide6.QtGui import QImage, QPainter, QPaintEvent, QRegion, QWheelEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.chat.answer_body import AnswerBody
from app.chat.transcript import Transcript
from app.richtext import piece_layout
from app.richtext.piece_box import PieceBox
from app.richtext.piece_layout import Chunk
from app.richtext.text_canvas import MARGIN_PX
from app.theme.theme import color, theme
from core.events import Message
from tests.app.chat.watching import body_of, colour, drag, mouse_move, picture, stream
from tests.app.chat.written import finished, tokens_of

COLUMN_PX = 420
LINE = "{one| two| three^ four} five{ six| seven^ eight} nine ten{ eleven| twelve^ thirteen}"
WIDE = f"Code:\n\n```\nshort{{ ones| of^ it}}\n{LINE} {LINE} {LINE}\n\tend\n```\n"


def shown(qtbot: QtBot, written: str, *, over: bool = True) -> AnswerBody:
    """The text of an answer; all tokens are tinted only while it is not `over`."""
    body = AnswerBody()
    qtbot.addWidget(body)
    body.append(tokens_of(written))
    if over:
        body.finish()
    body.resize(COLUMN_PX + 2 * MARGIN_PX, body.height_for(COLUMN_PX) + 2)
    return body


def code_of(body: AnswerBody) -> PieceBox:
    return next(box for box in body.boxes if box.is_code)


def at_token(body: AnswerBody, text: str) -> int:
    return next(number for number, each in enumerate(body.table.tokens) if each.text == text)


def wheel(body: AnswerBody, at: QPointF, moved: QPoint, keys: Qt.KeyboardModifier) -> QWheelEvent:
    event = QWheelEvent(at, at, QPoint(), moved, Qt.MouseButton.NoButton, keys,
                        Qt.ScrollPhase.NoScrollPhase, False)  # fmt: skip
    body.wheelEvent(event)
    return event


words = st.text("abWx_(.日🙂é\t ", min_size=1, max_size=14).map(lambda word: word + "a")
lines = st.lists(words, min_size=1, max_size=14).map(
    lambda words: "{" + "|".join(words[:-1]) + "^" + words[-1] + "}"
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(lines, min_size=1, max_size=4),
    st.floats(0, 1),
    st.sampled_from([1.0, 1.5, 2.0]),
    st.sampled_from(["", "> ", "- "]),
)
def test_a_click_selects_the_token_that_is_drawn_there(
    qtbot: QtBot, rows: list[str], share: float, zoom: float, begins: str
) -> None:
    theme.set_zoom(zoom)
    try:
        inside = "".join(f"{'  ' if begins == '- ' else begins}{row}\n" for row in ["```", *rows, "```"])
        body = shown(qtbot, begins + inside[2:] if begins == "- " else inside, over=False)
        box = code_of(body)
        box.scroll_by(share * box.most_scroll)
        window = (
            box.window.translated(MARGIN_PX, 0) if box.most_scroll else box.frame.translated(MARGIN_PX, 0)
        )
        number = body.boxes.index(box)
        plain, tint = picture(body), colour("accepted_tint")
        for ink in box.inks.inks:
            for rect in body.rects_of(number, ink.start, ink.end):
                seen = rect.intersected(window)
                middle = QPointF(seen.center())
                if seen.width() < 4:
                    place = body.place_at(rect.center(), between=False)
                    assert seen.width() > 0 or place is None, "hidden text is hit"
                    continue
                place = body.place_at(middle, between=False)
                assert place is not None
                assert ink.start <= place.char < ink.end
                body.pointer_moved(middle)
                assert body.pointed_token == ink.token
                pointed = body.token_rect(ink.token)
                assert window.adjusted(-1, -99, 1, 99).contains(pointed)
                # Nearer to the sides a drag scrolls.
                inner = rect.intersected(window.adjusted(16, 0, -16, 0))
                if inner.width() > 4:
                    y = round(middle.y())
                    drag(qtbot, body, QPoint(round(inner.left()), y), QPoint(round(inner.right()), y))
                    chosen = body.selection
                    body.show_selection(None)
                    # An edge may be nearer to the gap on the other side of the neighbouring character.
                    if chosen:
                        assert ink.start - 1 <= chosen.start.char <= chosen.end.char <= ink.end + 1
                # Below the glyphs and inside: only the tint is drawn there.
                edge = QPoint(
                    round(middle.x()),
                    round(rect.top() + box.layout.style.baseline_px - box.layout.style.tint.top + 1),
                )
                if ink.origin == "accepted" and window.left() + 16 < middle.x() < window.right() - 16:
                    assert plain.pixelColor(edge).name() == tint
        # Nothing is drawn outside the frame.
        outside = [*range(int(window.left()) - 3), *range(int(window.right()) + 3, plain.width())]
        row = int(box.text_top + box.layout.height / 2)
        assert tint not in {plain.pixelColor(x, row).name() for x in outside}
        body.deleteLater()
    finally:
        theme.set_zoom(1.0)


def test_lines_of_code_are_hard_lines_and_a_very_long_one_is_marked(qtbot: QtBot) -> None:
    body = shown(qtbot, f"```\nshort\n{'x' * 300}\n{'y' * 5000}\nend\n```\n")
    layout = code_of(body).layout
    texts = [layout.text[line.start : line.end] for line in layout.lines]
    assert texts[:2] == ["short", "x" * 300]
    assert "".join(texts[2:-1]) == "y" * 5000
    marked = [text for number, text in enumerate(texts) if layout.continues(number)]
    assert marked == texts[2:-2]
    assert all(text.startswith("y") for text in marked)


def test_text_outside_code_still_wraps(qtbot: QtBot) -> None:
    body = shown(qtbot, "word " * 200)
    assert len(body.boxes[0].layout.lines) > 10
    assert body.boxes[0].most_scroll == 0


def test_a_block_that_fits_has_no_bar_and_leaves_the_wheel_to_the_transcript(qtbot: QtBot) -> None:
    body = shown(qtbot, "```\nshort\n```\n")
    box = code_of(body)
    assert box.most_scroll == 0
    none = Qt.KeyboardModifier.NoModifier
    assert not wheel(body, box.frame.center(), QPoint(-120, 0), none).isAccepted()


@pytest.mark.sweep
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("zoom", [1.0, 2.0])
def test_the_edge_fades_where_there_is_more(qtbot: QtBot, scheme: str, zoom: float) -> None:
    theme.set_scheme(scheme)
    theme.set_zoom(zoom)
    try:
        body = shown(qtbot, "```\n" + "█" * 200 + "\n```\n")
        box = code_of(body)
        line = box.layout.lines[0]
        y = int(box.text_top + line.baseline - 3)
        left, right = int(MARGIN_PX + box.frame.left()) + 5, int(MARGIN_PX + box.frame.right()) - 6

        def faded() -> tuple[bool, bool]:
            image = picture(body)
            clear = {color("code").name(), image.pixelColor((left + right) // 2, y).name()}
            return image.pixelColor(left, y).name() not in clear, image.pixelColor(
                right, y
            ).name() not in clear

        found = [faded()]
        for _ in range(2):
            box.scroll_by(box.most_scroll / 2)
            found.append(faded())
        assert found == [(False, True), (True, True), (True, False)]
        bar_y = int(box.bottom - 6)
        assert len({picture(body).pixelColor(x, bar_y).name() for x in range(left, right)}) > 1
    finally:
        theme.set_scheme("light")
        theme.set_zoom(1.0)


def test_the_wheel_scrolls_sideways_and_only_then(qtbot: QtBot) -> None:
    body = shown(qtbot, WIDE)
    box = code_of(body)
    at, none = box.frame.center(), Qt.KeyboardModifier.NoModifier
    assert wheel(body, at, QPoint(-120, 0), none).isAccepted()
    assert box.scroll == 40
    assert wheel(body, at, QPoint(0, -120), Qt.KeyboardModifier.ShiftModifier).isAccepted()
    assert box.scroll == 80
    assert not wheel(body, at, QPoint(0, -120), none).isAccepted()
    assert box.scroll == 80
    body.height_for(COLUMN_PX - 20)
    assert code_of(body).scroll == 80  # at another width


def test_the_keys_bring_the_token_and_the_selection_into_view(qtbot: QtBot) -> None:
    body = shown(qtbot, WIDE)
    box = code_of(body)
    inner = box.window.translated(MARGIN_PX, 0)
    seen = set()
    for _ in range(len(body.table)):
        qtbot.keyClick(body, Qt.Key.Key_Right)
        rect = body.token_rect(body.pointed_token)
        token = body.table[body.pointed_token]
        if rect and token.text.strip() and inner.top() < rect.center().y() < inner.bottom():
            assert body.place_at(rect.center(), between=False) is not None
            assert rect.width() > 3
            seen.add(round(box.scroll))
    assert len(seen) > 3
    qtbot.keyClick(body, Qt.Key.Key_Home)
    qtbot.keyClick(body, Qt.Key.Key_End)
    assert box.scroll < 40
    number = body.boxes.index(box)
    keys = Qt.KeyboardModifier.ShiftModifier
    body.show_selection(None)
    for _ in range(3):
        qtbot.keyClick(body, Qt.Key.Key_Down, keys)
    qtbot.keyClick(body, Qt.Key.Key_End, keys)
    head = body.selection.head
    rect = body.rects_of(number, head.char, head.char)[0]
    assert inner.left() <= rect.left() <= inner.right()


def test_a_drag_at_the_edge_scrolls_and_goes_on_selecting(qtbot: QtBot, transcript: Transcript) -> None:
    stream(transcript, WIDE.replace("Code:", "Code") * 1)
    transcript.finish_answer("t", finished())
    transcript.resize(500, 500)
    qtbot.wait(20)
    body = body_of(transcript)
    box = code_of(body)
    line = box.layout.lines[1]
    y = round(box.text_top + line.top + 10)
    qtbot.mousePress(body, Qt.MouseButton.LeftButton, pos=QPoint(round(MARGIN_PX + box.left + 20), y))
    QApplication.sendEvent(body, mouse_move(body, QPoint(round(MARGIN_PX + box.right + 30), y)))
    qtbot.waitUntil(lambda: box.scroll == box.most_scroll, timeout=60_000)
    wanted = box.piece.text.split("\n")[1]
    assert wanted.endswith(transcript.selected_text())
    assert len(transcript.selected_text()) > len(wanted) - 4
    qtbot.mouseRelease(body, Qt.MouseButton.LeftButton, pos=QPoint(round(MARGIN_PX + box.right + 30), y))
    box.scroll_by(-50)
    left_px = box.scroll
    qtbot.wait(100)
    assert box.scroll == left_px


def test_a_drag_that_began_elsewhere_does_not_scroll(qtbot: QtBot) -> None:
    body = shown(qtbot, WIDE)
    box = code_of(body)
    drag(qtbot, body, QPoint(20, 5), QPoint(COLUMN_PX + 4, round(box.text_top + 30)))
    assert box.scroll == 0


def test_what_is_found_is_brought_into_view(transcript: Transcript, qtbot: QtBot) -> None:
    transcript.add_user("t", Message("user", "Q"))
    stream(transcript, WIDE)
    transcript.finish_answer("t", finished())
    transcript.resize(460, 500)
    transcript.finder.open()
    transcript.finder.bar.field.setText("thirteen")
    body = body_of(transcript)
    qtbot.waitUntil(lambda: transcript.finder.bar.isVisible() and code_of(body).scroll > 0, timeout=60_000)
    box, number = code_of(body), body.boxes.index(code_of(body))
    first = box.piece.text.index("thirteen")
    rect = body.rects_of(number, first, first + 8)[0]
    assert box.window.translated(MARGIN_PX, 0).contains(rect)
    before = box.scroll
    transcript.finder.step()
    assert box.scroll > before


class Repainted(QObject):
    """The region of a widget that was painted."""

    def __init__(self) -> None:
        super().__init__()
        self.region = QRegion()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if isinstance(event, QPaintEvent):
            self.region += event.region()
        return False


@pytest.mark.parametrize("scrolled_px", [0, 60])
def test_what_changes_while_it_is_written_is_painted_again(qtbot: QtBot, scrolled_px: int) -> None:
    body, painted = AnswerBody(), Repainted()
    qtbot.addWidget(body)
    body.resize(COLUMN_PX + 2 * MARGIN_PX, 400)
    body.height_for(COLUMN_PX)
    with qtbot.waitExposed(body):
        body.show()
    tokens = tokens_of(WIDE)
    before = QImage()
    for at in range(0, len(tokens), 2):
        qtbot.wait(1)
        before = picture(body)
        body.installEventFilter(painted)
        painted.region = QRegion()
        body.append(tokens[at : at + 2])
        qtbot.wait(1)
        body.removeEventFilter(painted)
        after = picture(body)
        painter = QPainter(before)
        painter.setClipRegion(painted.region)
        painter.drawImage(0, 0, after)
        painter.end()
        assert before == after
        wide = [box for box in body.boxes if box.most_scroll]
        if wide and not wide[0].scroll:
            wide[0].scroll_by(scrolled_px)
            body.update()


def test_a_line_of_any_length_grows_at_a_constant_cost(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    laid_out: list[int] = []
    stock = piece_layout.lay_out

    def counted(chunk: Chunk, *given: object, **named: object) -> object:
        laid_out.append(len(chunk.text))
        return stock(chunk, *given, **named)

    monkeypatch.setattr(piece_layout, "lay_out", counted)
    body = AnswerBody()
    qtbot.addWidget(body)
    body.append(tokens_of("```json\n"))
    for _ in range(250):
        laid_out.clear()
        body.append(tokens_of("x" * 120))
        assert sum(laid_out) <= 2 * 2_120
    assert len(code_of(body).piece.text) == 30_000
    assert code_of(body).most_scroll > 0
