"""Pointing at tokens with mouse, keys and strip, and the tooltip."""

from __future__ import annotations

import time

import pytest
from PySide6.QtCore import QPoint, Qt
from pytestqt.qtbot import QtBot

from app.chat.transcript import Transcript
from app.richtext.tint_paint import TintMode
from tests.app.chat.watching import body_of, point_at, stream
from tests.app.chat.written import FERRY


@pytest.mark.parametrize("mode", ["always", "hover", "never"])
def test_resting_on_a_token_tells_its_facts(transcript: Transcript, qtbot: QtBot, mode: TintMode) -> None:
    transcript.set_tint_mode(mode)
    stream(transcript, FERRY)
    body = body_of(transcript)
    started = time.monotonic()
    point_at(qtbot, body, "list")
    assert not transcript.tip.isVisible()
    qtbot.waitUntil(transcript.tip.isVisible, timeout=2000)
    assert time.monotonic() - started >= 0.14
    facts = transcript.tip.facts
    assert facts is not None
    assert (facts.text, facts.class_name) == ("list", "Accepted draft")
    assert dict(facts.rows)["Position"] == "2 of 8 drafted"
    assert dict(facts.rows)["Drafter"] == "N-gram simple"
    assert transcript.rect().contains(transcript.tip.card)


def test_the_open_tooltip_follows_the_pointer_and_goes_with_it(transcript: Transcript, qtbot: QtBot) -> None:
    stream(transcript, FERRY)
    body = body_of(transcript)
    point_at(qtbot, body, "list")
    qtbot.waitUntil(transcript.tip.isVisible, timeout=2000)
    number = next(i for i, one in enumerate(body.table.tokens) if one.text == " officer")
    rect = body.token_rect(number)
    assert rect is not None
    qtbot.mouseMove(body, rect.center().toPoint())
    assert transcript.tip.isVisible()
    assert transcript.tip.facts
    assert transcript.tip.facts.text == "officer"
    qtbot.mouseMove(body, QPoint(body.width() - 2, 2))
    assert not transcript.tip.isVisible()


def test_arrow_keys_walk_through_the_tokens(transcript: Transcript, qtbot: QtBot) -> None:
    stream(transcript, FERRY)
    body = body_of(transcript)
    body.setFocus()
    qtbot.keyClick(body, Qt.Key.Key_Right)
    assert body.pointed_token == 0
    qtbot.keyClick(body, Qt.Key.Key_Right)
    qtbot.waitUntil(transcript.tip.isVisible, timeout=2000)
    assert transcript.tip.facts
    assert transcript.tip.facts.text == "section"
    qtbot.keyClick(body, Qt.Key.Key_End)
    assert body.pointed_token == len(body.table) - 1
    qtbot.keyClick(body, Qt.Key.Key_Escape)
    assert body.pointed_token == -1
    assert not transcript.tip.isVisible()


def test_the_strip_points_at_tokens_too(transcript: Transcript, qtbot: QtBot) -> None:
    answer = stream(transcript, FERRY)
    strip = answer.footer.strip
    number = next(i for i, one in enumerate(answer.body.table.tokens) if one.text == "list")
    qtbot.mouseMove(strip, QPoint(1, 1))
    qtbot.mouseMove(strip, strip.cell(number).center().toPoint())
    assert answer.body.pointed_token == number
    qtbot.waitUntil(transcript.tip.isVisible, timeout=2000)
    assert transcript.tip.facts
    assert transcript.tip.facts.text == "list"
