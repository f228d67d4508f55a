"""Press: Return and Enter press a button as Space does; Qt leaves them to dialogs and default buttons."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QAbstractButton


def pressed_by(button: QAbstractButton, event: QKeyEvent) -> bool:
    """Click `button` if `event` is Return or Enter; whether the event is done with.

    A key that is held down presses once.
    """
    if event.key() not in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
        return False
    if not event.isAutoRepeat():
        button.click()
    return True
