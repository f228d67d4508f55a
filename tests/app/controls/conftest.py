"""An active window for one control."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from tests.app.controls.windows import activate


@pytest.fixture
def window(qtbot: QtBot) -> QWidget:
    """An active window for `add()`."""
    window = QWidget()
    qtbot.addWidget(window)
    QVBoxLayout(window)
    window.resize(300, 200)
    activate(window, qtbot)
    return window
