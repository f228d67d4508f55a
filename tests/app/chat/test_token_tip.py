"""The tooltip's place: 8 px below, above if there is no room, always inside."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QRect, QSize

from app.chat.token_tip import place_tip

CARD = QSize(248, 149)
INSIDE = QRect(8, 8, 800, 500)


def test_below() -> None:
    corner = place_tip(CARD, QRect(300, 100, 30, 25), INSIDE)
    assert (corner.x(), corner.y()) == (276, 133)


def test_above_when_there_is_no_room_below() -> None:
    corner = place_tip(CARD, QRect(300, 400, 30, 25), INSIDE)
    assert corner.y() + CARD.height() == 400 - 8


@given(st.integers(-50, 900), st.integers(-50, 600))
def test_always_inside(x: int, y: int) -> None:
    corner = place_tip(CARD, QRect(x, y, 30, 25), INSIDE)
    assert INSIDE.contains(QRect(corner, CARD))
