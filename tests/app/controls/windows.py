"""Windows that really are shown and active before a test goes on."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot


def activate(window: QWidget, qtbot: QtBot) -> None:
    """Show `window` and wait until it has the keyboard."""
    with qtbot.waitActive(window):
        window.show()
        window.activateWindow()


def add(window: QWidget, control: QWidget) -> None:
    layout = window.layout()
    layout.addWidget(control)
    layout.activate()
    control.show()
