"""Formulas in the text engine: typeset by the process, placed in lines, selected whole, copied as LaTeX."""

from __future__ import annotations

import asyncio
import io
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from pypdf import PdfReader
from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QColor, QGuiApplication, QImage
from pytestqt.qtbot import QtBot

from app.chat.answer_body import AnswerBody
from app.chat.export import ExportOptions, blocks, formulas_in, page, to_pdf
from app.richtext.formulas import formulas, typeset_now
from app.richtext.markdown.markdown import parse_block
from app.richtext.markdown.piece import Piece
from app.richtext.piece_layout import PieceLayout
from app.richtext.selection import TextPlace, TextSelection, matches_in, moved
from app.richtext.text_canvas import MARGIN_PX, TextCanvas
from app.richtext.text_style import answer_style
from app.session.chats.conversation import Answer, Turn
from app.shell.window import MainWindow
from app.theme.theme import theme
from core.events import Message
from core.typesetting import LONGEST, Formula
from tests.app.chat.written import finished, token
from tests.app.stage import ready, until

LINE = r"Before $\frac{a}{b}$ and behind."
WAIT_MS = 60_000
HOSTILE = [
    *("\\frac{" * 600, "\\sqrt{" * 600 + "x" + "}" * 600, "\\hat" * 900 + "x", "\\left(" * 500),
    *(r"\def\a{\b\b}\def\b{\a\a}\a", r"\newcommand{\a}{\a\a}\a", "\\text{" + "x" * 90_000 + "}"),
    "".join(rf"\def\{b}{{\{a}\{a}\{a}\{a}\{a}\{a}}}" for a, b in zip("abcdefghi", "bcdefghij"))
    + r"\def\a{x}\j",
    "\\begin{matrix}" + "a & " * 400 + r"\\" * 400 + "\\end{matrix}",
    *(
        "x^{" * 500 + "y" + "}" * 500,
        r"\hspace{1000000cm}",
        "\\color{" * 300,
        "\0\x1b",
        "\ud800",
        "%" * 3_000,
    ),
]


def pieces_of(markdown: str) -> tuple[Piece, ...]:
    return parse_block(markdown, 0, len(markdown))


@pytest.fixture
def canvas(qtbot: QtBot) -> Iterator[TextCanvas]:
    made = TextCanvas()
    made.resize(600 + 2 * MARGIN_PX, 300)
    yield made
    made.close()
    made.deleteLater()


def show(canvas: TextCanvas, qtbot: QtBot, markdown: str) -> None:
    """Shows the text and waits until its formulas are typeset."""
    canvas.height_for(600)
    canvas.set_pieces(pieces_of(markdown))
    qtbot.waitUntil(lambda: not any(box.layout.awaits_formulas for box in canvas.boxes), timeout=WAIT_MS)


def inked(canvas: TextCanvas, color: QColor) -> int:
    """How many pixels have about this colour."""
    image = canvas.grab().toImage().convertToFormat(QImage.Format.Format_RGB888)
    rows = np.frombuffer(image.constBits(), np.uint8).reshape(image.height(), image.bytesPerLine())
    pixels = rows[:, : 3 * image.width()].reshape(-1, 3).astype(int)
    return int((abs(pixels - color.getRgb()[:3]) < 40).all(axis=1).sum())


def test_a_formula_is_source_until_it_is_typeset_then_a_shape(canvas: TextCanvas, qtbot: QtBot) -> None:
    heights: list[int] = []
    canvas.height_changed.connect(lambda: heights.append(canvas.height_for(600)))
    canvas.height_for(600)
    canvas.set_pieces(pieces_of("Above.") + pieces_of(r"$$\frac{a_7}{b_7}$$") + pieces_of("Below."))
    (line,) = canvas.boxes[1].layout.lines
    assert line.formulas == []
    before = [box.top for box in canvas.boxes]
    text = canvas.readable_text
    qtbot.waitUntil(lambda: bool(heights), timeout=WAIT_MS)
    (line,) = canvas.boxes[1].layout.lines
    assert len(line.formulas) == 1
    assert line.height > canvas.boxes[0].layout.lines[0].height
    after = [box.top for box in canvas.boxes]
    assert after[:2] == before[:2]  # nothing above it moves
    assert after[2] - before[2] == heights[-1] - round(canvas.boxes[1].top + 25 + 11 + 25)
    assert canvas.readable_text == text
    left = line.left_of(line.formulas[0])
    assert left == pytest.approx((600 - (line.x_at(line.end) - left)) / 2, abs=2)  # in the middle


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("zoom", [1.0, 2.0])
def test_a_formula_is_painted_in_the_text_s_colour(
    canvas: TextCanvas, qtbot: QtBot, scheme: str, zoom: float
) -> None:
    theme.set_scheme(scheme)
    theme.set_zoom(zoom)
    show(canvas, qtbot, r"$$\int_0^1 \frac{\sqrt{x}}{2}\,dx$$")
    assert inked(canvas, theme.color("text")) > 100 * zoom * zoom
    (line,) = canvas.boxes[0].layout.lines
    _, ascent, descent = line.formulas[0].shape.size_px(line.size_px)
    assert line.top <= line.baseline - ascent
    assert line.baseline + descent <= line.top + line.height
    theme.set_scheme("light" if scheme == "dark" else "dark")
    show(canvas, qtbot, r"$$\int_0^1 \frac{\sqrt{x}}{2}\,dx$$")
    assert inked(canvas, theme.color("text")) > 100 * zoom * zoom


def test_a_formula_is_one_thing_to_the_mouse_and_the_keys(canvas: TextCanvas, qtbot: QtBot) -> None:
    show(canvas, qtbot, LINE)
    box = canvas.boxes[0]
    (line,) = box.layout.lines
    (formula,) = line.formulas
    start, end = LINE.index("$"), LINE.rindex("$") + 1
    assert (formula.start, formula.end) == (start, end)
    left, right = line.x_at(start), line.x_at(end)
    assert right - left == pytest.approx(formula.shape.size_px(line.size_px)[0], abs=1)
    for share, place in ((0.2, start), (0.8, end)):
        assert line.char_at(left + share * (right - left), between=True) == place
    chars = [line.char_at(left + share / 100 * (right - left), between=False) for share in range(1, 100)]
    assert chars == sorted(chars)
    assert (chars[0], chars[-1]) == (start, end - 1)
    assert moved(canvas.boxes, TextPlace(0, start), "right") == TextPlace(0, end)
    assert moved(canvas.boxes, TextPlace(0, end), "left") == TextPlace(0, start)
    middle = QPointF(MARGIN_PX + box.text_left + (left + right) / 2, box.text_top + line.baseline - 4)
    qtbot.mouseDClick(canvas, Qt.MouseButton.LeftButton, pos=middle.toPoint())
    qtbot.mouseRelease(canvas, Qt.MouseButton.LeftButton, pos=middle.toPoint())
    assert canvas.selected_text == LINE[start:end]
    (rect,) = canvas.rects_of(0, start, end)
    assert rect.height() == line.height


def test_a_formula_is_copied_as_latex_and_as_mathml(canvas: TextCanvas, qtbot: QtBot) -> None:
    show(canvas, qtbot, LINE)
    canvas.select_all()
    assert canvas.copy()
    data = QGuiApplication.clipboard().mimeData()
    assert data.text() == LINE
    assert r'alttext="\frac{a}{b}"' in data.html()
    assert "<mfrac>" in data.html()
    assert "$" not in data.html()
    canvas.show_selection(TextSelection(TextPlace(0, 0), TextPlace(0, LINE.index("a}"))))
    canvas.copy()
    assert QGuiApplication.clipboard().mimeData().text() == LINE[: LINE.index("a}")]
    assert "<math" not in QGuiApplication.clipboard().mimeData().html()


def test_a_formula_is_found_by_its_latex(canvas: TextCanvas, qtbot: QtBot) -> None:
    show(canvas, qtbot, LINE)
    (match,) = matches_in(canvas.pieces, "frac")
    rects = canvas.rects_of(0, match.start, match.end)
    assert len(rects) == 1
    assert rects[0].width() > 0


@pytest.mark.parametrize("markdown", [r"| a | b |\n|---|---|\n| $\frac{1}{2}$ | c |".replace("\\n", "\n")])
def test_a_row_is_as_high_as_its_formula(canvas: TextCanvas, qtbot: QtBot, markdown: str) -> None:
    show(canvas, qtbot, markdown + "\n| d | e |\n")
    rules = canvas.boxes[0].layout.lines
    heights = {line.height for line in rules}
    assert len(heights) == 2
    assert len(formulas_on(canvas)) == 1


def formulas_on(canvas: TextCanvas) -> list[object]:
    return [each for box in canvas.boxes for line in box.layout.lines for each in line.formulas]


def test_a_wide_formula_scrolls(canvas: TextCanvas, qtbot: QtBot) -> None:
    show(canvas, qtbot, "- $$" + " + ".join(rf"\frac{{a_{n}}}{{b_{n}}}" for n in range(30)) + "$$")
    box = canvas.boxes[0]
    assert box.most_scroll > 300
    assert box.scroll_by(100)
    canvas.grab()


@pytest.mark.parametrize(
    "text", ["שלום $\\frac{a}{b}$ עולם", "🙂 $\\frac{c}{d}$ 🙂 b", "**a $\\sqrt{x}$ b**"]
)
def test_a_formula_covers_its_own_place_only(canvas: TextCanvas, qtbot: QtBot, text: str) -> None:
    show(canvas, qtbot, text)
    (line,) = canvas.boxes[0].layout.lines
    (formula,) = line.formulas
    left = line.left_of(formula)
    right = left + formula.shape.size_px(line.size_px)[0]
    for start, end in ((0, formula.start), (formula.end, line.end)):
        for low, high in line.spans(start, end):
            assert high <= left + 1 or low >= right - 1


def test_hostile_latex_is_answered_bounded_and_shown_as_its_source(canvas: TextCanvas, qtbot: QtBot) -> None:
    known = formulas()
    for latex in HOSTILE:
        show(canvas, qtbot, f"$${latex}$$")
        canvas.grab()
        shape = known.get(Formula(latex, True))
        if shape is None:
            assert "".join(canvas.readable_text.split()) == "".join(
                f"$${latex}$$".replace("\0", "\ufffd").split()
            )
        else:
            assert max(shape.size_px(15)) < 10_000
    show(canvas, qtbot, "$$\\sqrt{2}$$")  # the process still answers
    assert len(formulas_on(canvas)) == 1


def test_an_export_waits_for_all_formulas_and_outlives_the_process_s_end() -> None:
    wanted = [Formula(r"\sqrt{x}", True), Formula(r"\foo", True), Formula("x" * (LONGEST + 1), True)]
    wanted += [Formula(rf"\frac{{1}}{{{n}}}", False) for n in range(5)]
    made = typeset_now(wanted)
    assert list(made) == [wanted[0], *wanted[3:]]


def test_text_without_formulas_is_laid_out_as_before(qtbot: QtBot) -> None:
    style = answer_style()
    layout = PieceLayout("a\n\n🙂 b", style, 300)
    assert [line.height for line in layout.lines] == [style.line_px] * 3
    assert layout.height == 3 * style.line_px


def test_while_it_is_written_a_formula_is_text_and_nothing_above_it_moves(qtbot: QtBot) -> None:
    source = "Above $a_1$.\n\n- one\n- two\n\n$$\n\\frac{x_{42}}{y}\n$$\n\nBelow $\\sqrt{42}$ it.\n"
    body = AnswerBody()
    qtbot.addWidget(body)
    body.height_for(600)
    tops: list[float] = []
    opened = source.index("$$") + 2
    for at in range(0, len(source), 3):
        body.append([token(source[at : at + 3])])
        qtbot.wait(1)
        now = [box.top for box in body.boxes]
        kept = min(len(tops), 3)  # the blocks above the formula
        assert now[:kept] == tops[:kept]
        tops = now
        if opened < at + 3 < source.index("\n$$\n", opened):  # open: its source as it comes
            assert (
                body.boxes[-1].piece.text == source[opened - 2 : at + 3].rstrip("\n") or at + 3 < opened + 2
            )
            assert not body.boxes[-1].layout.awaits_formulas
    body.finish()
    qtbot.waitUntil(lambda: len(formulas_on(body)) == 2, timeout=WAIT_MS)
    assert [box.top for box in body.boxes][:3] == tops[:3]
    assert body.selected_text == ""
    body.select_all()
    assert (
        body.selected_text.replace("- ", "").split()
        == source.replace("$a_1$", "a₁").replace("- ", "").split()
    )
    body.grab()


@pytest.mark.sweep
async def test_a_formula_of_an_answer_is_painted_copied_and_exported(
    window: MainWindow, tmp_path: Path
) -> None:
    await ready(window)
    answer = "So:\n\n$$\\int_0^1 \\frac{dx}{1+x}$$\n\nand $\\sqrt[3]{2}$."
    turn = Turn("t0", Message("user", "q"), Answer((token(answer),), "finished", finished()))
    chats, transcript = window.controller.chats, window.views.transcript
    chats.keep(chats.open.with_turns((turn,)))
    window.controller.chat.show()
    await until(lambda: transcript.answer("t0") is not None)
    view = transcript.answer("t0")
    assert view is not None
    await until(lambda: len(formulas_on(view.body)) == 2)
    assert inked(view.body, theme.color("text")) > 100
    window.commands.copy_answer()
    data = QGuiApplication.clipboard().mimeData()
    assert data.text() == answer
    assert data.html().count("<math") == 2
    chat = chats.open
    made = await asyncio.to_thread(formulas_in, chat)
    html = "".join(page(chat, ExportOptions(), "T", made))
    assert html.count("<math") == 2
    assert "\\frac" not in re.sub(r'alttext="[^"]*"', "", html)
    with_shapes = to_pdf("T", blocks(chat, ExportOptions(), "T", made), formulas=made)
    without = to_pdf("T", blocks(chat, ExportOptions(), "T"))
    texts = [PdfReader(io.BytesIO(each)).pages[0].extract_text() for each in (with_shapes, without)]
    assert ["frac" in text for text in texts] == [False, True]
    curves = [
        PdfReader(io.BytesIO(each)).pages[0].get_contents().get_data().count(b" c\n")
        for each in (with_shapes, without)
    ]
    assert curves[0] > curves[1] + 20
