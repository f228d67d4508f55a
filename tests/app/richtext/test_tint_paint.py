"""Tints: inks, runs and joins; on the screen: wrapped runs, the three modes, the pointed step."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytestqt.qtbot import QtBot

from app.chat.answer_text import TokenTable, spans_of
from app.chat.transcript import Transcript
from app.richtext.markdown.piece import segments_of
from app.richtext.tint_paint import InkTable
from core.events import Token
from tests.app.chat.watching import body_of, colour, colours, enlarged, picture, point_at, stream
from tests.app.chat.written import FERRY, finished, token, tokens_of


def test_runs_wrap_with_their_lines(transcript: Transcript) -> None:
    stream(transcript, "Now{ " + "|".join(f" token{n}" for n in range(60)) + "^ end}")
    body = body_of(transcript)
    assert len(body.boxes[0].inks.runs) == 2
    lines = body.boxes[0].layout.lines
    assert len(lines) > 3
    tint = colour("accepted_tint")
    image = picture(body)
    for number in range(1, len(lines) - 1):
        assert image.pixelColor(image.width() // 2, int(lines[number].baseline) - 15).name() == tint


def test_each_meaning_of_the_colors_paints_differently(transcript: Transcript, qtbot: QtBot) -> None:
    stream(transcript, FERRY)
    body = body_of(transcript)
    tints = {colour(name) for name in ("accepted_tint", "bonus_line")}
    assert tints <= colours(enlarged(body))
    transcript.finish_answer("t", finished())
    assert not tints & colours(enlarged(body))
    point_at(qtbot, body, "list")
    hovered = colours(enlarged(body))
    assert tints <= hovered
    assert colour("accepted_hover") in hovered
    transcript.set_token_colors("off")
    off = colours(enlarged(body))
    assert not tints & off
    assert colour("accepted_hover") not in off


def inks_of(tokens: list[Token]) -> tuple[str, InkTable]:
    table, inks = TokenTable(), InkTable()
    text = table.extend(tokens)
    spans = list(spans_of(segments_of(range(len(text))), table))
    inks.extend(text, spans, [(table[s.token].origin, table[s.token].step) for s in spans])
    return text, inks


def runs_of(written: str) -> list[str]:
    text, inks = inks_of(tokens_of(written))
    return [
        f"{'[' if run.joined_left else '('}{text[run.start : run.end]}{']' if run.joined_right else ')'}"
        for run in inks.runs
    ]


@pytest.mark.parametrize(
    ("written", "runs"),
    [
        ("who{ runs| its^ four} routes", ["(runs its)", "(four)"]),
        ("a{ b| c}", ["(b c)"]),  # a leading space is not in the run
        ("{ met^res} for", ["(met]", "[res)"]),  # they meet inside a word
        ("sailing{,| and^ depart}ure", ["[, and)", "(depart]"]),
        ("{ a| b}{ c| d}", ["(a b)", "(c d)"]),
        ("{def|:\n|    return| 1\n\n}", ["(def:)", "(return 1)"]),
        ("{ \n|  ^\n\n}", []),
    ],
)
def test_a_run_is_of_one_class_and_step_and_of_one_line(written: str, runs: list[str]) -> None:
    assert runs_of(written) == runs


def test_a_token_over_a_line_break_has_an_ink_on_each_line() -> None:
    text, inks = inks_of([token("a\n    b", "accepted")])
    assert [text[ink.start : ink.end] for ink in inks.inks] == ["a", "b"]
    assert len(inks.runs) == 2


def test_tokens_without_text_do_not_break_a_run() -> None:
    bytes_of_emoji = [
        token("", "accepted"),
        token("", "accepted"),
        token("🙂", "accepted"),
        token("日", "accepted"),
    ]
    text, inks = inks_of([token(" x", "accepted"), *bytes_of_emoji])
    assert [(run.start, run.end) for run in inks.runs] == [(1, 4)]
    assert text[1:4] == "x🙂日"


words = st.builds(
    token,
    st.sampled_from(["", "a", " b", "\n", " ", "c\n  d", "…", " e "]),
    st.sampled_from(["accepted", "bonus", "normal"]),
    st.integers(1, 3),
)


@given(st.lists(words, max_size=14))
def test_runs_hold_every_tinted_ink_once_and_no_white_space_at_their_ends(tokens: list[Token]) -> None:
    text, inks = inks_of(tokens)
    held = [number for run in inks.runs for number in range(run.first, run.last + 1)]
    assert held == [number for number, ink in enumerate(inks.inks) if ink.origin != "normal"]
    for run in inks.runs:
        shown = text[run.start : run.end]
        assert shown == shown.strip()
        assert shown
        assert "\n" not in shown
        assert {(inks.inks[n].origin, inks.inks[n].step) for n in range(run.first, run.last + 1)} == {
            (run.origin, run.step)
        }
    inked = {place for ink in inks.inks for place in range(ink.start, ink.end)}
    assert all(text[place].isspace() for place in set(range(len(text))) - inked)


@given(st.lists(words, max_size=12), st.data())
def test_growing_gives_what_starting_anew_gives(tokens: list[Token], data: st.DataObject) -> None:
    _, whole = inks_of(tokens)
    table, grown = TokenTable(), InkTable()
    at = 0
    while at < len(tokens):
        size = data.draw(st.integers(1, 4))
        table.extend(tokens[at : at + size])
        at += size
        text = table.text
        resume = grown.inks[-1].token if grown.inks else 0
        grown.cut(text, resume)
        spans = list(spans_of(segments_of(range(len(text))), table, resume))
        grown.extend(text, spans, [(table[s.token].origin, table[s.token].step) for s in spans])
    assert grown.inks == whole.inks
    assert grown.runs == whole.runs


def test_lookup_by_place_and_by_token() -> None:
    text, inks = inks_of(tokens_of("one{ two| three^ four} five"))
    start, end = text.index("three"), text.index(" five")
    assert [text[run.start : run.end] for run in inks.runs_between(start, end)] == ["two three", "four"]
    assert [text[ink.start : ink.end] for ink in inks.inks_between(start, end)] == ["three", "four"]
    (number,) = inks.numbers_of(2)
    run = inks.run_of(number)
    assert text[run.start : run.end] == "two three"
    assert inks.run_of(0) is None
