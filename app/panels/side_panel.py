"""SidePanel: the right column with the settings or the document, selected by a tab in its header.

Its width depends on the tab.
"""

from __future__ import annotations

from typing import Literal

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QStackedWidget, QWidget

from app.controls.buttons import IconButton
from app.controls.choices import Segment
from app.panels import document_tab, inspector, strings
from app.panels.document_tab import DocumentTab
from app.panels.inspector import Inspector
from app.theme.measures import STRETCH, column_of, row_of, set_fixed_height
from app.theme.sheet import set_ground

HEADER_PX = 52

Tab = Literal["settings", "document"]


class SidePanel(QWidget):
    """`tab_changed` reports every change, by a person or not.

    `close_button` is for the panel over the content, where it covers the button that opened it.
    """

    tab_changed = Signal(str)  # "settings" or "document"

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        set_ground(self, "panel", "left")
        self.inspector = Inspector()
        self.document = DocumentTab()
        self.tabs = Segment(strings.SIDE_TABS)
        self.tabs.setAccessibleName(strings.SIDE_TABS_NAME)
        header = QWidget()
        set_fixed_height(header, HEADER_PX)
        set_ground(header, "", "bottom")
        self.close_button = IconButton("x", strings.CLOSE_PANEL)
        self.close_button.hide()
        row_of(self.tabs, STRETCH, self.close_button, margins=(16, 0, 12, 1), parent=header)
        self._pages = QStackedWidget()
        self._pages.addWidget(self.inspector)
        self._pages.addWidget(self.document)
        column_of(header, (self._pages, 1), parent=self)
        self.tabs.value_changed.connect(self._show_tab)

    @property
    def tab(self) -> str:
        return self.tabs.value

    @property
    def width_px(self) -> int:
        """The requested width in design pixels."""
        return document_tab.WIDTH_PX if self.tab == "document" else inspector.WIDTH_PX

    def show_tab(self, tab: Tab) -> None:
        self.tabs.set_value(tab)

    def _show_tab(self, tab: str) -> None:
        self._pages.setCurrentWidget(self.document if tab == "document" else self.inspector)
        self.tab_changed.emit(tab)
