"""The modifier keys of an event, without the flags that name the key's place on the keyboard."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QInputEvent

_MODIFIER = Qt.KeyboardModifier
# macOS sets the keypad's flag for arrow keys. `QKeyEvent.matches` ignores the same two flags.
_PLACE = _MODIFIER.KeypadModifier | _MODIFIER.GroupSwitchModifier


def held(event: QInputEvent) -> Qt.KeyboardModifier:
    """The modifier keys held during `event`. Use this instead of `event.modifiers()`."""
    return event.modifiers() & ~_PLACE
