"""SettingField: each kind of setting gets its control, and reports values of its own type."""

from __future__ import annotations

from typing import Any

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QTextEdit
from pytestqt.qtbot import QtBot

from app.controls.choices import Switch
from app.controls.numbers import Spin
from app.controls.text_fields import TextArea
from app.controls.text_label import TextLabel
from app.fields.setting_field import SettingField
from core.settings import Setting, declared
from tests.app.controls.windows import activate

WHOLE = Setting("g.whole", "integer", "Draft length", "How many.", 8, "tokens", 1, 64)
NUMBER = Setting("g.number", "number", "Top-p", "How likely.", 1.0, "", 0.0, 1.0, True, 0.01)
CHOICE = Setting(
    "g.choice",
    "choice",
    "Drafter",
    "Who guesses.",
    "off",
    choices=("off", "on-top"),
    labels={"off": "Off", "on-top": "On top"},
    notes={"on-top": "Guesses on top."},
)
SWITCH = Setting("g.switch", "switch", "Learn", "Keeps tokens.", False)
TEXT = Setting("g.text", "text", "System prompt", "Told first.", "", maximum=1000)


def _field(setting: Setting, qtbot: QtBot, value: Any) -> tuple[SettingField, list[Any]]:
    field = SettingField(setting)
    qtbot.addWidget(field)
    field.show_value(value)
    activate(field, qtbot)
    told: list[Any] = []
    field.edited.connect(lambda key, new: told.append((key, new)))
    return field, told


def test_whole_numbers_are_stepped(qtbot: QtBot) -> None:
    field, told = _field(WHOLE, qtbot, 8)
    assert isinstance(field.control.editor, Spin)
    qtbot.keyClick(field.control.editor, Qt.Key.Key_Up)
    assert told == [("g.whole", 9)]
    assert type(told[0][1]) is int


def test_each_number_shows_its_unit(qtbot: QtBot) -> None:
    for setting in [each for each in declared() if each.unit]:
        field, _ = _field(setting, qtbot, setting.default)
        shown = [
            label for label in field.findChildren(TextLabel) if label.width() >= label.sizeHint().width()
        ]
        assert setting.unit.lower() in " ".join(label.text().lower() for label in shown), setting


def test_numbers_slide_and_show_their_value(qtbot: QtBot) -> None:
    field, told = _field(NUMBER, qtbot, 0.95)
    slider = field.control.editor
    qtbot.keyClick(slider, Qt.Key.Key_Left)
    assert told == [("g.number", pytest.approx(0.94))]
    assert field.findChild(Spin).text() == "0.94"
    qtbot.keyClick(slider, Qt.Key.Key_Home)
    assert slider.value == pytest.approx(0.01)  # 0 itself is not allowed


def test_the_number_beside_a_slider_can_be_typed(qtbot: QtBot) -> None:
    """Also one between two steps of the slider; one out of bounds is not taken."""
    field, told = _field(NUMBER, qtbot, 0.5)
    spin = field.findChild(Spin)
    assert spin.accessibleName() == "Top-p"
    for text, value in (("0.333", 0.333), ("1", 1.0)):
        spin.setFocus()
        spin.selectAll()
        qtbot.keyClicks(spin.lineEdit(), text)
        qtbot.keyClick(spin, Qt.Key.Key_Return)
        assert told[-1] == ("g.number", pytest.approx(value))
        assert field.control.editor.value == pytest.approx(value)  # type: ignore[attr-defined]
        assert spin.text() == text


def test_a_value_below_the_slider_s_first_step_is_shown_as_it_is(qtbot: QtBot) -> None:
    field, told = _field(NUMBER, qtbot, 0.005)
    spin = field.control.findChildren(Spin)[0]
    assert spin.text() == "0.005"
    assert spin.value == 0.005
    assert told == []


def test_a_refused_number_says_why_until_the_next_one(qtbot: QtBot) -> None:
    field, told = _field(WHOLE, qtbot, 8)
    spin = field.control.editor
    assert isinstance(spin, Spin)
    for typed, error in (("4.096", "two numbers"), ("65", "outside the range"), ("9", "")):
        spin.selectAll()
        qtbot.keyClicks(spin.lineEdit(), typed)
        qtbot.keyClick(spin, Qt.Key.Key_Return)
        assert error in field.error
        assert bool(error) == bool(field.error)
        assert field.error in spin.accessibleDescription()
    assert told == [("g.whole", 9)]


def test_choices_pop_up_with_their_note(qtbot: QtBot) -> None:
    field, told = _field(CHOICE, qtbot, "off")
    popup = field.control.editor
    assert popup.currentText() == "Off"
    assert field.note == ""
    qtbot.keyClick(popup, Qt.Key.Key_Down)
    assert told == [("g.choice", "on-top")]
    assert field.note == "Guesses on top."


def test_switches_switch(qtbot: QtBot) -> None:
    field, told = _field(SWITCH, qtbot, False)
    assert isinstance(field.control.editor, Switch)
    qtbot.mouseClick(field.control.editor, Qt.MouseButton.LeftButton, pos=QPoint(16, 9))
    assert told == [("g.switch", True)]


def test_texts_are_typed(qtbot: QtBot) -> None:
    field, told = _field(TEXT, qtbot, "")
    assert isinstance(field.control.editor, TextArea)
    qtbot.keyClicks(field.findChildren(QTextEdit)[0], "Hi")
    assert told == [("g.text", "H"), ("g.text", "Hi")]


@pytest.mark.parametrize(
    ("setting", "value"),
    [(WHOLE, 12), (NUMBER, 0.5), (CHOICE, "on-top"), (SWITCH, True), (TEXT, "You are careful.")],
    ids=lambda given: given.kind if isinstance(given, Setting) else "",
)
def test_showing_a_value_is_silent(setting: Setting, value: Any, qtbot: QtBot) -> None:
    field, told = _field(setting, qtbot, setting.default)
    before = field.grab().toImage()
    field.show_value(value)
    assert told == []
    assert field.grab().toImage() != before
    field.resize(300, field.minimumSizeHint().height())  # in a window with little space
    assert field.control.rect().contains(field.control.editor.geometry())


def test_help_is_a_tooltip_and_a_description(qtbot: QtBot) -> None:
    field, _ = _field(WHOLE, qtbot, 8)
    editor = field.control.editor
    assert editor.accessibleName() == "Draft length"
    assert editor.accessibleDescription() == editor.toolTip() == "How many."


def test_an_error_stands_under_the_field_until_it_is_cleared(qtbot: QtBot) -> None:
    field, _ = _field(WHOLE, qtbot, 8)
    height = field.sizeHint().height()
    field.show_error("Too long.", "Shorten it.")
    assert field.error == "Too long."
    assert field.control.editor.accessibleDescription() == "How many. Too long."
    assert field.sizeHint().height() > height
    field.clear_error()
    assert field.error == ""
    qtbot.waitUntil(lambda: field.sizeHint().height() == height)


def test_a_seed_is_written_without_separators(qtbot: QtBot) -> None:
    seed = Setting("g.seed", "integer", "Seed", "Any.", 42, "", 0, 2**31 - 1)
    field, _ = _field(seed, qtbot, 1234567)
    assert field.control.editor.text() == "1234567"  # type: ignore[attr-defined]


def test_a_number_without_bounds_is_our_bug(qtbot: QtBot) -> None:
    with pytest.raises(ValueError, match=r"g\.free has no bounds"):
        SettingField(Setting("g.free", "integer", "Free", "Any.", 0))
