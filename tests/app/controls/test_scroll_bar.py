"""Overlay scroll bars stand for whatever bar their area has now."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QScrollArea, QScrollBar, QWidget
from pytestqt.qtbot import QtBot

from app.controls.scroll_bar import OverlayScrollBar


@pytest.fixture
def area(qtbot: QtBot) -> QScrollArea:
    area = QScrollArea()
    area.setFrameShape(QFrame.Shape.NoFrame)
    qtbot.addWidget(area)
    page = QWidget()
    page.resize(150, 900)
    area.setWidget(page)
    area.resize(200, 300)
    return area


def test_it_moves_what_it_stands_for_and_follows_it(area: QScrollArea, qtbot: QtBot) -> None:
    bar = OverlayScrollBar(area)
    area.show()
    assert bar.isVisible()
    assert bar.maximum() == area.verticalScrollBar().maximum() == 600
    bar.setValue(40)
    assert area.verticalScrollBar().value() == 40
    area.verticalScrollBar().setValue(70)
    assert bar.value() == 70
    area.resize(240, 500)
    assert (bar.maximum(), bar.height(), bar.geometry().right()) == (400, 500, 240 - 2)
    area.resize(200, 901)
    assert not bar.isVisible()


def test_it_outlives_the_bar_it_stood_for(area: QScrollArea, qtbot: QtBot) -> None:
    bar = OverlayScrollBar(area)
    area.show()
    area.setVerticalScrollBar(QScrollBar(Qt.Orientation.Vertical))  # deletes the one before
    area.resize(240, 500)
    assert bar.height() == 500
    bar.setValue(40)
    assert area.verticalScrollBar().value() == 40
