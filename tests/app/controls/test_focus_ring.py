"""FocusRing: drawn around the control that the keyboard reached, wherever it moves."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QPoint, QRect, Qt
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot
from shiboken6 import isValid

from app.controls.buttons import PaintedButton
from app.theme.theme import Theme
from tests.app.controls.painting import pixel
from tests.app.controls.windows import activate


@pytest.fixture
def window(qtbot: QtBot) -> QWidget:
    window = QWidget()
    qtbot.addWidget(window)
    window.resize(200, 160)
    activate(window, qtbot)
    return window


def _rings(host: QWidget) -> list[QWidget]:
    """The overlays laid on `host`."""
    children = host.findChildren(QWidget, options=Qt.FindChildOption.FindDirectChildrenOnly)
    return [child for child in children if type(child).__name__ == "_Overlay" and not child.isHidden()]


class _Painted(PaintedButton):
    def paintEvent(self, event: QPaintEvent) -> None:
        """Paints nothing: only the ring is looked at."""


def _button(parent: QWidget, x: int = 40, y: int = 40) -> QWidget:
    button = _Painted(7, parent)
    button.setGeometry(QRect(x, y, 60, 28))
    button.show()
    return button


def test_the_keyboard_shows_it_three_pixels_outside(theme: Theme, window: QWidget, qtbot: QtBot) -> None:
    button = _button(window)
    button.setFocus(Qt.FocusReason.TabFocusReason)
    [ring] = _rings(window)
    assert ring.geometry() == button.geometry().adjusted(-3, -3, 3, 3)
    assert pixel(window, button.x() - 2, button.geometry().center().y()) == theme.color("focus")


def test_a_click_gives_focus_without_it_and_a_key_brings_it(window: QWidget, qtbot: QtBot) -> None:
    button = _button(window)
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    assert button.hasFocus()
    assert _rings(window) == []
    qtbot.keyClick(button, Qt.Key.Key_Space)
    assert len(_rings(window)) == 1


def test_it_leaves_with_the_focus(window: QWidget, qtbot: QtBot) -> None:
    first, second = _button(window), _button(window, y=90)
    first.setFocus(Qt.FocusReason.TabFocusReason)
    second.setFocus(Qt.FocusReason.TabFocusReason)
    [ring] = _rings(window)
    assert ring.geometry().center() == second.geometry().center()
    second.hide()
    assert all(ring.geometry().center() != second.geometry().center() for ring in _rings(window))


def test_it_follows_the_control_and_what_holds_it(window: QWidget, qtbot: QtBot) -> None:
    holder = QWidget(window)
    holder.setGeometry(10, 10, 150, 80)
    holder.show()
    button = _button(holder, 20, 20)
    button.setFocus(Qt.FocusReason.TabFocusReason)
    button.move(24, 22)
    holder.move(30, 50)
    [ring] = _rings(window)
    assert ring.geometry().topLeft() == QPoint(30 + 24 - 3, 50 + 22 - 3)


def test_a_control_may_die_while_it_is_drawn(theme: Theme, window: QWidget, qtbot: QtBot) -> None:
    button = _button(window)
    button.setFocus(Qt.FocusReason.TabFocusReason)
    button.setParent(None)
    button.deleteLater()
    qtbot.waitUntil(lambda: _rings(window) == [])
    theme.set_scheme("dark")


def test_its_surroundings_may_move_while_a_control_is_destroyed(window: QWidget, qtbot: QtBot) -> None:
    holder = QWidget(window)
    holder.setGeometry(10, 10, 150, 80)
    holder.show()
    spin = _button(holder)
    spin.setFocus(Qt.FocusReason.TabFocusReason)
    assert len(_rings(window)) == 1
    moved: list[bool] = []

    def move() -> None:
        """The ring still watches the holder, and of its control only an empty wrapper is left."""
        moved.append(isValid(spin))
        holder.resize(160, 90)

    spin.destroyed.connect(move)
    QCoreApplication.postEvent(holder, QEvent(QEvent.Type.LayoutRequest))
    spin.deleteLater()
    qtbot.waitUntil(lambda: moved == [False])
    assert holder.width() == 160
    qtbot.waitUntil(lambda: _rings(window) == [])
