"""Columns: sidebar, content and inspector side by side, and what gives way when it gets narrow.

`arrange()` is the rule, pure and tested by itself: from its window's width and what the person
wants it follows where each column is. A panel that does not fit beside the content lies over it
while the person asks for it there, and goes again when the window changes size.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace
from PySide6.QtCore import QRect, Qt, Signal
from PySide6.QtGui import QKeySequence, QMouseEvent, QPainter, QPaintEvent, QResizeEvent, QShortcut
from PySide6.QtWidgets import QWidget

from app.theme.theme import Theme
from app.theme.zoom import px

SIDEBAR_PX = 240
INSPECTOR_PX = 304
# By the visual design, below these widths of the window the panel does not stand beside the content.
INSPECTOR_BESIDE_FROM_PX = 1180
SIDEBAR_BESIDE_FROM_PX = 1060


class Wants(Struct, frozen=True):
    """Which panels the person wants beside the content, and which over it while it is narrow."""

    sidebar: bool = True
    inspector: bool = True
    sidebar_over: bool = False
    inspector_over: bool = False


class Arrangement(Struct, frozen=True):
    """Left edges and widths in px. A width of 0 is a hidden panel; `*_over` lies on the content."""

    sidebar_px: int
    content_x_px: int
    content_px: int
    inspector_px: int
    sidebar_over: bool
    inspector_over: bool


def arrange(width_px: int, wants: Wants, panel_px: int = INSPECTOR_PX, *, alone: bool = False) -> Arrangement:
    """Where everything goes in a window of `width_px`; `panel_px` is how wide the right panel wants to be,
    in design pixels: larger texts need wider panels, and find room beside the content later.

    `alone`: the content has no right panel, whatever is wanted.
    """
    sidebar_beside = width_px >= px(SIDEBAR_BESIDE_FROM_PX)
    inspector_beside = width_px >= px(INSPECTOR_BESIDE_FROM_PX)
    sidebar = wants.sidebar if sidebar_beside else wants.sidebar_over
    inspector = (wants.inspector if inspector_beside else wants.inspector_over) and not alone
    left = px(SIDEBAR_PX) if sidebar and sidebar_beside else 0
    right = px(panel_px) if inspector and inspector_beside else 0
    return Arrangement(
        sidebar_px=px(SIDEBAR_PX) if sidebar else 0,
        content_x_px=left,
        content_px=width_px - left - right,
        inspector_px=px(panel_px) if inspector else 0,
        sidebar_over=sidebar and not sidebar_beside,
        inspector_over=inspector and not inspector_beside,
    )


class WindowColumns(QWidget):
    """Owns the three widgets' geometry and nothing else of them."""

    arranged = Signal(object)  # Arrangement
    uncovered = Signal()  # a panel that lay over the content went, because the person wanted it

    def __init__(
        self,
        theme: Theme,
        sidebar: QWidget,
        content: QWidget,
        inspector: QWidget,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._theme = theme
        self._sidebar, self._content, self._inspector = sidebar, content, inspector
        self._wants = Wants()
        self._panel_px = INSPECTOR_PX
        self._alone = False
        self._arrangement = arrange(self.width(), self._wants)
        self._cover = _Cover(self)
        self._cover.pressed.connect(self.close_over)
        self._escape = QShortcut(QKeySequence(Qt.Key.Key_Escape), self)
        self._escape.setEnabled(False)
        # Ambiguous while there is an answer to be stopped by the same key: first the panel goes.
        for told in (self._escape.activated, self._escape.activatedAmbiguously):
            told.connect(self.close_over)
        for widget in (sidebar, content, self._cover, inspector):
            widget.setParent(self)
        self._cover.hide()
        theme.changed.connect(self.update)
        theme.framed.connect(self._place)

    @property
    def arrangement(self) -> Arrangement:
        """How it stands."""
        return self._arrangement

    @property
    def wants(self) -> Wants:
        """What the person wants, whether there is room for it or not."""
        return self._wants

    def set_wants(self, sidebar: bool, inspector: bool) -> None:
        """Which panels stand beside the content where there is room."""
        self._want(Wants(sidebar, inspector))

    def show_sidebar(self, shown: bool) -> None:
        """As the person asks, beside or over the content."""
        if self.width() >= px(SIDEBAR_BESIDE_FROM_PX):
            self._want(replace(self._wants, sidebar=shown))
        else:
            self._want(replace(self._wants, sidebar_over=shown, inspector_over=False))
            _take_keyboard(self._sidebar)

    def show_inspector(self, shown: bool) -> None:
        """As the person asks, beside or over the content."""
        if self.width() >= px(INSPECTOR_BESIDE_FROM_PX):
            self._want(replace(self._wants, inspector=shown))
        else:
            self._want(replace(self._wants, inspector_over=shown, sidebar_over=False))
            _take_keyboard(self._inspector)

    def close_over(self) -> None:
        """A panel that lies over the content goes again."""
        if self._arrangement.sidebar_over or self._arrangement.inspector_over:
            self._want(replace(self._wants, sidebar_over=False, inspector_over=False))
            self.uncovered.emit()

    def set_panel_width(self, panel_px: int) -> None:
        """How wide the right panel wants to be from now on."""
        if panel_px != self._panel_px:
            self._panel_px = panel_px
            self._place()

    def show_alone(self, alone: bool) -> None:
        """Whether the content now has no right panel; what is wanted is kept."""
        if alone != self._alone:
            self._alone = alone
            self._place()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self._want(replace(self._wants, sidebar_over=False, inspector_over=False))
        else:
            self._place()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), self._theme.color("window"))
        painter.end()

    def _want(self, wants: Wants) -> None:
        self._wants = wants
        self._place()

    def _place(self) -> None:
        plan = arrange(self.width(), self._wants, self._panel_px, alone=self._alone)
        height = self.height()
        self._content.setGeometry(QRect(plan.content_x_px, 0, plan.content_px, height))
        self._sidebar.setGeometry(QRect(0, 0, plan.sidebar_px or px(SIDEBAR_PX), height))
        inspector_px = plan.inspector_px or px(self._panel_px)
        self._inspector.setGeometry(QRect(self.width() - inspector_px, 0, inspector_px, height))
        self._sidebar.setVisible(plan.sidebar_px > 0)
        self._inspector.setVisible(plan.inspector_px > 0)
        for panel, over in ((self._sidebar, plan.sidebar_over), (self._inspector, plan.inspector_over)):
            if over:
                panel.raise_()
        over = plan.sidebar_over or plan.inspector_over
        self._escape.setEnabled(over)
        self._cover.setGeometry(self.rect())
        self._cover.setVisible(over)
        if over:
            self._cover.stackUnder(self._sidebar if plan.sidebar_over else self._inspector)
        self._arrangement = plan
        self.arranged.emit(plan)


def _take_keyboard(panel: QWidget) -> None:
    """To the first that takes it in a panel that lies over the content: what is under it has it no more."""
    stops = (each for each in panel.findChildren(QWidget) if each.isVisible() and each.isEnabled())
    first = next((each for each in stops if each.focusPolicy() & Qt.FocusPolicy.TabFocus), None)
    if panel.isVisible() and first is not None:
        first.setFocus(Qt.FocusReason.OtherFocusReason)


class _Cover(QWidget):
    """Lies between the content and a panel over it: a click there is meant for neither."""

    pressed = Signal()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self.pressed.emit()
