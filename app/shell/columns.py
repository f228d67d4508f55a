"""Columns: sidebar, content and inspector, and which of them are hidden in a narrow window.

`arrange()` is the rule, a pure function of the window's width and the requested panels. A panel that does not
fit next to the content covers it on request, until the window's width changes.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace
from PySide6.QtCore import QRect, Qt, Signal
from PySide6.QtGui import QKeySequence, QMouseEvent, QResizeEvent, QShortcut
from PySide6.QtWidgets import QApplication, QWidget

from app.theme.sheet import set_ground
from app.theme.theme import theme
from app.theme.zoom import px

SIDEBAR_PX = 240
INSPECTOR_PX = 304
# By the visual design, panels need these window widths to be next to the content.
INSPECTOR_BESIDE_FROM_PX = 1180
SIDEBAR_BESIDE_FROM_PX = 1060


class Wants(Struct, frozen=True):
    """The panels that the person opened, next to the content or, in a narrow window, over it."""

    sidebar: bool = True
    inspector: bool = True
    sidebar_over: bool = False
    inspector_over: bool = False


class Arrangement(Struct, frozen=True):
    """Left edges and widths in px. A width of 0 is a hidden panel; `*_over`: it covers the content."""

    sidebar_px: int
    content_x_px: int
    content_px: int
    inspector_px: int
    sidebar_over: bool
    inspector_over: bool


def arrange(width_px: int, wants: Wants, panel_px: int = INSPECTOR_PX, *, alone: bool = False) -> Arrangement:
    """Returns the columns of a window of `width_px`.

    `panel_px` is the requested width of the right panel in design pixels: larger texts need wider panels,
    which then need a wider window. `alone`: the content has no right panel, whatever is requested.
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
    """Owns the geometry of the three widgets, and nothing else of them."""

    arranged = Signal(object)  # Arrangement
    uncovered = Signal()  # a panel over the content was closed by the person

    def __init__(
        self, sidebar: QWidget, content: QWidget, inspector: QWidget, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        set_ground(self, "window")
        self._sidebar, self._content, self._inspector = sidebar, content, inspector
        self._wants = Wants()
        self._panel_px = INSPECTOR_PX
        self._alone = False
        self._arrangement = arrange(self.width(), self._wants)
        self._cover = _Cover(self)
        self._cover.pressed.connect(self.close_over)
        self._escape = QShortcut(QKeySequence(Qt.Key.Key_Escape), self)
        self._escape.setEnabled(False)
        # Ambiguous while an answer can be stopped with the same key: the panel closes first.
        for signal in (self._escape.activated, self._escape.activatedAmbiguously):
            signal.connect(self.close_over)
        for widget in (sidebar, content, self._cover, inspector):
            widget.setParent(self)
        self._cover.hide()
        theme.framed.connect(self._place)

    @property
    def arrangement(self) -> Arrangement:
        return self._arrangement

    @property
    def wants(self) -> Wants:
        """The panels that the person opened, whether they fit or not."""
        return self._wants

    def set_wants(self, sidebar: bool, inspector: bool) -> None:
        """Set the panels to show next to the content if they fit."""
        self._want(Wants(sidebar, inspector))

    def show_sidebar(self, shown: bool) -> None:
        """Show or hide it at the person's request, next to or over the content."""
        if self.width() >= px(SIDEBAR_BESIDE_FROM_PX):
            self._want(replace(self._wants, sidebar=shown))
        elif not shown:
            self.close_over()
        else:
            self._want(replace(self._wants, sidebar_over=True, inspector_over=False))
            _take_keyboard(self._sidebar)

    def show_inspector(self, shown: bool) -> None:
        """Show or hide it at the person's request, next to or over the content."""
        if self.width() >= px(INSPECTOR_BESIDE_FROM_PX):
            self._want(replace(self._wants, inspector=shown))
        elif not shown:
            self.close_over()
        else:
            self._want(replace(self._wants, inspector_over=True, sidebar_over=False))
            _take_keyboard(self._inspector)

    def close_over(self) -> None:
        """Close a panel that covers the content."""
        if self._arrangement.sidebar_over or self._arrangement.inspector_over:
            self._want(replace(self._wants, sidebar_over=False, inspector_over=False))
            self.uncovered.emit()

    def set_panel_width(self, panel_px: int) -> None:
        """Set the requested width of the right panel in design pixels."""
        if panel_px != self._panel_px:
            self._panel_px = panel_px
            self._place()

    def show_alone(self, alone: bool) -> None:
        """Show the content without the right panel; the request is kept."""
        if alone != self._alone:
            self._alone = alone
            self._place()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self._want(replace(self._wants, sidebar_over=False, inspector_over=False))
        else:
            self._place()

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
    """Focus the first control of a panel over the content, since the covered one must not keep the focus."""
    stops = (each for each in panel.findChildren(QWidget) if each.isVisible() and each.isEnabled())
    first = next((each for each in stops if each.focusPolicy() & Qt.FocusPolicy.TabFocus), None)
    focused = QApplication.focusWidget()
    has_it = focused is not None and panel.isAncestorOf(focused)
    if panel.isVisible() and first is not None and not has_it:
        first.setFocus(Qt.FocusReason.OtherFocusReason)


class _Cover(QWidget):
    """Covers the content under a panel, so that a click there closes the panel and presses nothing."""

    pressed = Signal()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self.pressed.emit()
