"""Commands of a text: context menu, buttons under it and of its code blocks, links that open outside."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, QPointF, QSize, Qt, QTimer, QUrl
from PySide6.QtGui import QAction, QDesktopServices, QFontMetricsF, QGuiApplication, QKeySequence, QPaintEvent
from PySide6.QtWidgets import QMenu, QWidget

from app.controls.buttons import IconButton, PaintedButton
from app.controls.shapes import draw_box
from app.richtext import strings
from app.richtext.markdown.inline import may_open
from app.richtext.piece_box import CODE_HEADER_PX
from app.theme.fonts import ui_font
from app.theme.icons import icon_pixmap
from app.theme.theme import theme
from app.theme.zoom import area_of, height_of, painter_on, px, px_size, ratio_of, width_of, zoom

if TYPE_CHECKING:
    from app.richtext.text_canvas import TextCanvas


def open_outside(address: str) -> bool:
    """Hand `address` to the system's browser or mail program. False if it is of another kind."""
    return may_open(address) and QDesktopServices.openUrl(QUrl(address))


_COPIED_MS = 1500
_HEIGHT_PX = 24
_PAD_PX = 7
_ICON_PX = 16
_GAP_PX = 5


class CodeCopy(PaintedButton):
    """`show_code` gives it the code and its place."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(5, parent)
        self._code = ""
        self._shown: tuple[str, float, float, float] | None = None
        self.setText(strings.COPY_CODE)
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

    def sizeHint(self) -> QSize:
        widest = max(
            QFontMetricsF(ui_font(11.5)).horizontalAdvance(text)
            for text in (strings.COPY_CODE, strings.COPIED)
        )
        return px_size(QSize(int(widest + 2 * _PAD_PX + _ICON_PX + _GAP_PX + 0.999), _HEIGHT_PX))

    def _copy(self) -> None:
        to_clipboard(self._code)
        self.setText(strings.COPIED)
        self._timer.start()

    def _reset(self) -> None:
        self.setText(strings.COPY_CODE)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        if self.isDown() or self.underMouse():
            draw_box(painter, area_of(self), 5, theme.color("fill2"))
        color = theme.color("text2")
        metrics = QFontMetricsF(ui_font(11.5))
        left = width_of(self) - _PAD_PX - metrics.horizontalAdvance(self.text()) - _GAP_PX - _ICON_PX
        name = "check" if self.text() == strings.COPIED else "copy"
        icon = icon_pixmap(name, color, _ICON_PX, ratio_of(self))
        painter.drawPixmap(QPointF(int(left), (height_of(self) - _ICON_PX) // 2), icon)
        painter.setPen(color)
        painter.setFont(ui_font(11.5))
        area = area_of(self)
        area.setLeft(int(left) + _ICON_PX + _GAP_PX)
        painter.drawText(area, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, self.text())


def canvas_menu(canvas: TextCanvas, at: QPointF) -> QMenu:
    """The menu for `canvas` at the point `at`; the caller shows it and deletes it."""
    menu = QMenu(canvas)
    add_copy(menu, canvas.copy, enabled=bool(canvas.copied_text))
    if canvas.quote:
        _add(menu, strings.MENU_QUOTE, canvas.quote).setEnabled(bool(canvas.copied_text))
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
    _add(menu, strings.MENU_SELECT_ALL, select_all, QKeySequence.StandardKey.SelectAll)


def pop_up(menu: QMenu, at: QPoint) -> None:
    """Show `menu` at the point `at` of the screen. It is deleted once it has closed."""
    menu.aboutToHide.connect(menu.deleteLater)
    menu.popup(at)


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
