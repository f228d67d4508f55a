"""Segment, Popup and Switch: choosing by mouse and by keyboard."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import QApplication, QRadioButton, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot
from shiboken6 import delete

from app.controls.choices import Popup, Segment, Switch
from app.theme.theme import Theme
from tests.app.controls.painting import pixel
from tests.app.controls.windows import activate

OPTIONS = [("always", "Always"), ("hover", "On hover"), ("never", "Never")]


@contextmanager
def _shown(widget: QWidget, qtbot: QtBot) -> Iterator[QWidget]:
    """The control in an active window that lives as long as the block."""
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


def _radio(segment: Segment, index: int) -> QRadioButton:
    return segment.findChildren(QRadioButton)[index]


def test_a_segment_starts_with_its_first_option(segment: Segment) -> None:
    assert segment.value == "always"
    assert segment.height() == 24


def test_a_segment_takes_clicks_anywhere_on_an_option(segment: Segment, qtbot: QtBot) -> None:
    with qtbot.waitSignal(segment.value_changed) as told:
        qtbot.mouseClick(_radio(segment, 1), Qt.MouseButton.LeftButton, pos=QPoint(3, 10))
    assert told.args == ["hover"]
    assert segment.value == "hover"


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ([Qt.Key.Key_Right], "hover"),
        ([Qt.Key.Key_Right, Qt.Key.Key_Right], "never"),
        ([Qt.Key.Key_End], "never"),
        ([Qt.Key.Key_End, Qt.Key.Key_Left], "hover"),
        ([Qt.Key.Key_End, Qt.Key.Key_Home], "always"),
    ],
)
def test_a_segment_moves_by_keys(segment: Segment, qtbot: QtBot, keys: list[Qt.Key], expected: str) -> None:
    _radio(segment, 0).setFocus(Qt.FocusReason.TabFocusReason)
    for key in keys:
        qtbot.keyClick(QApplication.focusWidget(), key)
    assert segment.value == expected


def test_a_segment_goes_on_without_an_option_that_is_destroyed(segment: Segment, qtbot: QtBot) -> None:
    told: list[str] = []
    segment.value_changed.connect(told.append)
    delete(_radio(segment, 0))
    assert not segment.grab().isNull()
    qtbot.mouseClick(_radio(segment, 1), Qt.MouseButton.LeftButton)
    segment.set_value("hover")
    segment.setAccessibleName("Tint")
    assert told == ["never", "hover"]
    with pytest.raises(ValueError, match="“always” is not one of hover, never"):
        segment.set_value("always")


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


def test_a_segment_is_a_group_of_named_radio_buttons(segment: Segment) -> None:
    face = QAccessible.queryAccessibleInterface(_radio(segment, 1))
    assert face.role() == QAccessible.Role.RadioButton
    assert face.text(QAccessible.Text.Name) == "On hover"
    assert face.text(QAccessible.Text.Description) == "Token tint"


def test_a_segment_paints_the_pill_under_its_choice(segment: Segment, theme: Theme) -> None:
    first, last = _radio(segment, 0), _radio(segment, 2)
    assert pixel(segment, first.x() + 5, 12) == theme.color("segment_on")
    assert pixel(segment, last.x() + 5, 12) == theme.color("segment_track")
    segment.set_value("never")
    assert pixel(segment, first.x() + 5, 12) == theme.color("segment_track")
    assert pixel(segment, last.x() + 5, 12) == theme.color("segment_on")


@pytest.fixture
def popup(qtbot: QtBot) -> Iterator[Popup]:
    popup = Popup(OPTIONS)
    with _shown(popup, qtbot):
        yield popup


def test_a_popup_moves_by_keys(popup: Popup, qtbot: QtBot) -> None:
    told: list[str] = []
    popup.value_changed.connect(told.append)
    popup.setFocus()
    qtbot.keyClick(popup, Qt.Key.Key_Down)
    qtbot.keyClick(popup, Qt.Key.Key_End)
    qtbot.keyClick(popup, Qt.Key.Key_Home)
    qtbot.keyClick(popup, Qt.Key.Key_N)
    assert told == ["hover", "never", "always", "never"]


def test_a_popup_opens_and_takes_a_click(popup: Popup, qtbot: QtBot) -> None:
    popup.setFocus()
    qtbot.keyClick(popup, Qt.Key.Key_Space)
    view = popup.view()
    qtbot.waitUntil(view.isVisible)
    row = view.visualRect(popup.model().index(2, 0))
    with qtbot.waitSignal(popup.value_changed) as told:
        qtbot.mouseMove(view.viewport(), row.center())
        qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=row.center())
    assert told.args == ["never"]
    qtbot.waitUntil(lambda: not view.isVisible())


def test_an_open_popup_paints_its_rows_in_the_theme(popup: Popup, theme: Theme, qtbot: QtBot) -> None:
    theme.set_scheme("dark")
    popup.showPopup()
    view = popup.view()
    qtbot.waitUntil(view.isVisible)
    row = view.visualRect(popup.model().index(2, 0))
    assert pixel(view.viewport(), row.right() - 2, row.center().y()) == theme.color("tip")
    popup.hidePopup()


def test_a_popup_is_as_high_as_designed_and_refuses_the_unknown(popup: Popup) -> None:
    assert popup.height() == 24
    popup.set_value("never")
    assert popup.value == "never"
    with pytest.raises(ValueError, match=r"sometimes.*always, hover, never"):
        popup.set_value("sometimes")
    assert popup.value == "never"


def test_a_switch_toggles_by_mouse_and_keys(theme: Theme, qtbot: QtBot) -> None:
    switch = Switch()
    told: list[bool] = []
    switch.toggled.connect(told.append)
    with _shown(switch, qtbot):
        qtbot.mouseClick(switch, Qt.MouseButton.LeftButton, pos=QPoint(28, 9))
        qtbot.keyClick(switch, Qt.Key.Key_Space)
        qtbot.keyClick(switch, Qt.Key.Key_Return)
        assert told == [True, False, True]
        assert (switch.width(), switch.height()) == (32, 18)
        assert pixel(switch, 6, 9) == theme.color("accent_fill")
        assert QAccessible.queryAccessibleInterface(switch).role() == QAccessible.Role.CheckBox
