"""Token facts, their tooltip, the legend, and pointing at tokens with mouse, keys and strip."""

from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from PySide6.QtCore import QPoint, QRect, QSize, Qt
from pytestqt.qtbot import QtBot

from app.chat.answer import AnswerView
from app.chat.answer_text import TokenTable
from app.chat.stats_line import seconds
from app.chat.tokens import Legend, TokenFacts, facts_of, place_tip
from app.chat.transcript import Transcript
from app.richtext.tint_paint import TokenColors
from app.session.chats.conversation import Answer, AnswerStatus, Turn
from core.events import TYPED, Message
from tests.app.chat.watching import body_of, picture, point_at, stream
from tests.app.chat.written import FERRY, finished, token, tokens_of


def facts(written: str, index: int, drafter: str = "ngram-simple") -> TokenFacts:
    table = TokenTable()
    table.extend(tokens_of(written))
    return facts_of(table, index, drafter)


GUESSED = "Guessed by {}, then confirmed by the model."
WITHOUT = "Written by the model alone: nothing was guessed, or no guess was right."


@pytest.mark.parametrize(
    ("written", "index", "drafter", "lines"),
    [
        (
            "The{ check|list|,| and^ officer} has",
            2,
            "ngram-simple",
            (
                GUESSED.format("N-gram simple"),
                "Step 2 of 3, guess 2 of 8",
                "Its tokens: check · list · , · and · officer",
                "4 of 8 guesses accepted, 4 rejected",
                "0.48 s after the question, with 4 other tokens",
            ),
        ),
        (
            "a{ b^ c}",
            2,
            "ngram-simple",
            (
                "The model’s own token after a check of guesses, at no extra cost.",
                "Step 2 of 2",
                "Its tokens: b · c",
                "1 of 8 guesses accepted, 7 rejected",
                "0.48 s after the question, with 1 other token",
            ),
        ),
        ("a{ b^ c}", 0, "ngram-simple", (WITHOUT, "Step 1 of 2", "0.44 s after the question")),
        ("a", 0, "", (WITHOUT, "Step 1 of 1", "0.44 s after the question")),
        ("a{ b^ c}", 1, "of-tomorrow", (GUESSED.format("of-tomorrow"),)),
        ("a{ b^ c}", 1, "off", (GUESSED.format("the drafter"),)),
    ],
)
def test_a_tooltip_says_in_words_what_a_token_is(
    written: str, index: int, drafter: str, lines: tuple[str, ...]
) -> None:
    found = facts(written, index, drafter)
    assert found.lines[: len(lines)] == lines
    assert not any(line.endswith("–") or str(tokens_of(written)[index].id) in line for line in found.lines)


@pytest.mark.parametrize("step", ["{ check^ officer}", "{^ officer}"])
def test_a_tooltip_says_what_was_guessed_instead(step: str) -> None:
    table = TokenTable()
    *before, last = tokens_of("The" + step)
    table.extend([*before, replace(last, rejected=(" man at\n", " dog"))])
    for index in range(len(table)):
        told = "Guessed instead: man at · dog" in facts_of(table, index, "auto").lines
        assert told == (index > 0), "of this step alone"


def test_one_that_came_alone_after_a_rejected_draft_is_no_bonus() -> None:
    table = TokenTable()
    table.extend([token("Yes", "bonus", 3)])
    facts = facts_of(table, 0, "auto")
    assert (facts.origin, facts.class_name) == ("normal", "Alone")


def test_the_text_of_a_tooltip() -> None:
    for written, text in (("\n\n", "↵↵"), ("   ", "␣␣␣"), (" word", "word")):
        assert facts("{" + written + "}", 0).text == text
    assert len(facts("{" + "=" * 60 + "}", 0).text) == 24
    found = facts("The{ check|list}", 2)
    assert (found.text, found.class_name) == ("list", "Accepted draft")
    table = TokenTable()
    table.extend([token(""), token("🙂"), token("")])
    assert facts_of(table, 0, "").text == "part of 🙂"
    assert facts_of(table, 2, "").text == "end of answer"


def test_times_have_as_many_decimals_as_they_deserve() -> None:
    assert [seconds(value) for value in (0.41, 9.996, 24.31, 112.4)] == [
        "0.41 s",
        "10.0 s",
        "24.3 s",
        "112 s",
    ]


CARD = QSize(248, 149)
INSIDE = QRect(8, 8, 800, 500)


def test_below_or_above_where_there_is_no_room_below() -> None:
    corner = place_tip(CARD, QRect(300, 100, 30, 25), INSIDE)
    assert (corner.x(), corner.y()) == (276, 133)
    corner = place_tip(CARD, QRect(300, 400, 30, 25), INSIDE)
    assert corner.y() + CARD.height() == 400 - 8


@given(st.integers(-50, 900), st.integers(-50, 600))
def test_always_inside(x: int, y: int) -> None:
    corner = place_tip(CARD, QRect(x, y, 30, 25), INSIDE)
    assert INSIDE.contains(QRect(corner, CARD))


def test_the_source_of_a_draft_is_in_the_tooltip_and_the_legend(qtbot: QtBot) -> None:
    tokens = [
        replace(each, source=source)
        for each, source in zip(tokens_of("A{ b| c^ d}"), ("", "head", "n-gram", ""), strict=True)
    ]
    table = TokenTable()
    table.extend(tokens)
    assert facts_of(table, 1, "auto").lines[0] == GUESSED.format("Auto (trained head)")
    legend = Legend()
    qtbot.addWidget(legend)
    legend.resize(900, 34)
    assert legend.accessibleName() == "Accepted draft, Bonus, Alone"
    plain = picture(legend)
    legend.show_sources([*tokens, tokens[1]])
    sources = "Drafts of the last answer: Trained head 2, N-gram of the chat 1"
    assert legend.toolTip() == sources
    assert legend.accessibleDescription().endswith(sources)
    assert picture(legend) != plain
    legend.show_sources(tokens[:1])
    assert legend.toolTip() == ""
    assert picture(legend) == plain


@pytest.mark.parametrize("mode", ["drafts", "off"])
def test_resting_on_a_token_tells_its_facts_as_long_as_the_pointer_is_there(
    transcript: Transcript, qtbot: QtBot, mode: TokenColors
) -> None:
    transcript.set_token_colors(mode)
    stream(transcript, FERRY)
    body = body_of(transcript)
    point_at(qtbot, body, "list")
    assert not transcript.tip.isVisible()
    qtbot.waitUntil(transcript.tip.isVisible, timeout=20_000)
    facts = transcript.tip.facts
    assert (facts.text, facts.class_name) == ("list", "Accepted draft")
    assert facts.lines[:2] == (GUESSED.format("N-gram simple"), "Step 34 of 49, guess 2 of 8")
    assert transcript.rect().contains(transcript.tip.geometry())
    # The open tooltip follows the pointer.
    number = next(i for i, one in enumerate(body.table.tokens) if one.text == " officer")
    qtbot.mouseMove(body, body.token_rect(number).center().toPoint())
    assert transcript.tip.isVisible()
    assert transcript.tip.facts.text == "officer"
    qtbot.mouseMove(body, QPoint(body.width() - 2, 2))
    assert not transcript.tip.isVisible()
    point_at(qtbot, body, "list")
    qtbot.waitUntil(transcript.tip.isVisible, timeout=20_000)
    transcript.clear()
    assert not transcript.tip.isVisible()


@pytest.mark.parametrize("flag", [Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.KeypadModifier])
def test_arrow_keys_walk_through_the_tokens(
    transcript: Transcript, qtbot: QtBot, flag: Qt.KeyboardModifier
) -> None:
    stream(transcript, FERRY)
    body = body_of(transcript)
    body.setFocus()
    qtbot.keyClick(body, Qt.Key.Key_Right, flag)
    assert body.pointed_token == 0
    qtbot.keyClick(body, Qt.Key.Key_Right, flag)
    qtbot.waitUntil(transcript.tip.isVisible, timeout=20_000)
    assert transcript.tip.facts.text == "section"
    qtbot.keyClick(body, Qt.Key.Key_End)
    assert body.pointed_token == len(body.table) - 1
    qtbot.keyClick(body, Qt.Key.Key_Escape)
    assert body.pointed_token == -1
    assert not transcript.tip.isVisible()


def test_the_strip_points_at_tokens_too(transcript: Transcript, qtbot: QtBot) -> None:
    answer = stream(transcript, FERRY)
    transcript.finish_answer("t", finished())
    strip = answer.footer.strip
    number = next(i for i, one in enumerate(answer.body.table.tokens) if one.text == "list")
    qtbot.mouseMove(strip, QPoint(1, 1))
    qtbot.mouseMove(strip, strip.cell(number).center().toPoint())
    assert answer.body.pointed_token == number
    qtbot.waitUntil(transcript.tip.isVisible, timeout=20_000)
    assert transcript.tip.facts.text == "list"


@pytest.mark.parametrize("status", ["imported", "edited"])
def test_what_no_model_wrote_has_no_tooltip(
    transcript: Transcript, qtbot: QtBot, status: AnswerStatus
) -> None:
    """Neither over its text nor over its cells of the strip, and it did not come with the model's tokens."""
    written = tokens_of("{ The| ferry^ is}") if status == "edited" else []
    typed = replace(token(" never late", step=1, position=len(written)), id=TYPED)
    turn = Turn("t", Message("user", "?"), Answer((*written, typed), status), datetime.now())
    transcript.show_turns((turn,))
    answer = transcript.findChildren(AnswerView)[-1]
    if written:
        facts = answer.facts(0)
        assert facts.lines[-1] == "0.44 s after the question, with 2 other tokens"
    strip = answer.footer.strip
    qtbot.mouseMove(strip, QPoint(1, 1))
    qtbot.mouseMove(strip, strip.cell(len(written)).center().toPoint())
    assert answer.body.pointed_token == -1
    point_at(qtbot, answer.body, typed.text)
    assert answer.body.pointed_token == -1
    qtbot.wait(300)
    assert not transcript.tip.isVisible()
