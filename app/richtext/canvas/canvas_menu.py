"""The context menu of a text: Copy, Quote, commands for the link or code under the pointer, Select All."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF
from PySide6.QtGui import QAction, QGuiApplication, QKeySequence
from PySide6.QtWidgets import QMenu

from app.richtext.canvas import strings
from app.richtext.canvas.open_link import open_outside

if TYPE_CHECKING:
    from app.richtext.canvas.text_canvas import TextCanvas


def canvas_menu(canvas: TextCanvas, at: QPointF) -> QMenu:
    """The menu for `canvas` at the point `at`; the caller shows it and deletes it."""
    menu = QMenu(canvas)
    add_copy(menu, canvas.copy, enabled=bool(canvas.copied_text))
    if canvas.quotable:
        quoted = _add(menu, strings.MENU_QUOTE, canvas.quote_requested.emit)
        quoted.setEnabled(bool(canvas.copied_text))
    code, link = canvas.code_at(at), canvas.link_at(at)
    if code:
        _add(menu, strings.MENU_COPY_CODE, lambda: to_clipboard(code))
    if link:
        _add(menu, strings.MENU_OPEN_LINK, lambda: open_outside(link))
        _add(menu, strings.MENU_COPY_LINK, lambda: to_clipboard(link))
    add_select_all(menu, canvas.select_all)
    return menu


def add_copy(menu: QMenu, copy: Callable[[], object], *, enabled: bool) -> None:
    """Add Copy; `enabled` if there is a selection."""
    _add(menu, strings.MENU_COPY, copy, QKeySequence.StandardKey.Copy).setEnabled(enabled)


def add_select_all(menu: QMenu, select_all: Callable[[], object]) -> None:
    """Add Select All."""
    _add(menu, strings.MENU_SELECT_ALL, select_all, QKeySequence.StandardKey.SelectAll)


def to_clipboard(text: str) -> None:
    """Put `text` on the clipboard."""
    QGuiApplication.clipboard().setText(text)


def _add(
    menu: QMenu, text: str, act: Callable[[], object], key: QKeySequence.StandardKey | None = None
) -> QAction:
    action = menu.addAction(text)
    action.triggered.connect(lambda: act())
    if key is not None:
        action.setShortcut(QKeySequence(key))
    return action
