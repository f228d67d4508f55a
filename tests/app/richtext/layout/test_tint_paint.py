"""Tints on the screen: wrapped runs, the three modes, the pointed step."""

from __future__ import annotations

from pytestqt.qtbot import QtBot

from app.chat.transcript import Transcript
from tests.app.chat.watching import body_of, colour, colours, picture, point_at, stream
from tests.app.chat.written import FERRY


def test_runs_wrap_with_their_lines(transcript: Transcript) -> None:
    stream(transcript, "Now{ " + "|".join(f" token{n}" for n in range(60)) + "^ end}")
    body = body_of(transcript)
    assert len(body.boxes[0].inks.runs) == 2
    assert body.line_count > 3
    lines = body.boxes[0].layout.lines
    tint = colour("accepted_tint")
    image = picture(body)
    for number in range(1, len(lines) - 1):
        assert image.pixelColor(image.width() // 2, int(lines[number].baseline) - 15).name() == tint


def test_three_modes_paint_differently(transcript: Transcript, qtbot: QtBot) -> None:
    stream(transcript, FERRY)
    body = body_of(transcript)
    tints = {colour(name) for name in ("accepted_tint", "bonus_tint")}
    assert tints <= colours(picture(body))
    transcript.set_tint_mode("hover")
    assert not tints & colours(picture(body))
    point_at(qtbot, body, "list")
    hovered = picture(body)
    assert tints <= colours(hovered)
    assert colour("accepted_hover") in colours(hovered)
    transcript.set_tint_mode("never")
    never = colours(picture(body))
    assert not tints & never
    assert colour("accepted_hover") not in never


def test_hovering_in_always_mode_outlines_the_step(transcript: Transcript, qtbot: QtBot) -> None:
    stream(transcript, FERRY)
    body = body_of(transcript)
    before = picture(body)
    point_at(qtbot, body, "list")
    after = picture(body)
    assert before != after
    assert colour("accepted_hover") in colours(after) - colours(before)


def test_a_new_answer_takes_the_mode_in_force(transcript: Transcript) -> None:
    transcript.set_tint_mode("never")
    stream(transcript, FERRY)
    body = body_of(transcript)
    assert colour("accepted_tint") not in colours(picture(body))
