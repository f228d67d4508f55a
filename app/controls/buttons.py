"""Button (plain, primary, danger, link), CopyButton and IconButton; Return and Enter as a click."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from PySide6.QtCore import QRect, QSize, Qt, QTimer
from PySide6.QtGui import QGuiApplication, QIcon, QIconEngine, QKeyEvent, QPainter, QPixmap
from PySide6.QtWidgets import QAbstractButton, QLabel, QPushButton, QSizePolicy, QWidget

from app.theme.icons import icon_pixmap
from app.theme.sheet import restyle
from app.theme.theme import color, theme
from app.theme.zoom import px_size


def pressed_by(button: QAbstractButton, event: QKeyEvent) -> bool:
    """Clicks `button` if `event` is Return or Enter; returns whether it was.

    Auto-repeat does not click again.
    """
    if event.key() not in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
        return False
    if not event.isAutoRepeat():
        button.click()
    return True


def in_menu(text: str) -> str:
    """Returns `text` for a menu or a button, where a single "&" would mark the next letter."""
    return text.replace("&", "&&")


def on_click(*commands: tuple[QAbstractButton, Callable[[], object]]) -> None:
    """Calls the function of each button when it is clicked, without Qt's argument."""
    for button, act in commands:
        button.clicked.connect(lambda checked=False, act=act: act())


# From the fifth on: an icon alone, the round Send, a button over a text, a text without a frame, a card, the
# header of a section.
Kind = Literal["plain", "primary", "link", "danger", "icon", "send", "floating", "quiet", "card", "section"]


class Button(QPushButton):
    """A button that the style sheet paints. Only Tab gives it the focus, and only then it has a ring.

    `icon_name` adds an icon left of the text.
    """

    def __init__(
        self,
        text: str,
        kind: Kind = "plain",
        small: bool = False,
        parent: QWidget | None = None,
        *,
        icon_name: str = "",
    ) -> None:
        super().__init__(text, parent)
        self.setProperty("kind", kind)
        self.setProperty("small", small)
        if icon_name:
            self.setIcon(themed_icon(icon_name, "danger" if kind == "danger" else "text"))
        self.setAutoDefault(False)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(text)

    def set_kind(self, kind: Kind) -> None:
        self.setProperty("kind", kind)
        restyle(self)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not pressed_by(self, event):
            super().keyPressEvent(event)


_SAID_MS = 1500
COPIED = "Copied"


class CopyButton(Button):
    """A button that copies a value; its accessible name contains `name`."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__("", small=True, parent=parent, icon_name="copy")
        self._name = name
        self._shown = self._value = ""
        self._said = QTimer(self, interval=_SAID_MS, singleShot=True)
        self._said.timeout.connect(lambda: self._say(self._shown))
        self.clicked.connect(self._copy)

    @property
    def value(self) -> str:
        return self._value

    def set_value(self, shown: str, value: str) -> None:
        """Shows `shown`; a click copies `value`."""
        if (shown, value) == (self._shown, self._value):
            return
        self._shown, self._value = shown, value
        if not self._said.isActive():
            self._say(shown)
        self.setToolTip(f"{self._name}: {value}")
        self.setAccessibleName(f"{self._name} {value}")

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self._value)
        self._say(COPIED)
        self._said.start()

    def _say(self, text: str) -> None:
        self.setText(in_menu(text))
        self.setAccessibleDescription(COPIED if text == COPIED else "")


class IconButton(Button):
    """A 28 px square with a 16 px line drawing; `checkable` makes it stay on.

    The accessible name is also the tooltip.
    """

    def __init__(
        self,
        icon_name: str,
        accessible_name: str,
        checkable: bool = False,
        parent: QWidget | None = None,
        *,
        size: QSize | None = None,
    ) -> None:
        """`size` is for buttons that are not 28 × 28 (those of an answer are 26 × 24)."""
        self._size = size or QSize(28, 28)
        super().__init__("", "icon", parent=parent)
        self.set_icon_name(icon_name)
        self.setCheckable(checkable)
        self.setAccessibleName(accessible_name)
        self.setToolTip(accessible_name)

    def set_icon_name(self, icon_name: str) -> None:
        """Changes the icon (Copy becomes a check mark)."""
        self.setIcon(themed_icon(icon_name, "text2", "text"))

    def sizeHint(self) -> QSize:
        return px_size(self._size)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()


class IconLabel(QLabel):
    """An icon in a colour of the palette."""

    def __init__(self, icon_name: str, ink: str, size_px: int = 14) -> None:
        super().__init__()
        self._size_px = size_px
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.show_icon(icon_name, ink)
        theme.changed.connect(self._draw)
        theme.zoomed.connect(self._draw)

    def show_icon(self, name: str, ink: str) -> None:
        """Show the icon `name` in the palette's colour `ink`."""
        self.name, self._ink = name, ink
        self._draw()

    def _draw(self) -> None:
        size = px_size(QSize(self._size_px, self._size_px))
        ratio = self.devicePixelRatioF()
        self.setPixmap(icon_pixmap(self.name, color(self._ink), size.width(), ratio))


def themed_icon(name: str, ink: str = "text2", ink_on: str = "", name_on: str = "") -> QIcon:
    """Returns the icon in a colour of the palette in use: `ink`, or `text3` while disabled.

    A checked button shows it in `ink_on`, or the icon `name_on`.
    """
    return QIcon(_Drawing(name, ink, ink_on or ink, name_on or name))


class _Drawing(QIconEngine):
    def __init__(self, name: str, ink: str, ink_on: str, name_on: str) -> None:
        super().__init__()
        self._given = name, ink, ink_on, name_on

    def clone(self) -> QIconEngine:
        return _Drawing(*self._given)

    def pixmap(self, size: QSize, mode: QIcon.Mode, state: QIcon.State) -> QPixmap:
        return self.scaledPixmap(size, mode, state, 1.0)

    def scaledPixmap(self, size: QSize, mode: QIcon.Mode, state: QIcon.State, scale: float) -> QPixmap:
        name, ink, ink_on, name_on = self._given
        on = state == QIcon.State.On
        used = "text3" if mode == QIcon.Mode.Disabled else ink_on if on else ink
        return icon_pixmap(name_on if on else name, color(used), min(size.width(), size.height()))

    def paint(self, painter: QPainter, rect: QRect, mode: QIcon.Mode, state: QIcon.State) -> None:
        painter.drawPixmap(rect, self.pixmap(rect.size() * painter.device().devicePixelRatio(), mode, state))
