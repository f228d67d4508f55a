"""Segment, Popup, CheckBox and Switch: choosing by mouse and by keyboard."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import QApplication, QCheckBox, QPushButton, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from app.controls.choices import CheckBox, Popup, Segment, Switch
from app.controls.sheets import OptionsSheet
from tests.app.controls.windows import activate

OPTIONS = [("always", "Always"), ("hover", "On hover"), ("never", "Never")]


@contextmanager
def _shown(widget: QWidget, qtbot: QtBot) -> Iterator[QWidget]:
    window = QWidget()
    qtbot.addWidget(window)
    QVBoxLayout(window).addWidget(widget)
    activate(window, qtbot)
    yield window


@pytest.fixture
def segment(qtbot: QtBot) -> Iterator[Segment]:
    segment = Segment(OPTIONS)
    segment.setAccessibleName("Token tint")
    with _shown(segment, qtbot):
        yield segment


def _option(segment: Segment, index: int) -> QPushButton:
    return segment.findChildren(QPushButton)[index]


def test_a_segment_tells_changes_once(segment: Segment) -> None:
    told: list[str] = []
    segment.value_changed.connect(told.append)
    segment.set_value("always")
    segment.set_value("never")
    segment.set_value("never")
    assert told == ["never"]


def test_a_segment_refuses_what_it_does_not_offer(segment: Segment) -> None:
    with pytest.raises(ValueError, match=r"sometimes.*always, hover, never"):
        segment.set_value("sometimes")
    with pytest.raises(ValueError, match="at least one"):
        Segment([])


def test_a_segment_is_a_group_of_named_option_buttons(segment: Segment) -> None:
    face = QAccessible.queryAccessibleInterface(_option(segment, 1))
    assert face.role() == QAccessible.Role.RadioButton
    assert face.text(QAccessible.Text.Name) == "On hover"
    assert face.text(QAccessible.Text.Description) == "Token tint"


@pytest.fixture
def popup(qtbot: QtBot) -> Iterator[Popup]:
    popup = Popup(OPTIONS)
    with _shown(popup, qtbot):
        yield popup


def test_a_popup_refuses_the_unknown(popup: Popup) -> None:
    popup.set_value("never")
    assert popup.value == "never"
    with pytest.raises(ValueError, match=r"sometimes.*always, hover, never"):
        popup.set_value("sometimes")
    assert popup.value == "never"


@pytest.mark.parametrize("box", [Switch, lambda: CheckBox("Tides & fog")])
def test_space_turns_a_box_and_return_does_not(box: Callable[[], QCheckBox], qtbot: QtBot) -> None:
    turned = box()
    with _shown(turned, qtbot):
        turned.setFocus()
        for key, on in ((Qt.Key.Key_Space, True), (Qt.Key.Key_Return, True), (Qt.Key.Key_Space, False)):
            qtbot.keyClick(turned, key)
            assert turned.isChecked() is on


def test_a_sheet_of_boxes_opens_with_none_framed_and_return_accepts_it(qtbot: QtBot) -> None:
    owner = QWidget()
    qtbot.addWidget(owner)
    activate(owner, qtbot)
    sheet = OptionsSheet(owner, "Export", [("With sources", True), ("With settings", False)], "Export")
    with qtbot.waitActive(sheet):
        sheet.open()
    qtbot.waitUntil(lambda: QApplication.focusWidget() is sheet)
    qtbot.keyClick(sheet, Qt.Key.Key_Tab)
    assert QApplication.focusWidget() is sheet.boxes[0]
    with qtbot.waitSignal(sheet.accepted):
        qtbot.keyClick(sheet.boxes[0], Qt.Key.Key_Return)
