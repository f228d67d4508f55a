"""FocusKeeper: the focus after a control vanished."""

from __future__ import annotations

from PySide6.QtCore import QObject, Qt, QTimer
from PySide6.QtWidgets import QApplication, QWidget
from shiboken6 import isValid


class FocusKeeper(QObject):
    """Gives the focus of a control of `window` that is hidden, disabled or deleted to `home`.

    Qt gives it to the next control in the Tab order, where Space or Return would press something that the
    person never chose. If `home` cannot have the focus, Qt's choice stays.
    """

    def __init__(self, window: QWidget, home: QWidget) -> None:
        super().__init__(window)
        self._window = window
        self._home = home
        application = QApplication.instance()
        assert isinstance(application, QApplication)
        application.focusChanged.connect(self._on_changed)

    def _on_changed(self, old: QWidget | None, new: QWidget | None) -> None:
        if not isValid(self._home) or not self._home.isVisible() or new is self._home:
            return
        if new is None:  # deleted, or the window is no longer active
            QTimer.singleShot(0, self, self._fill)
        if old is None or not isValid(old) or old.window() is not self._window:
            return
        vanished = not (old.isVisible() and old.isEnabled())
        if vanished and (new is None or new.window() is self._window):
            self._home.setFocus(Qt.FocusReason.OtherFocusReason)

    def _fill(self) -> None:
        """Focus `home` if nothing has the focus in the active window."""
        if isValid(self._home) and self._window.isActiveWindow() and QApplication.focusWidget() is None:
            self._home.setFocus(Qt.FocusReason.OtherFocusReason)
