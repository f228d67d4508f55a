"""The legend: 34 high, all three classes, the hint only where it fits."""

from __future__ import annotations

from pytestqt.qtbot import QtBot

from app.chat.token_strip import Legend
from app.theme.theme import Theme
from tests.app.chat.watching import colours, picture


def test_marks_and_words(qtbot: QtBot) -> None:
    theme = Theme("light")
    legend = Legend(theme)
    qtbot.addWidget(legend)
    legend.resize(700, legend.sizeHint().height())
    assert legend.height() == 34
    assert legend.accessibleName() == "Accepted draft, Bonus, Alone"
    seen = colours(picture(legend))
    for name in ("accepted_tint", "accepted_line", "bonus_tint", "bonus_line"):
        assert theme.color(name).name() in seen


def test_the_hint_goes_first_when_it_is_narrow(qtbot: QtBot) -> None:
    legend = Legend(Theme("light"))
    qtbot.addWidget(legend)
    legend.resize(330, 34)
    narrow = picture(legend)
    edge = {narrow.pixelColor(x, y).name() for x in (*range(8), *range(322, 330)) for y in range(34)}
    assert len(edge) == 1
