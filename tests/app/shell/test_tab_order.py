"""Tab through the whole window: every control that can be seen, once, in reading order, and back."""

from __future__ import annotations

from itertools import pairwise

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QPushButton, QScrollBar, QWidget
from shiboken6 import isValid

from app.panels.groups import groups
from app.shell.window import MainWindow
from core.events import Attachment
from tests.app.stage import asked, press, ready, until

TAB = Qt.Key.Key_Tab
_MOST = 300
_ROW_PX = 8  # Controls of one row may have different heights.


async def asked_twice(window: MainWindow) -> None:
    """Two questions, one with a document, and something being written."""
    await ready(window)
    window.views.composer.attach(Attachment("rules.md", "The pilot waits for the tide."))
    await asked(window, "write 12")
    await asked(window, "write 9")
    window.views.composer.set_text("And then?")


async def walk(window: MainWindow, back: bool = False) -> list[QWidget]:
    """Who has the keyboard, key by key, until it is where it began."""
    held = Qt.KeyboardModifier.ShiftModifier if back else Qt.KeyboardModifier.NoModifier
    window.views.composer.edit.setFocus()
    found: list[QWidget] = []
    for _ in range(_MOST):
        focus = QApplication.focusWidget()
        assert focus, found[-1]
        if found and focus is found[0]:
            return found
        found.append(focus)
        await press(window, Qt.Key.Key_Backtab if back else TAB, held)
    raise AssertionError(f"Tab never comes round: {[_name(each) for each in found[-9:]]}")


def _name(widget: QWidget) -> str:
    return f"{type(widget).__name__} {widget.accessibleName()!r}"


def stops(root: QWidget) -> set[QWidget]:
    """What Tab should reach: all that can be seen and take it. A spin's text belongs to the spin."""
    found = set()
    for widget in root.findChildren(QWidget):
        takes_tab = widget.focusPolicy() & Qt.FocusPolicy.TabFocus and widget.focusProxy() is None
        if takes_tab and widget.isVisible() and widget.isEnabled() and widget.window() is root:
            found.add(widget)
    return found


async def test_every_control_once_and_back(window: MainWindow) -> None:
    await asked_twice(window)
    there = await walk(window)
    names = [_name(each) for each in there]
    assert len(set(there)) == len(there), names
    missing = {_name(each) for each in stops(window) - set(there)}
    assert not missing
    assert not [name for name in names if name.endswith(" ''")]
    back = await walk(window, back=True)
    assert [_name(each) for each in back[1:]] == names[:0:-1]


@pytest.mark.sweep
async def test_the_parts_of_the_window_follow_each_other_as_they_are_read(window: MainWindow) -> None:
    await asked_twice(window)
    views = window.views
    for group in reversed(groups()):  # the fields of a section are made when it opens
        views.inspector.open_section(group.name)
    parts = {
        "sidebar": views.sidebar,
        "header": views.header,
        "transcript": views.transcript,
        "composer": views.composer,
        "inspector": views.side,
    }
    order: list[str] = []
    places: dict[str, list[tuple[int, int]]] = {name: [] for name in parts}
    walked = await walk(window)
    for bar in views.inspector.findChildren(QScrollBar):
        bar.setValue(0)
    for focus in walked:
        name = next((name for name, part in parts.items() if part.isAncestorOf(focus)), "other")
        if not order or order[-1] != name:
            order.append(name)
        if name in places:
            center = focus.mapTo(window, focus.rect().center())
            places[name].append((center.y(), center.x()))
    # It began in the composer and has come round to it.
    assert order == ["composer", "inspector", "sidebar", "header", "transcript"]
    for (above, left), (below, right) in pairwise(places["inspector"]):
        assert below > above or (above - below < _ROW_PX and right > left)


async def test_a_control_that_is_deleted_after_tab_takes_nothing_else_with_it(window: MainWindow) -> None:
    """PySide marked the search field's clear button as deleted together with it."""
    search = window.views.sidebar.search
    extra = QPushButton("Extra", window.views.sidebar)
    QWidget.setTabOrder(extra, search)
    await press(window, TAB)
    extra.deleteLater()
    await until(lambda: not isValid(extra))
    search.setText("tide")
    assert search.clear_action.isVisible()
