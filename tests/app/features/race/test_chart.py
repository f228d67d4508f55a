"""The race's chart: whatever moment is looked at, its line runs through no word."""

from __future__ import annotations

from typing import Any

import pytest
from PySide6.QtCore import QRectF
from PySide6.QtGui import QPainter
from pytestqt.qtbot import QtBot

from app.features.race import chart as module
from app.features.race.chart import RaceChart
from app.features.race.state import Recording
from app.theme.theme import Theme
from core.events import Token


def recording(count: int, seconds: float) -> Recording:
    """Tokens that came evenly."""
    return Recording(
        tuple(Token("r", n, "w", "normal", n, n, time_s=seconds * (n + 1) / count) for n in range(count))
    )


def test_no_moment_crosses_the_names_of_the_ends(
    theme: Theme, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: dict[str, QRectF] = {}
    draw = module.draw_text

    def noted(painter: QPainter, box: QRectF, words: str, *rest: Any) -> None:
        drawn[words] = box
        draw(painter, box, words, *rest)

    monkeypatch.setattr(module, "draw_text", noted)
    chart = RaceChart(theme)
    qtbot.addWidget(chart)
    chart.resize(600, module.HEIGHT_PX)
    chart.show_race(recording(40, 7.03), recording(40, 4.01))
    names = [module.strings.at_seconds(7.03), module.strings.done_at(4.01)]
    stood: dict[str, set[float]] = {name: set() for name in names}
    for moment in range(0, 7001, 100):
        drawn.clear()
        chart.show_moment(moment / 1000)
        chart.grab()
        line = chart._at(moment / 1000, 0).x()
        for name in names:
            assert not drawn[name].left() < line < drawn[name].right(), f"{name} at {moment} ms"
            stood[name].add(drawn[name].left())
    assert all(len(places) > 1 for places in stood.values()), "no moment was near a name"
