"""What the tests of the chat share."""

from __future__ import annotations

import pytest
from PySide6.QtGui import QCursor
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.chat.transcript import Transcript
from app.theme.theme import Theme


@pytest.fixture
def theme(qapp: QApplication) -> Theme:
    """A light theme, whatever the machine's is."""
    return Theme("light")


@pytest.fixture
def transcript(qtbot: QtBot, theme: Theme) -> Transcript:
    """An empty transcript on the screen, and no pointer over it."""
    QCursor.setPos(5000, 5000)
    widget = Transcript(theme)
    qtbot.addWidget(widget)
    widget.resize(800, 600)
    with qtbot.waitExposed(widget):
        widget.show()
    return widget
