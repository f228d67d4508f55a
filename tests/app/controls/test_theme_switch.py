"""Every control repaints, in its new colours, when the theme changes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from app.controls.buttons import Button, IconButton
from app.controls.choices import Popup, Segment, Switch
from app.controls.numbers import Slider, Spin
from app.controls.scroll_bar import ScrollBar
from app.controls.text_fields import TextArea
from app.controls.text_label import TextLabel
from app.theme.theme import Theme
from tests.app.controls.painting import PaintCounter, colors
from tests.app.controls.windows import activate

OPTIONS = [("a", "One"), ("b", "Two")]


def _scroll_bar() -> QWidget:
    bar = ScrollBar(Qt.Orientation.Vertical)
    bar.setRange(0, 100)
    return bar


# Each control, and a palette token that it is sure to paint.
CONTROLS: dict[str, tuple[Callable[[], QWidget], str]] = {
    "button": (lambda: Button("Restart"), "control"),
    "primary": (lambda: Button("Restart", "primary"), "accent_fill"),
    "segment": (lambda: Segment(OPTIONS), "segment_track"),
    "switch": (Switch, "fill2"),
    "slider": (lambda: Slider(0, 1, 0.1), "slider_track"),
    "popup": (lambda: Popup(OPTIONS), "control"),
    "spin": (lambda: Spin(0, 9, 1), "control"),
    "text area": (TextArea, "text_area"),
    "icon button": (lambda: IconButton("stop", "Stop"), ""),
    "label": (lambda: TextLabel("████"), "text2"),
    "scroll bar": (_scroll_bar, ""),
}


@pytest.mark.parametrize("name", CONTROLS)
def test_it_repaints(name: str, theme: Theme, qtbot: QtBot) -> None:
    make, token = CONTROLS[name]
    window = QWidget()
    qtbot.addWidget(window)
    window.resize(240, 160)
    control = make()
    QVBoxLayout(window).addWidget(control)
    activate(window, qtbot)
    counter = PaintCounter(control)
    before = control.grab().toImage()
    qtbot.wait(20)
    painted = counter.count
    theme.set_scheme("dark")
    qtbot.waitUntil(lambda: counter.count > painted)
    assert control.grab().toImage() != before
    if token:
        assert theme.color(token).name() in colors(control)
