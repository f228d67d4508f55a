"""Input events: the modifier keys, and the start of a drag."""

from __future__ import annotations

from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QInputEvent, QMouseEvent
from PySide6.QtWidgets import QApplication

_MODIFIER = Qt.KeyboardModifier
# macOS sets the keypad's flag for arrow keys. `QKeyEvent.matches` ignores the same two flags.
_PLACE = _MODIFIER.KeypadModifier | _MODIFIER.GroupSwitchModifier


def held(event: QInputEvent) -> Qt.KeyboardModifier:
    """The modifier keys held during `event`, without the flags that name the key's place on the keyboard.

    Use this instead of `event.modifiers()`.
    """
    return event.modifiers() & ~_PLACE


class DragStart:
    """Detects that a pressed left button is moved far enough for a drag. Gets a widget's mouse events."""

    def __init__(self) -> None:
        self._pressed_at: QPointF | None = None

    def press(self, event: QMouseEvent) -> None:
        self._pressed_at = event.position()

    def release(self) -> None:
        self._pressed_at = None

    def begins(self, event: QMouseEvent) -> bool:
        """Whether this move begins a drag; True once for each press."""
        start = self._pressed_at
        if start is None or not event.buttons() & Qt.MouseButton.LeftButton:
            return False
        if (event.position() - start).manhattanLength() < QApplication.startDragDistance():
            return False
        self._pressed_at = None
        return True
