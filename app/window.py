"""MainWindow: the chat window. Lays the parts out, owns the link to the worker, and the keys.

What happens in it is the desk's business; what stands where is the columns'. The worker is
started by `start()`, once the loop runs. Closing hides the window at once, stops the worker,
and then closes for real; `shut_down()` waits for that.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable, Sequence

from PySide6.QtCore import QPoint, QSize, Qt
from PySide6.QtGui import QAction, QCloseEvent, QGuiApplication, QKeySequence
from PySide6.QtWidgets import QHBoxLayout, QLayout, QMainWindow, QMenu, QStackedWidget, QVBoxLayout, QWidget

from app import strings
from app.chat.banner import Banner
from app.chat.composer import Composer
from app.chat.editing_bar import EditingBar
from app.chat.first_page import FirstPage
from app.chat.legend import Legend
from app.chat.transcript import Transcript
from app.columns import Arrangement, Columns
from app.controls.text_label import TextLabel
from app.desk.desk import Desk
from app.gauges.strip import InstrumentStrip
from app.header import Header
from app.panels.side_panel import SidePanel
from app.panels.sidebar import Sidebar
from app.session.intents import Close
from app.session.link import WorkerLink
from app.store.home import Home
from app.store.preferences import WindowPlace
from app.theme.theme import Theme
from app.views import Views

_LOG = logging.getLogger("draftlight.window")
START_SIZE = QSize(1440, 900)
MINIMUM_SIZE = QSize(980, 640)
_FOOT_PX = 34
_SIDE_MARGIN_PX = 24
# The Mac's own keys (⌃⌘S) have no likeness elsewhere, where ⌘ is Ctrl.
_SIDEBAR_KEYS = "Ctrl+Meta+S" if sys.platform == "darwin" else "Ctrl+Alt+S"


class MainWindow(QMainWindow):
    """`command` starts the worker (None: the usual one). `home` keeps the chats; None forgets them."""

    def __init__(
        self,
        theme: Theme,
        model: str = "starter",
        command: Sequence[str] | None = None,
        *,
        silence_s: float = 15.0,
        home: Home | None = None,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._theme = theme
        self._closing: asyncio.Task[None] | None = None
        self._closed = asyncio.Event()
        self.setWindowTitle(strings.APP_NAME)
        self.setMinimumSize(MINIMUM_SIZE)

        self.views = self._make_views()
        content = self._make_content()
        self.columns = Columns(theme, self.views.sidebar, content, self.views.side, self)
        self.setCentralWidget(self.columns)
        self.worker = WorkerLink(self._hear, command, silence_s=silence_s)
        self.desk = Desk(self.views, model, self.worker.send, self.worker.restart, home, self)
        self._make_actions()
        self._wire()
        self._restore()
        self._show_arrangement(self.columns.arrangement)
        self.views.composer.edit.setFocus()

    def start(self) -> None:
        """Start the worker. Needs the running loop."""
        self.worker.start()

    async def closed(self) -> None:
        """Returns once the window is closed and the worker has ended."""
        await self._closed.wait()

    async def shut_down(self) -> None:
        """Close, and wait for everything to end. Safe to call twice."""
        self.close()
        await self.closed()

    def closeEvent(self, event: QCloseEvent) -> None:
        if self._closed.is_set():
            event.accept()
            return
        event.ignore()
        if self._closing is None:
            self._remember()
            self.hide()
            self.desk.take(Close())
            self._closing = asyncio.ensure_future(self._close_down())

    # ---- inside

    async def _close_down(self) -> None:
        await self.worker.close()
        if not self.desk.home.close():
            _LOG.error("%s", strings.LOST_AT_THE_END)
        self._closed.set()
        self.close()

    def _hear(self, given: object) -> None:
        self.desk.take(given)  # type: ignore[arg-type]

    def _make_views(self) -> Views:
        theme = self._theme
        pages = QStackedWidget(self)
        first_page, transcript = FirstPage(theme), Transcript(theme)
        pages.addWidget(first_page)
        pages.addWidget(transcript)
        hint = TextLabel(theme, "", 11, 15, "text2", align=Qt.AlignmentFlag.AlignHCenter)
        hint.setFixedHeight(_FOOT_PX)
        return Views(
            header=Header(theme),
            strip=InstrumentStrip(theme),
            banner=Banner(theme),
            pages=pages,
            first_page=first_page,
            transcript=transcript,
            editing_bar=EditingBar(theme),
            composer=Composer(theme),
            legend=Legend(theme),
            hint=hint,
            sidebar=Sidebar(theme),
            side=SidePanel(theme),
        )

    def _make_content(self) -> QWidget:
        views, content = self.views, QWidget(self)
        column = QVBoxLayout(content)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(views.header)
        column.addWidget(views.strip)
        column.addLayout(_centred(views.banner, 0))
        column.addWidget(views.pages, 1)
        column.addLayout(_centred(views.editing_bar, 6))
        column.addLayout(_centred(views.composer, 10))
        column.addWidget(views.legend)
        column.addWidget(views.hint)
        return content

    def _make_actions(self) -> None:
        desk, header = self.desk, self.views.header
        chat = (
            self._action(strings.ACTION_NEW_CHAT, ["Ctrl+N"], desk.new_chat),
            self._action(strings.ACTION_ATTACH, ["Ctrl+O"], self.views.composer.choose_files),
            self._action(strings.ACTION_STOP, ["Esc", "Ctrl+."], desk.stop),
            self._action(strings.ACTION_REGENERATE, ["Ctrl+R"], desk.regenerate),
            self._action(strings.ACTION_EDIT_LAST, [], desk.edit),
            self._action(strings.ACTION_SEARCH, ["Ctrl+K"], self._search),
            self._action(strings.ACTION_RENAME, [], self._rename),
            self._action(strings.ACTION_PIN, [], self._pin),
            self._action(strings.ACTION_DELETE, [], lambda: desk.listing.delete(desk.chats.open.id)),
            self._action(strings.ACTION_UNDO_DELETE, [], desk.listing.undo),
            self._action(strings.ACTION_EXPORT_MARKDOWN, [], lambda: self._export("markdown")),
            self._action(strings.ACTION_EXPORT_JSON, [], lambda: self._export("json")),
            self._action(strings.ACTION_IMPORT, [], desk.transfer.import_files),
            self._action(strings.ACTION_RESTART, [], desk.restart),
            self._action(strings.ACTION_CLOSE, ["Ctrl+W", "Ctrl+Q"], self.close),
        )
        view = (
            self._action(strings.ACTION_FIND, ["Ctrl+F"], self._find),
            self._action(strings.ACTION_FIND_NEXT, ["Ctrl+G"], lambda: self._find_step(True)),
            self._action(strings.ACTION_FIND_PREVIOUS, ["Ctrl+Shift+G"], lambda: self._find_step(False)),
            self._action(strings.ACTION_TINT, ["Ctrl+T"], header.cycle_tint),
            self._action(strings.ACTION_SIDEBAR, [_SIDEBAR_KEYS], self._toggle_sidebar),
            self._action(strings.ACTION_INSPECTOR, ["Ctrl+Alt+I"], self._toggle_inspector),
            self._action(strings.ACTION_DOCUMENT, ["Ctrl+Alt+D"], self._toggle_document),
            self._action(strings.ACTION_NEXT_PASSAGE, ["Ctrl+Alt+Down"], lambda: self._jump(1)),
            self._action(strings.ACTION_PREVIOUS_PASSAGE, ["Ctrl+Alt+Up"], lambda: self._jump(-1)),
        )
        if sys.platform == "darwin":
            # Elsewhere a menu bar would stand in the window; the keys work without one.
            for title, actions in ((strings.MENU_CHAT, chat), (strings.MENU_VIEW, view)):
                menu = QMenu(title, self)
                menu.addActions(actions)
                self.menuBar().addMenu(menu)

    def _action(self, text: str, keys: Sequence[str], slot: Callable[[], object]) -> QAction:
        action = QAction(text, self)
        action.setShortcuts([QKeySequence(key) for key in keys])
        action.triggered.connect(lambda checked: slot())
        self.addAction(action)
        return action

    # ---- chats by menu

    def _search(self) -> None:
        self.columns.show_sidebar(True)
        self.views.sidebar.focus_search()

    def _rename(self) -> None:
        if self.desk.chats.open.turns:
            self.columns.show_sidebar(True)
            self.views.sidebar.search.clear()
            self.views.sidebar.list.rename(self.desk.chats.open.id)

    def _pin(self) -> None:
        chat = self.desk.chats.open
        if chat.turns:
            self.desk.listing.pin(chat.id, not chat.pinned)

    def _export(self, kind: str) -> None:
        if self.desk.chats.open.turns:
            self.desk.transfer.export(self.desk.chats.open.id, kind)

    # ---- where it was

    def _restore(self) -> None:
        """As it was left, as far as there is a screen there now."""
        preferences = self.desk.home.preferences.now
        place = preferences.window
        self.resize(START_SIZE)
        self.views.header.tint.set_value(preferences.tint)
        if place is None:
            return
        self.resize(max(place.width, MINIMUM_SIZE.width()), max(place.height, MINIMUM_SIZE.height()))
        corner = QPoint(place.x, place.y)
        if any(screen.availableGeometry().contains(corner) for screen in QGuiApplication.screens()):
            self.move(corner)
        self.columns.set_wants(place.sidebar, place.inspector)
        if place.maximized:
            self.setWindowState(self.windowState() | Qt.WindowState.WindowMaximized)

    def _remember(self) -> None:
        self.desk.leave()
        box, wants = self.normalGeometry(), self.columns.wants
        place = WindowPlace(
            box.x(),
            box.y(),
            box.width(),
            box.height(),
            self.isMaximized(),
            wants.sidebar,
            wants.inspector,
        )
        self.desk.home.preferences.change(window=place, tint=self.views.header.tint.value)

    def _wire(self) -> None:
        views = self.views
        views.header.tint_changed.connect(views.transcript.set_tint_mode)
        views.header.inspector_toggled.connect(self.columns.show_inspector)
        views.header.sidebar_requested.connect(lambda: self.columns.show_sidebar(True))
        views.sidebar.hide_requested.connect(lambda: self.columns.show_sidebar(False))
        views.side.tab_changed.connect(lambda tab: self.columns.set_panel_width(views.side.width_px))
        self.desk.document_requested.connect(self.show_document)
        self.columns.arranged.connect(self._show_arrangement)

    def _show_arrangement(self, plan: Arrangement) -> None:
        self.views.header.set_inspector_shown(plan.inspector_px > 0)
        self.views.header.set_sidebar_shown(plan.sidebar_px > 0)

    def show_document(self) -> None:
        """Bring the Document tab to the screen."""
        self.views.side.show_tab("document")
        self.columns.show_inspector(True)

    def _toggle_document(self) -> None:
        """There and back: to the document's text, and from it to the settings and the message."""
        if self.columns.arrangement.inspector_px and self.views.side.tab == "document":
            self.views.side.show_tab("settings")
            self.views.composer.edit.setFocus()
        else:
            self.show_document()
            self.views.document.view.setFocus()

    def _jump(self, steps: int) -> None:
        self.show_document()
        self.views.document.jump(steps)

    def _find(self) -> None:
        if self.views.transcript.isVisible():
            self.views.transcript.finder.open()

    def _find_step(self, forward: bool) -> None:
        if self.views.transcript.finder.is_open:
            self.views.transcript.finder.step(forward)

    def _toggle_sidebar(self) -> None:
        self.columns.show_sidebar(self.columns.arrangement.sidebar_px == 0)

    def _toggle_inspector(self) -> None:
        self.columns.show_inspector(self.columns.arrangement.inspector_px == 0)


def _centred(widget: QWidget, top_px: int) -> QLayout:
    """`widget` at its own greatest width in the middle, with a margin where there is less room."""
    row = QHBoxLayout()
    row.setContentsMargins(_SIDE_MARGIN_PX, top_px, _SIDE_MARGIN_PX, 0)
    row.addWidget(widget, 1)
    return row
