"""CopyButton: a small button that copies what it names, and says so for a moment."""

from __future__ import annotations

from PySide6.QtCore import QTimer
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget

from app.controls.buttons.button import Button
from app.theme.theme import Theme

_SAID_MS = 1500
COPIED = "Copied"


class CopyButton(Button):
    """`set_value` says what it shows and what it copies; `name` is what it is of, for who hears it."""

    def __init__(self, theme: Theme, name: str, parent: QWidget | None = None) -> None:
        super().__init__(theme, "", small=True, parent=parent, icon_name="copy")
        self._name = name
        self._shown = self._value = ""
        self._said = QTimer(self, interval=_SAID_MS, singleShot=True)
        self._said.timeout.connect(lambda: self._say(self._shown))
        self.clicked.connect(self._copy)

    @property
    def value(self) -> str:
        """What a click copies."""
        return self._value

    def set_value(self, shown: str, value: str) -> None:
        """Show `shown`, copy `value`."""
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
        self.setText(text)
        self.setAccessibleDescription(COPIED if text == COPIED else "")
        self.updateGeometry()
        self.update()
