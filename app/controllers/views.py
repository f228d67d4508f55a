"""Views: the widgets of the window, for controllers, and actions on several of them."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtWidgets import QStackedWidget, QWidget

from app.chat.bars import Banner, EditingBar, NoticeBar, QueueList
from app.chat.composer import Composer
from app.chat.first_page import FirstPage
from app.chat.tokens import Legend
from app.chat.transcript import Transcript
from app.controls.text_label import TextLabel
from app.gauges.strip import InstrumentStrip
from app.panels.document_tab import DocumentTab
from app.panels.header import Header
from app.panels.inspector import Inspector
from app.panels.side_panel import SidePanel
from app.panels.sidebar import Sidebar


@dataclass(frozen=True)
class Views:
    """The widgets of one window. `pages` holds the first page and the transcript; `hint` replaces
    the legend.
    """

    header: Header
    strip: InstrumentStrip
    banner: Banner
    pages: QStackedWidget
    first_page: FirstPage
    transcript: Transcript
    editing_bar: EditingBar
    notice_bar: NoticeBar
    queue_list: QueueList
    composer: Composer
    legend: Legend
    hint: TextLabel
    sidebar: Sidebar
    side: SidePanel

    @property
    def inspector(self) -> Inspector:
        return self.side.inspector

    @property
    def document(self) -> DocumentTab:
        return self.side.document

    def show_first_page(self, shown: bool) -> None:
        """Show the page of an empty chat, without the legend."""
        page: QWidget = self.first_page if shown else self.transcript
        self.pages.setCurrentWidget(page)
        self.show_foot()

    def show_hint(self, text: str) -> None:
        """Show a hint below the composer instead of the legend; empty restores the legend."""
        self.hint.setText(text)
        self.show_foot()

    def show_foot(self) -> None:
        """Show the hint or the legend. The legend is hidden with the tint off."""
        hinting = bool(self.hint.text())
        on_first_page = self.pages.currentWidget() is self.first_page
        self.legend.setVisible(self.legend.is_wanted and not hinting and not on_first_page)
        self.hint.setVisible(hinting or on_first_page)
