"""TextArea, TextLabel and the overlay scroll bar."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QMimeData, QSize, Qt
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from app.controls.text_fields import TextArea
from app.controls.text_label import TextLabel
from app.features.side_window import WindowTitles
from app.theme.theme import Theme
from tests.app.controls.windows import add


@pytest.fixture
def area(window: QWidget) -> TextArea:
    area = TextArea()
    area.setAccessibleName("System prompt")
    add(window, area)
    return area


def test_typing_is_told_as_a_whole_and_undone(area: TextArea, theme: Theme, qtbot: QtBot) -> None:
    told: list[str] = []
    area.value_changed.connect(told.append)
    area.setFocus()
    qtbot.keyClicks(area, "Hi")
    qtbot.keyClick(area, Qt.Key.Key_Return)
    qtbot.keyClicks(area, "you")
    assert area.value == "Hi\nyou"
    assert told[-1] == "Hi\nyou"
    assert len(told) == len(set(told))
    theme.set_zoom(1.5)
    while area.document().isUndoAvailable():
        area.undo()
    assert area.value == ""
    theme.set_zoom(1.0)


def test_pasted_text_loses_its_formatting(area: TextArea, qtbot: QtBot) -> None:
    rich = QMimeData()
    rich.setHtml("<b>Quote</b> the source")
    rich.setText("Quote the source")
    QApplication.clipboard().setMimeData(rich)
    area.paste()
    # The clipboard would otherwise hold a Python object beyond the interpreter's end.
    QApplication.clipboard().clear()
    assert area.value == "Quote the source"
    assert "font-weight" not in area.toHtml().replace("font-weight:400", "").split("<body")[1]


def test_a_set_text_is_told_once_and_spaced(area: TextArea) -> None:
    told: list[str] = []
    area.value_changed.connect(told.append)
    area.set_value("one\ntwo\nthree")
    area.set_value("one\ntwo\nthree")
    assert told == ["one\ntwo\nthree"]
    assert area.document().size().height() == 3 * 17


@pytest.mark.parametrize("zoom", [1.0, 1.5])
def test_a_label_of_known_width_is_as_high_as_its_lines_at_every_zoom(
    theme: Theme, qtbot: QtBot, zoom: float
) -> None:
    theme.set_zoom(zoom)
    label = TextLabel("Nothing you write leaves this computer, ever.", 12, 16, wrap=True, width_px=120)
    qtbot.addWidget(label)
    size = label.sizeHint()
    assert not label.hasHeightForWidth()
    theme.set_zoom(1.0)
    assert size == QSize(round(120 * zoom), round(3 * 16 * zoom))


def test_a_line_under_a_window_s_name_is_whole_or_in_the_tooltip(theme: Theme, qtbot: QtBot) -> None:
    titles = WindowTitles("Tables", "What the drafters have learned")
    qtbot.addWidget(titles)
    titles.resize(400, 52)
    titles.show()
    assert titles.subtitle.isVisible()
    assert titles.toolTip() == ""
    titles.resize(90, 52)
    assert not titles.subtitle.isVisible()
    assert titles.toolTip() == titles.says == "What the drafters have learned"
    titles.say("Short")
    assert titles.subtitle.isVisible()
    theme.set_zoom(2.0)
    titles.resize(40, 52)
    QApplication.processEvents()
    assert not titles.subtitle.isVisible()
    theme.set_zoom(1.0)
