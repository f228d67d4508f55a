"""Text that runs from right to left, or has no spaces: where it stands, and that nothing is clipped."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.chat.transcript import Transcript
from app.chat.user_message import UserMessage
from app.controls.shapes import is_rtl
from app.richtext.markdown.blocks import BlockSplitter
from app.richtext.markdown.markdown import parse_block, pieces_of
from app.richtext.markdown.piece import Piece, Span
from app.richtext.piece_box import PieceBox
from app.richtext.piece_layout import PieceLayout
from app.richtext.table_layout import TableLayout
from app.richtext.text_canvas import MARGIN_PX, TextCanvas
from app.richtext.text_style import answer_style
from app.richtext.tint_paint import InkTable, marks_of
from core.events import Message
from tests.app.glyphs import ink_of, misplaced

HEBREW = "המחיר של iPhone הוא 250 שקל."
ARABIC = "سعر الهاتف 250 ريالا، وسعر iPhone أعلى (بكثير)."
WIDE = "| " + " | ".join(f"heading{n}" for n in range(14)) + " |\n" + "|---" * 14 + "|\n"
WIDE += "| " + " | ".join(f"cell number {n}" for n in range(14)) + " |\n"
SCENES = {
    "hebrew": f"# כותרת\n\n{HEBREW}\n\n- {HEBREW}\n- [x] {HEBREW * 4}\n\n1. {HEBREW}\n\n> {HEBREW * 3}\n\n"
    "English שלום text.",
    "hebrew table": f"| שם | מחיר |\n|---|---|\n| {HEBREW * 3} | 250 |\n| Tea<br>green | 3 | ליחידה |\n",
    "arabic": f"{ARABIC * 5}\n\n1. {ARABIC}\n2. `code` {ARABIC}\n",
    "chinese": "设$x$为正数，**重要：**请注意“术语”的意思。" * 8
    + "\n\n| 项目 | 价格 |\n|---|---|\n| 绿茶<br>热 | 3 |\n",
    "japanese": "# 議事録\n\n「日本語」の文章は、句読点（。）や小さい「ゃゅょっ」を行の始めに置かない。" * 4,
    "korean": "**핵심(core)**은 $\\frac{1}{2}mv^2$입니다. " * 10,
    "math": "$$\\sum_{i=1}^{n} \\frac{\\hat{x}_i^2}{\\sqrt{2}\\pi} = "
    "\\begin{pmatrix} a & b \\\\ c & d \\end{pmatrix}$$\n\n"
    "$\\mathbf{x}^\\top \\in \\mathbb{R}^n$, $\\mathcal{L}(\\theta)$, $\\int_0^\\infty e^{-x^2}dx$",
    "table": "| Item | Price |\n|---|---|\n| Tea<br>green | 3 | per cup |\n\n" + WIDE,
}  # fmt: skip


def pieces(source: str) -> list[Piece]:
    splitter = BlockSplitter()
    blocks = [*splitter.feed(source), *splitter.finish()]
    return [piece for block in blocks for piece in parse_block(source, block.start, block.end)]


@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.parametrize("width", [260, 720])
def test_no_glyph_is_clipped_or_painted_over(scene: str, width: int, qtbot: QtBot) -> None:
    canvas = TextCanvas()
    qtbot.addWidget(canvas)
    canvas.height_for(width)
    canvas.set_pieces(pieces(SCENES[scene]))
    assert misplaced(canvas, width) == []
    for box in canvas.boxes:
        assert len({line.baseline - line.top for line in box.layout.lines}) <= 1  # one grid, whatever fonts


def test_a_sentence_from_the_right(qapp: QApplication) -> None:
    layout = PieceLayout(HEBREW, answer_style(), 400)
    (line,) = layout.lines
    (period,) = layout.rects(len(HEBREW) - 1, len(HEBREW))
    others = [rect for place in range(len(HEBREW) - 1) for rect in layout.rects(place, place + 1)]
    assert all(period.right() <= rect.left() + 0.5 for rect in others)
    assert line.right == pytest.approx(400)
    (iphone,) = layout.rects(HEBREW.index("iPhone"), HEBREW.index("iPhone") + 6)
    (first,) = layout.rects(0, 5)
    assert iphone.right() < first.left()


def test_each_hard_line_has_its_own_direction(qapp: QApplication) -> None:
    layout = PieceLayout(f"{HEBREW}\nIn English.\n(12)", answer_style(), 400)
    assert [line.chunk.rtl for line in layout.lines] == [True, False, True]
    (item,) = pieces(f"- `code` {HEBREW}\n")
    assert PieceLayout(item.text, answer_style(), 400, item.styles).lines[0].chunk.rtl
    assert [is_rtl(text) for text in ("12 - ", "a א", "(א) a", "中 א")] == [None, False, True, False]
    assert not any(line.chunk.rtl for line in PieceLayout(HEBREW, answer_style(), 400, rtl=False).lines)


pytestmark = pytest.mark.usefixtures("qapp")  # fonts need an application

texts = st.lists(
    st.sampled_from(
        ["שלום", "abc", "12", "עולם", " ", ", ", "(", ")", "3.5", "مرحبا", "-", "中文", "🙂", "x. "]
    ),
    min_size=1,
    max_size=14,
).map("".join)


@settings(max_examples=150)
@given(texts, st.integers(0, 30), st.integers(0, 30))
def test_characters_cover_their_line_once(text: str, start: int, end: int) -> None:
    layout = PieceLayout(text, answer_style(), 5_000)
    (line,) = layout.lines
    low, high = sorted((min(start, len(text)), min(end, len(text))))
    chosen = sum(rect.width() for rect in layout.rects(low, high))
    others = sum(r.width() for a, b in ((0, low), (high, len(text))) if a < b for r in layout.rects(a, b))
    assert chosen + others == pytest.approx(line.line.naturalTextWidth(), abs=1 + 0.5 * len(text))
    ink = ink_of(line)
    for rect in layout.rects(0, len(text)):
        assert rect.right() <= 5_000.5
        assert ink.isEmpty() or ink.left() >= line.left - 3
    for place, character in enumerate(text):
        found = layout.rects(place, place + 1)
        if character.isalnum() and character.isascii() and found:
            assert line.char_at(found[0].center().x(), between=False) == place


@pytest.mark.parametrize(
    "text", [HEBREW, ARABIC, "מה המחיר של הכרטיס לרכבת", "hello שלום", "שלום hello\nabc"]
)
@pytest.mark.parametrize("column", [300, 720])
def test_a_message_is_whole_in_its_bubble(transcript: Transcript, text: str, column: int) -> None:
    transcript.add_user("t", Message("user", text))
    item = transcript.findChild(UserMessage)
    item.resize(column + 16, item.height_for(column))
    assert misplaced(item.body, item.body.width() - 2 * MARGIN_PX) == []
    widest = max(ink_of(line).width() for box in item.body.boxes for line in box.layout.lines)
    assert widest <= item.body.width() - 2 * MARGIN_PX <= widest + 20


def test_markers_and_rules_stand_where_the_text_starts(qapp: QApplication) -> None:
    (item,) = pieces(f"12. {HEBREW}\n")
    box = PieceBox(item, 0, 400)
    assert (box.left, box.rtl) == (0, True)
    assert box.right < 400
    assert box.text_left + box.layout.lines[0].right == pytest.approx(box.right)
    (with_code,) = pieces(f"- `code` {HEBREW}\n")
    assert PieceBox(with_code, 0, 400).rtl
    (english,) = pieces("12. English\n")
    assert (PieceBox(english, 0, 400).left, PieceBox(english, 0, 400).right) == (400 - box.right, 400)


def test_the_first_column_of_a_right_to_left_table_is_at_the_right(qapp: QApplication) -> None:
    (piece,) = pieces(SCENES["hebrew table"])
    layout = TableLayout(piece, answer_style(14, 21), 700)
    places = [piece.text.index(word) for word in ("שם", "מחיר", "ליחידה")]
    rects = [layout.rects(place, place + 1)[0] for place in places]
    assert [rect.left() for rect in rects] == sorted((rect.left() for rect in rects), reverse=True)
    for place, rect in zip(places, rects):
        line = layout.lines[layout.line_near(rect.center().x(), rect.center().y())]
        assert line.char_at(rect.center().x(), between=False) == place


@pytest.mark.parametrize("text", [HEBREW, "abc שלום def"])
def test_tints_lie_under_their_tokens(qapp: QApplication, text: str) -> None:
    layout, inks = PieceLayout(text, answer_style(), 400), InkTable()
    word = text.index(" ") + 1
    end = text.index(" ", word)
    inks.extend(text, [Span(0, 0, word), Span(1, word, end), Span(2, end, len(text))],
                [("normal", 0), ("accepted", 1), ("normal", 2)])  # fmt: skip
    marks = marks_of(layout, inks, 0)
    (rect,) = layout.rects(word, end)
    # A tint in running text is wider than its token by a fixed overhang on each side, and by nothing else.
    overhang_px = layout.style.tint.overhang
    tinted = marks.accepted.boundingRect()
    assert tinted.left() == pytest.approx(rect.left() - overhang_px, abs=0.1)
    assert tinted.right() == pytest.approx(rect.right() + overhang_px, abs=0.1)


STARTS = "、。，．：；！？）」』】》〉〕ゃゅょっャュョッー々…’”"
ENDS = "（「『【《〈〔‘“"


@settings(max_examples=60)
@given(
    st.text("汉字文章日本語のであいう、。，！？（）「」『』ゃっー0a", min_size=30, max_size=120),
    st.integers(80, 300),
)
def test_lines_break_by_kinsoku(text: str, width: int) -> None:
    layout = PieceLayout(text, answer_style(), width)
    for last, line in pairwise(layout.lines):
        # A run of such marks, or of letters and figures, that is longer than a line has to break somewhere.
        before = text[: line.start]
        if not set(text[last.start : last.end]) - set("0a"):
            continue
        if text[line.start] in STARTS and any(c not in STARTS + ENDS for c in before[-4:]):
            continue_run = all(c in STARTS + ENDS for c in before[-1:])
            assert continue_run, (text, line.start)


def test_a_wide_table_scrolls_sideways(qtbot: QtBot) -> None:
    canvas = TextCanvas()
    qtbot.addWidget(canvas)
    canvas.resize(416, canvas.height_for(400))
    canvas.set_pieces(pieces(WIDE))
    (box,) = canvas.boxes
    assert box.most_scroll > 300
    words = [line for line in box.layout.lines if "heading" in box.piece.text[line.start : line.end]]
    assert len(words) == 14  # no word is broken
    last = box.piece.text.index("heading13")
    assert canvas.rects_of(0, last, last + 1)[0].left() > 416
    at = QPointF(50, box.top + 5)
    for _ in range(40):
        wheel = QWheelEvent(at, at, QPoint(), QPoint(-120, 0), Qt.MouseButton.NoButton,
                            Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False)  # fmt: skip
        canvas.wheelEvent(wheel)
    rect = canvas.rects_of(0, last, last + 1)[0]
    assert 0 < rect.left() < 400
    place = canvas.place_at(rect.center(), between=False)
    assert place.char == last
    down = QWheelEvent(at, at, QPoint(), QPoint(0, -120), Qt.MouseButton.NoButton,
                       Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False)  # fmt: skip
    canvas.wheelEvent(down)
    assert not down.isAccepted()  # the transcript's


def test_a_persons_lines_have_their_own_direction(qtbot: QtBot) -> None:
    canvas = TextCanvas((14.5, 21))
    qtbot.addWidget(canvas)
    canvas.set_pieces(pieces_of(f"{HEBREW}\nabc"))
    assert [line.chunk.rtl for line in canvas.boxes[0].layout.lines] == [True, False]
