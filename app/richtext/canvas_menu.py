"""Commands of a text: parts of context menus, buttons under it and at its code, links that open outside."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QMimeData, QObject, QPoint, QSize, QStringListModel, Qt, QTimer, QUrl
from PySide6.QtGui import QAction, QDesktopServices, QGuiApplication, QKeySequence, QPaintEvent
from PySide6.QtWidgets import QMenu, QWidget

from app.controls.buttons import Button, IconButton, themed_icon
from app.richtext import strings
from app.richtext.formulas import formulas
from app.richtext.html import formula_of, pasted
from app.richtext.markdown.inline import may_open
from app.richtext.markdown.piece import Piece
from app.richtext.piece_box import CODE_HEADER_PX
from app.theme.zoom import px, zoom
from core.typesetting import Formula


def open_outside(address: str) -> bool:
    """Hand `address` to the system's browser or mail program. False if it is of another kind."""
    return may_open(address) and QDesktopServices.openUrl(QUrl(address))


_COPIED_MS = 1500


class CodeCopy(Button):
    """`show_code` gives it the code and its place."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(strings.COPY_CODE, "quiet", True, parent)
        self._code = ""
        self._shown: tuple[str, float, float, float] | None = None
        self.setIcon(themed_icon("copy"))
        self.setAccessibleName(strings.COPY_CODE_NAME)
        self.setCursor(Qt.CursorShape.ArrowCursor)
        self._timer = QTimer(self, interval=_COPIED_MS, singleShot=True)
        self._timer.timeout.connect(self._reset)
        self.clicked.connect(self._copy)

    def show_code(self, code: str, right: float, header_top: float) -> None:
        """Move to the right end of the header whose top is `header_top`."""
        if (code, right, header_top, zoom()) == self._shown:
            return
        self._shown = (code, right, header_top, zoom())
        self._code = code
        size = self.sizeHint()
        top = round(header_top + (px(CODE_HEADER_PX) - size.height()) / 2) + 1
        self.setGeometry(round(right) - 7 - size.width(), top, size.width(), size.height())
        self.show()

    def _copy(self) -> None:
        to_clipboard(self._code)
        self._show("check", strings.COPIED)
        self._timer.start()

    def _reset(self) -> None:
        self._show("copy", strings.COPY_CODE)

    def _show(self, icon_name: str, text: str) -> None:
        right = self.geometry().right()
        self.setIcon(themed_icon(icon_name))
        self.setText(text)
        self.resize(self.sizeHint())
        self.move(right - self.width() + 1, self.y())


def add_copy(menu: QMenu, copy: Callable[[], object], *, enabled: bool) -> None:
    """Add Copy; `enabled` if there is a selection."""
    add_command(menu, strings.MENU_COPY, copy, QKeySequence.StandardKey.Copy).setEnabled(enabled)


def add_select_all(menu: QMenu, select_all: Callable[[], object]) -> None:
    add_command(menu, strings.MENU_SELECT_ALL, select_all, QKeySequence.StandardKey.SelectAll)


def pop_up(menu: QMenu, at: QPoint) -> None:
    """Show `menu` at the point `at` of the screen. It is deleted once it has closed."""
    menu.aboutToHide.connect(menu.deleteLater)
    menu.popup(at)


def to_clipboard(text: str, pieces: Sequence[Piece] = ()) -> None:
    """Put `text` on the clipboard, and `pieces`, which show it, as HTML.

    Formulas that were never shown are in the HTML once they are typeset, if the clipboard is still the same.
    """
    _set_clipboard(text, pieces)
    shown = (formula_of(styled) for piece in pieces for styled in piece.styles)
    awaited = [each for each in shown if each and not formulas().knows(each)]
    if awaited:
        _Again(text, pieces, awaited)


def text_data(text: str) -> QMimeData:
    """`text` for the clipboard.

    The object is made by Qt: one that Python makes (PySide 6.11) crashes the process at its end if it is on
    the clipboard of the platform “offscreen”.
    """
    model = QStringListModel([""])
    data = model.mimeData([model.index(0)])
    for each in data.formats():
        data.removeFormat(each)
    data.setText(text)
    return data


def _set_clipboard(text: str, pieces: Sequence[Piece]) -> None:
    data = text_data(text)
    if pieces:
        data.setHtml(pasted(pieces, formulas().mathml))
    QGuiApplication.clipboard().setMimeData(data)


class _Again(QObject):
    """Sets the clipboard again when all `awaited` formulas are known."""

    def __init__(self, text: str, pieces: Sequence[Piece], awaited: Sequence[Formula]) -> None:
        super().__init__(formulas())
        self._text, self._pieces, self._awaited = text, pieces, awaited
        formulas().arrived.connect(self._look)

    def _look(self) -> None:
        if not all(map(formulas().knows, self._awaited)):
            return
        if QGuiApplication.clipboard().text() == self._text:
            _set_clipboard(self._text, self._pieces)
        formulas().arrived.disconnect(self._look)
        self.deleteLater()


def add_command(
    menu: QMenu, text: str, act: Callable[[], object], key: QKeySequence.StandardKey | None = None
) -> QAction:
    """Add a command with its title and key."""
    action = menu.addAction(text)
    action.triggered.connect(lambda: act())
    if key is not None:
        action.setShortcut(QKeySequence(key))
    return action


class ActionButton(IconButton):
    """A small icon button under an answer or next to a message. Keeps its geometry while it is not revealed.

    It is drawn while the entry is hovered or the button has the focus. After copying it shows a check mark.
    """

    SIZE = QSize(26, 24)

    def __init__(self, icon_name: str, accessible_name: str, parent: QWidget | None = None) -> None:
        super().__init__(icon_name, accessible_name, False, parent, size=self.SIZE)
        self._revealed = True
        self._own_icon = icon_name
        self._timer = QTimer(self, interval=_COPIED_MS, singleShot=True)
        self._timer.timeout.connect(self._restore)

    @property
    def is_revealed(self) -> bool:
        """Whether it is drawn."""
        return self._revealed or self.hasFocus() or self._timer.isActive()

    def set_revealed(self, revealed: bool) -> None:
        """Sets whether it is drawn."""
        self._revealed = revealed
        self.update()

    def show_done(self) -> None:
        self.set_icon_name("check")
        self.setToolTip(strings.COPIED)
        self._timer.start()

    def _restore(self) -> None:
        self.set_icon_name(self._own_icon)
        self.setToolTip(self.accessibleName())

    def paintEvent(self, event: QPaintEvent) -> None:
        if self.is_revealed:
            super().paintEvent(event)
