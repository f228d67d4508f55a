"""Tables: columns that fit, and the way between characters and pixels."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytestqt.qtbot import QtBot

from app.chat.transcript import Transcript
from app.richtext.markdown.markdown import parse_block
from app.richtext.table_layout import TableLayout, share
from app.richtext.text_style import answer_style
from tests.app.chat.watching import body_of, point_at, stream
from tests.app.chat.written import finished

SOURCE = (
    "| Berth | Notes |\n|:--|--:|\n| North | "
    + "only with a pilot on board " * 12
    + "| \n| South | daily |\n"
)


def layout_of(width: float) -> TableLayout:
    (piece,) = parse_block(SOURCE, 0, len(SOURCE))
    return TableLayout(piece, answer_style(14, 21), width)


def test_a_long_cell_wraps_and_the_others_keep_their_width(qtbot: QtBot) -> None:
    layout = layout_of(400)
    assert layout.table_width <= 400
    first = [line for line in layout.lines if layout.text[line.start : line.end] == "North"]
    assert len(first) == 1
    assert len(layout.lines) > 8
    assert len(layout.rules) == 2
    assert layout.height > 6 * 21


@pytest.mark.parametrize("width", [90, 400, 2000])
def test_every_character_is_found_where_it_is(qtbot: QtBot, width: float) -> None:
    layout = layout_of(width)
    for place, character in enumerate(layout.text):
        if character.isspace():
            continue
        (rect,) = layout.rects(place, place + 1)
        line = layout.lines[layout.line_near(rect.center().x(), rect.center().y())]
        assert line.char_at(rect.center().x(), between=False) == place


def test_numbers_stand_at_the_right(qtbot: QtBot) -> None:
    layout = layout_of(2000)
    ends = [line.right for line in layout.lines if line.left > 60]
    assert max(ends) - min(ends) < 1


widths = st.lists(
    st.tuples(st.floats(1, 900), st.floats(1, 300)).map(lambda p: (max(p), min(p))), min_size=1, max_size=9
)


@given(widths, st.floats(60, 1200))
def test_shares_fit_and_starve_nobody(columns: list[tuple[float, float]], room: float) -> None:
    natural, least = [n for n, _ in columns], [low for _, low in columns]
    given_ = share(room, natural, least)
    assert sum(given_) <= room + 0.01
    assert all(got <= want + 0.01 for got, want in zip(given_, natural))
    if sum(least) <= room:
        assert all(got >= low - 0.01 for got, low in zip(given_, least))


def test_tokens_are_known_and_copied_text_is_a_table(transcript: Transcript, qtbot: QtBot) -> None:
    stream(transcript, "| a | b |\n|--|--|\n| one | {two| three^ four} |\n\nEnd.")
    transcript.finish_answer("t", finished())
    body = body_of(transcript)
    point_at(qtbot, body, " three")
    qtbot.waitUntil(transcript.tip.isVisible, timeout=20_000)
    assert transcript.tip.facts.class_name == "Accepted draft"
    body.select_all()
    assert transcript.selected_text() == "a\tb\none\ttwo three four\n\nEnd."
