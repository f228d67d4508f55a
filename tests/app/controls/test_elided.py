"""The tooltip of an elided text is its full text, in every table, list and choice, at any zoom."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, get_type_hints

import pytest
from PySide6.QtCore import QPoint
from PySide6.QtGui import QHelpEvent
from PySide6.QtWidgets import QApplication, QStyleOptionButton, QStyleOptionComboBox, QToolTip, QWidget
from pytestqt.qtbot import QtBot

from app.controls.choices import CheckBox, Popup
from app.controls.record_table import Column, RecordTable
from app.features import library
from app.features.models import window as models
from app.features.models.facts import ModelRow
from app.features.server import rows as server
from app.features.tables import rows as tables
from app.panels.chat_list import ChatList
from app.panels.chat_row import ChatRow
from app.theme.theme import Theme
from app.theme.zoom import px
from tests.app.painted import noted_words

LONG = "of the quick brown harbour pilot, who reads every tide table before the ferry leaves " * 3


def with_long_texts(kind: type) -> Any:
    """A record of `kind` whose every text is too long for its column."""
    hints = {name: hint for name, hint in get_type_hints(kind).items() if not name.startswith("_")}
    known: dict[str, object] = {
        "id": "1",
        "level": "dim",
        "share": 0.4,
        "marks": (),
        "loaded": True,
        "bar": None,
        "commands": (),
        "family_color": "text",
    }
    return kind(**{name: known.get(name, f"{name} {LONG}") for name in hints if name != "over"})


def table(columns: Sequence[Column], kind: type) -> Callable[[], QWidget]:
    def made() -> QWidget:
        shown = RecordTable[Any]("A table", columns)
        shown.show_rows([with_long_texts(kind)])
        return shown

    return made


def chats() -> QWidget:
    shown, now = ChatList(), datetime(2026, 11, 20, 12)
    passage = f"{LONG} ferry {LONG}"
    marks = ((len(LONG) + 1, len(LONG) + 6),)
    shown.set_results("Found", [ChatRow("1", f"Title {LONG}", now, passage=passage, marks=marks)], "", now)
    return shown


LISTS = {
    "tables": table(tables.COLUMNS, tables.TableRow),
    "requests": table(server.COLUMNS, server.RequestRow),
    "documents": table(library.COLUMNS, library.LibraryRow),
    "chats": chats,
    "models": table(models.COLUMNS, ModelRow),
}


def tooltip(widget: QWidget, position: QPoint) -> str:
    target = widget.childAt(position) or widget
    local = target.mapFrom(widget, position)
    QToolTip.hideText()
    event = QHelpEvent(QHelpEvent.Type.ToolTip, local, target.mapToGlobal(local))
    QApplication.sendEvent(target, event)
    return QToolTip.text()


@pytest.mark.parametrize("zoom", [1.0, 1.5])
@pytest.mark.parametrize("name", LISTS)
def test_each_elided_text_is_the_tooltip_there(name: str, zoom: float, qtbot: QtBot, theme: Theme) -> None:
    theme.set_zoom(zoom)
    try:
        widget = LISTS[name]()
        qtbot.addWidget(widget)
        widget.resize(px(1100), px(200))
        with qtbot.waitExposed(widget):
            widget.show()
        with noted_words() as noted:
            widget.grab()
        elided = [word for word in noted if word.text.endswith("…") and len(word.text) > 2]
        assert elided
        for word in elided:
            shown = tooltip(widget, word.area.center().toPoint())
            assert word.text.rstrip("…") in shown, word.text
            assert LONG.strip() in shown
    finally:
        QToolTip.hideText()
        theme.set_zoom(1.0)


def test_a_text_that_fits_leaves_the_rows_own_tooltip(qtbot: QtBot) -> None:
    shown = RecordTable[library.LibraryRow]("Documents", library.COLUMNS)
    qtbot.addWidget(shown)
    shown.show_rows([library.LibraryRow("1", "Harbour", "M4", (), "9", "today", "today")])
    shown.resize(1100, 200)
    with qtbot.waitExposed(shown):
        shown.show()
    place = shown.visualRect(shown.index_of("1")).center()
    assert tooltip(shown, shown.viewport().mapTo(shown, QPoint(60, place.y()))) == "Harbour"
    QToolTip.hideText()


@pytest.mark.parametrize("kind", [CheckBox, lambda text: Popup([("long", text)])])
def test_a_choice_that_is_too_narrow_has_its_text_as_the_tooltip(
    kind: Callable[[str], QWidget], qtbot: QtBot
) -> None:
    choice = kind("Tides & fog & a long quay")
    qtbot.addWidget(choice)
    choice.setToolTip("Help")
    choice.show()
    for width_px, shown in ((90, "Tides & fog & a long quay"), (400, "Help")):
        choice.resize(width_px, choice.height())
        assert choice.width() == width_px
        assert tooltip(choice, QPoint(50, choice.height() // 2)) == shown
        option = QStyleOptionButton() if isinstance(choice, CheckBox) else QStyleOptionComboBox()
        choice.initStyleOption(option)  # type: ignore[attr-defined]
        painted = option.text if isinstance(option, QStyleOptionButton) else option.currentText
        assert painted.endswith("…") is (width_px == 90)
    QToolTip.hideText()
