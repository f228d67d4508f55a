"""Slider and Spin: numbers by mouse and by keyboard, inside their bounds."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QLocale, QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from app.controls.numbers import Slider, Spin
from app.theme.theme import Theme
from tests.app.controls.windows import add


@pytest.fixture
def slider(window: QWidget) -> Slider:
    slider = Slider(0.0, 2.0, 0.05)
    add(window, slider)
    slider.setFixedWidth(216)  # 200 px of way for the knob's centre
    return slider


def test_a_slider_jumps_to_the_pointer_and_follows_it(slider: Slider, qtbot: QtBot) -> None:
    told: list[float] = []
    slider.value_changed.connect(told.append)
    qtbot.mousePress(slider, Qt.MouseButton.LeftButton, pos=QPoint(108, 9))
    qtbot.mouseMove(slider, QPoint(158, 9))
    qtbot.mouseMove(slider, QPoint(600, 9))
    qtbot.mouseRelease(slider, Qt.MouseButton.LeftButton, pos=QPoint(600, 9))
    qtbot.mouseMove(slider, QPoint(20, 9))
    assert told == [1.0, 1.5, 2.0]


def test_a_slider_keeps_a_value_between_its_steps(slider: Slider, qtbot: QtBot) -> None:
    slider.set_value(0.73)
    assert slider.value == 0.73
    qtbot.keyClick(slider, Qt.Key.Key_Right)
    assert slider.value == pytest.approx(0.80)


def test_a_slider_stays_inside_and_tells_only_changes(slider: Slider) -> None:
    told: list[float] = []
    slider.value_changed.connect(told.append)
    slider.set_value(9.0)
    slider.set_value(2.0)
    slider.set_value(-1.0)
    assert told == [2.0, 0.0]


def test_a_slider_whose_step_does_not_divide_still_reaches_the_end(window: QWidget, qtbot: QtBot) -> None:
    slider = Slider(0.0, 1.0, 0.3)
    add(window, slider)
    qtbot.keyClick(slider, Qt.Key.Key_End)
    assert slider.value == 1.0


def test_a_slider_without_room_is_our_bug(qapp: QApplication) -> None:
    with pytest.raises(ValueError, match="minimum < maximum"):
        Slider(1.0, 1.0, 0.1)


@pytest.fixture
def spin(window: QWidget) -> Spin:
    spin = Spin(1, 131072, 1)
    add(window, spin)
    spin.set_value(1024)
    return spin


def _type(spin: Spin, qtbot: QtBot, text: str) -> None:
    spin.setFocus()
    spin.selectAll()
    if text.isascii():
        qtbot.keyClicks(spin.lineEdit(), text)
    else:
        spin.lineEdit().insert(text)  # as an input method; QTest has no such keys


def test_a_spin_writes_thousands_apart(spin: Spin) -> None:
    assert spin.text() == "1,024"
    spin.set_grouped(False)
    assert spin.text() == "1024"


def test_a_spin_counts_typed_numbers_when_they_are_done(spin: Spin, qtbot: QtBot) -> None:
    told: list[float] = []
    spin.value_changed.connect(told.append)
    _type(spin, qtbot, "2,048")
    assert told == []
    assert spin.value == 1024
    qtbot.keyClick(spin, Qt.Key.Key_Return)
    assert told == [2048]
    spin.set_factor(2)
    _type(spin, qtbot, "512")
    qtbot.keyClick(spin, Qt.Key.Key_Up)
    assert spin.value == 1024


def test_a_spin_takes_fractions(window: QWidget, qtbot: QtBot) -> None:
    spin = Spin(0.0, 1.0, 0.1, whole=False)
    add(window, spin)
    spin.set_value(0.1)
    for shown in ("0.2", "0.3", "0.4"):
        qtbot.keyClick(spin, Qt.Key.Key_Up)
        assert spin.text() == shown  # tenths are added exactly
        assert spin.value == float(shown)


def test_an_open_minimum_is_never_reached(window: QWidget, qtbot: QtBot) -> None:
    spin = Spin(0.0, 1.0, 0.01, whole=False, open_minimum=True)
    add(window, spin)
    for value in (0.02, 0.01, 0.005):
        spin.set_value(value)
        qtbot.keyClick(spin, Qt.Key.Key_Down)
        assert spin.value == min(value, 0.01)
    refusals: list[str] = []
    spin.refused.connect(refusals.append)
    _type(spin, qtbot, "0")
    qtbot.keyClick(spin, Qt.Key.Key_Return)
    assert refusals == ["“0” is outside the range above 0 up to 1."]
    assert spin.value == 0.005


def test_a_refusal_is_reported_once_and_withdrawn_by_the_next_number(spin: Spin, qtbot: QtBot) -> None:
    refusals: list[str] = []
    spin.refused.connect(refusals.append)
    told: list[float] = []
    spin.value_changed.connect(told.append)
    _type(spin, qtbot, "1.5")
    qtbot.keyClick(spin, Qt.Key.Key_Return)
    spin.clearFocus()
    assert refusals == ["“1.5” is not a whole number."]
    assert spin.text() == "1,024"
    _type(spin, qtbot, "1024")
    spin.clearFocus()
    assert refusals[1:] == [""]
    _type(spin, qtbot, "200,000")
    qtbot.keyClick(spin, Qt.Key.Key_Return)
    assert refusals[2:] == ["“200,000” is outside the range from 1 to 131,072."]
    _type(spin, qtbot, "x12")
    assert spin.text() == "12"  # letters are not typed
    assert told == []


@pytest.mark.parametrize("name", ["en_US", "de_DE", "ar_EG"])
def test_a_spin_uses_the_notation_of_the_region(name: str, window: QWidget, qtbot: QtBot) -> None:
    spin = Spin(0, 131072, 1)
    add(window, spin)
    spin.setLocale(QLocale(name))
    for value in (0, 7, 4096, 131072):
        spin.set_value(value)
        assert spin.text() == QLocale(name).toString(value)
        shown = spin.text()
        spin.set_value(1)
        _type(spin, qtbot, shown)
        qtbot.keyClick(spin, Qt.Key.Key_Return)
        assert spin.value == value


@pytest.mark.parametrize("kind", ["slider", "spin"])
def test_a_wheel_that_scrolls_the_panel_changes_nothing(
    kind: str, slider: Slider, spin: Spin, qtbot: QtBot
) -> None:
    control: QWidget = slider if kind == "slider" else spin
    control.setFocus()
    before = (slider.value, spin.value)
    wheel = QWheelEvent(
        QPointF(5, 5),
        QPointF(control.mapToGlobal(QPoint(5, 5))),
        QPoint(0, 0),
        QPoint(0, 120),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(control, wheel)
    assert (slider.value, spin.value) == before
    assert not wheel.isAccepted()


def test_a_number_s_field_grows_as_the_zoom_does(theme: Theme, qtbot: QtBot) -> None:
    spin = Spin(0, 1_048_576, 1)
    qtbot.addWidget(spin)
    before = spin.sizeHint().width()
    assert before > 40
    theme.set_zoom(1.5)
    larger = spin.sizeHint().width()
    theme.set_zoom(1.0)
    assert abs(larger - 1.5 * before) <= 6
