"""FocusRing: the 3 px ring around the focused control. FocusKeeper: the focus after a control vanished.

A widget cannot paint outside itself, and controls are exactly as large as designed, so the ring is a
sibling above the control: a child of the window, or of the page inside a scroll area so that it scrolls with
it. It gets no events and no focus.

The ring serves keyboard users: a mouse click gives focus without a ring; the first key press shows it. It is
for controls that paint themselves; the style sheet frames the others.
"""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, QRectF, Qt, QTimer
from PySide6.QtGui import QFocusEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractScrollArea, QApplication, QWidget
from shiboken6 import isValid

from app.theme.theme import color
from app.theme.zoom import px

RING_PX = 3

_KEEPS = (
    Qt.FocusReason.PopupFocusReason,
    Qt.FocusReason.ActiveWindowFocusReason,
    Qt.FocusReason.MenuBarFocusReason,
)


class FocusRing(QObject):
    """Lives as long as `control`."""

    def __init__(self, control: QWidget, radius_px: float) -> None:
        super().__init__(control)
        self.control = control
        self._radius_px = radius_px
        self._wanted = False
        self._overlay: _Overlay | None = None
        self._watched: list[QWidget] = []
        control.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        # A control and its neighbours still get events while it is destroyed, and an exception in an event
        # filter ends the process.
        if not isValid(self.control):
            return False
        kind = event.type()
        if watched is self.control:
            if kind == QEvent.Type.FocusIn and isinstance(event, QFocusEvent):
                if event.reason() not in _KEEPS:
                    self._wanted = event.reason() != Qt.FocusReason.MouseFocusReason
                if self._wanted:
                    self._show()
            elif kind == QEvent.Type.KeyPress and self.control.hasFocus():
                self._wanted = True  # the key can also come from a child, or from the window
                self._show()
            elif kind in (QEvent.Type.FocusOut, QEvent.Type.Hide):
                self._hide()
        if kind in (QEvent.Type.Move, QEvent.Type.Resize, QEvent.Type.LayoutRequest):
            self._place()
        return False

    def _show(self) -> None:
        if self._overlay is not None:
            return
        host = _host_of(self.control)
        if host is None:
            return
        self._overlay = _Overlay(self._radius_px, host)
        # A sibling is not deleted with the control.
        self.control.destroyed.connect(self._overlay.deleteLater)
        widget: QWidget | None = self.control
        while widget is not None and widget is not host:
            if widget is not self.control:
                widget.installEventFilter(self)
                self._watched.append(widget)
            widget = widget.parentWidget()
        self._place()
        self._overlay.show()
        self.control.update()

    def _hide(self) -> None:
        overlay, self._overlay = self._overlay, None
        for widget in self._watched:
            if isValid(widget):
                widget.removeEventFilter(self)
        self._watched.clear()
        if overlay is not None and isValid(overlay):
            overlay.hide()
            overlay.deleteLater()
        if isValid(self.control):
            self.control.update()

    def _place(self) -> None:
        overlay = self._overlay
        host = overlay.parentWidget() if overlay is not None and isValid(overlay) else None
        if overlay is None or host is None:
            return
        origin = self.control.mapTo(host, QPoint(0, 0))
        inside = QRect(origin, self.control.size())
        overlay.setGeometry(inside.adjusted(-RING_PX, -RING_PX, RING_PX, RING_PX))
        overlay.raise_()


class _Overlay(QWidget):
    """Paints the ring and nothing else."""

    def __init__(self, radius_px: float, host: QWidget) -> None:
        super().__init__(host)
        self._radius_px = radius_px
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(color("focus"), RING_PX))
        half = RING_PX / 2
        radius = px(self._radius_px) + half
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(half, half, -half, -half), radius, radius)


def _host_of(control: QWidget) -> QWidget | None:
    """Returns the parent of the ring; None for a control that is a window."""
    widget = None if control.isWindow() else control.parentWidget()
    while widget is not None and not widget.isWindow():
        viewport = widget.parentWidget()
        area = viewport.parentWidget() if viewport is not None else None
        if isinstance(area, QAbstractScrollArea) and area.viewport() is viewport:
            return widget
        widget = viewport
    return widget


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
