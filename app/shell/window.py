"""MainWindow: the chat window. Lays out the parts and owns the link to the worker and the menus.

The behaviour is in the controllers, the columns and the commands. `start()` starts the worker once the loop
runs. Closing asks if changes cannot be saved, hides the window, stops the worker and then closes it;
`shut_down()` does not ask, and waits for that.
Side windows are imported when they are opened.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QEvent, QPoint, QRect, QSize, Qt, Signal
from PySide6.QtGui import QCloseEvent, QDragEnterEvent, QDragLeaveEvent, QDropEvent, QKeyEvent
from PySide6.QtWidgets import QApplication, QMainWindow, QMenu, QStackedWidget, QWidget

from app.chat.bars import Banner, EditingBar, NoticeBar, QueueList
from app.chat.composer import Composer
from app.chat.composer_edit import local_files
from app.chat.first_page import FirstPage
from app.chat.image_files import ImageFiles
from app.chat.intents import Escape, Intent
from app.chat.pasteboard import is_image
from app.chat.tokens import Legend
from app.chat.transcript import Transcript, takes_tab
from app.controllers import strings
from app.controllers.link import WorkerLink
from app.controllers.views import Views
from app.controls.buttons import on_click
from app.controls.focus_keeper import FocusKeeper
from app.controls.sheets import Question, first_folder, save_file
from app.controls.text_label import TextLabel
from app.features.help import HelpWindow, help_pages
from app.features.lab import LabController
from app.features.models import strings as models_strings
from app.features.models.controller import fill_model_menu
from app.features.models.facts import DEFAULT_CONTEXT_TOKENS
from app.features.projects import ProjectsController
from app.features.race.page import RacePage
from app.features.settings.controller import AppSettings
from app.gauges.strip import InstrumentStrip
from app.panels.header import Header
from app.panels.side_panel import SidePanel
from app.panels.sidebar import Sidebar
from app.session import strings as session_strings
from app.session.turn.intents import Close
from app.shell.chat_column import ChatColumn
from app.shell.columns import Arrangement, WindowColumns
from app.shell.commands import Commands, is_typing
from app.shell.controller import WindowController
from app.shell.menu_bar import Actions, MenuBar
from app.shell.windows import SideWindows, free_places, seen
from app.store import strings as store_strings
from app.store.library import Home
from app.store.preferences import WindowPlace
from app.theme.measures import set_fixed_height
from app.theme.theme import without_style_sheet
from core.errors import RequestError
from core.events import Image
from core.settings import WindowSettings
from core.worker.client import WorkerClient

_LOG = logging.getLogger("draftlight.window")
START_SIZE = QSize(1440, 900)
MINIMUM_SIZE = QSize(900, 600)
# Space for a title bar, whose height is known only after the window is shown.
_TITLE_BAR_PX = 40
_FOOT_PX = 34
_ROW_PX = 8
# The parts have shorter limits, but saving tables may take long.
_END_WITHIN_S = 120.0


class MainWindow(QMainWindow):
    """`model` is loaded at the start (empty: the default model). `command` starts the worker (None: the usual
    one), `started` is a worker that was started already. `home` stores the chats; None keeps them in memory.
    """

    closing_begun = Signal()  # nothing can stop it any more

    def __init__(
        self,
        model: str = "",
        command: Sequence[str] | None = None,
        *,
        silence_s: float = 15.0,
        started: WorkerClient | None = None,
        home: Home | None = None,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._closing: asyncio.Task[None] | None = None
        self._asking: asyncio.Task[None] | None = None  # whether to close
        self._listing: asyncio.Task[None] | None = None  # of the models, for their menu
        self._question: Question | None = None
        self._asks = True
        self._elsewhere: Path | None = None
        self._closed = asyncio.Event()
        self.setWindowTitle(session_strings.APP_NAME)
        self.setMinimumSize(MINIMUM_SIZE)
        self.setAcceptDrops(True)

        with without_style_sheet():
            self.views = self._make_views()
            self.race_page = RacePage()
            self._content = self._make_content()
            self.columns = WindowColumns(self.views.sidebar, self._content, self.views.side, self)
            self.setCentralWidget(self.columns)
        self.worker = WorkerLink(command, silence_s=silence_s, started=started)
        self.controller = WindowController(self.views, self.race_page, model, self.worker, home, self)
        self.worker.hear = self.controller.handle
        self.windows = SideWindows(self)
        self.app_settings = AppSettings(self.views, self.controller.home.preferences, self)
        self.projects = ProjectsController(
            self.views,
            self.controller.chats,
            self.controller.chat,
            self.controller.library,
            self.controller.models,
            self.controller.home.preferences,
            self,
        )
        self.commands = Commands(
            self.controller, self.views, self.columns, self.windows, self.app_settings.zoom, self
        )
        self.menu_actions = Actions(self.commands)
        home_folder = self.controller.home.folder
        lab_folder = home_folder / "lab" if home_folder else None
        self.lab = LabController(
            lambda: self.views.inspector.settings, self.controller.stand_still, lab_folder, self
        )
        for panel in (self.views.sidebar, self.views.inspector):
            panel.models_button.clicked.connect(lambda: self.windows.show("models"))
        for name, make in (
            ("deleted", self._make_deleted),
            ("lab", self.lab.make_window),
            ("library", self._make_library),
            ("models", self._make_models),
            ("server", self._make_server),
            ("settings", self._make_settings),
            ("help", self._make_help),
            ("tools", self._make_tools),
            ("images", self._make_images),
            ("tables", self._make_tables),
        ):
            self.windows.add(name, make)
        self.setMenuBar(MenuBar(self.menu_actions))
        self._wire()
        FocusKeeper(self, self.views.composer.edit)
        self._restore()
        self._show_arrangement(self.columns.arrangement)
        self.views.composer.edit.setFocus()

    def start(self) -> None:
        """Start the worker. Needs the running loop."""
        self.worker.start()
        self.controller.server.start()

    async def closed(self) -> None:
        """Returns after the window is closed and the worker has exited."""
        await self._closed.wait()

    def close_now(self) -> None:
        """Close without asking about unsaved changes."""
        self._asks = False
        if self._question:
            self._question.reject()
        self.close()

    async def shut_down(self) -> None:
        """Close without asking and wait for everything to end. Safe to call twice."""
        self.close_now()
        await self.closed()

    def closeEvent(self, event: QCloseEvent) -> None:
        if self._closed.is_set():
            event.accept()
            return
        event.ignore()
        if self._closing is None and self._asking is None:
            self._asking = asyncio.ensure_future(self._ask_to_close())

    async def _ask_to_close(self) -> None:
        """Close, unless changes are not saved and the person cancels."""
        try:
            await self.controller.chat.keep_pasted()
            self.controller.chat.leave()
            saving = self.controller.chat.saving
            if self._asks and not await saving.all_kept() and self._asks:
                self._question = saving.ask_to_close(self)
                self._question.chosen.connect(self._on_unsaved)
                self._question.finished.connect(self._asked)
                return
        except Exception as error:
            _report(error)
        self._begin_closing()

    def _asked(self) -> None:
        self._question = self._asking = None

    def _on_unsaved(self, answer: str) -> None:
        if answer == "discard":
            self._begin_closing(discard=True)
            return
        name = Path(first_folder()) / f"{strings.UNSAVED_FILE}.json"
        save_file(self, strings.SAVE_ELSEWHERE_TITLE, name, self._save_elsewhere)

    def _save_elsewhere(self, path: Path) -> None:
        try:
            self.controller.chat.saving.write_elsewhere(path)
        except OSError as error:
            text = store_strings.not_written(str(path), error.strerror or str(error))
            refused = RequestError(text, strings.CHOOSE_ANOTHER_PLACE)
            self.controller.trouble.show_request_error(refused, "window")
            return
        self._elsewhere = path
        self._begin_closing()

    def _begin_closing(self, *, discard: bool = False) -> None:
        if self._closing is not None:
            return
        for step in (
            self.closing_begun.emit,
            self._remember,
            self.hide,
            self.windows.close_all,
            self.app_settings.stop,
            lambda: self.controller.handle(Close()),
        ):
            try:
                step()
            except Exception as error:
                _report(error)
        self._closing = asyncio.ensure_future(self._close_down(discard))

    def event(self, event: QEvent) -> bool:
        if event.type() is QEvent.Type.WindowStateChange:  # also by the system's own button
            self.commands.facts_changed.emit()
        overrides = event.type() is QEvent.Type.ShortcutOverride
        if overrides and isinstance(event, QKeyEvent) and event.key() == Qt.Key.Key_Escape:
            event.accept()  # Escape closes one thing before it stops the answer
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Handles unused keys: characters go to the composer, Escape closes or stops."""
        if event.key() == Qt.Key.Key_Escape:
            self.commands.escape()
        elif is_typing(event) and self.views.composer.isVisible():
            self.views.composer.edit.setFocus()
            QApplication.sendEvent(self.views.composer.edit, event)
        else:
            super().keyPressEvent(event)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Files and images can be dropped anywhere on the window."""
        data = event.mimeData()
        if (local_files(data) or is_image(data)) and self.views.composer.isVisible():
            event.acceptProposedAction()
            self.views.composer.show_drag(event.mimeData())

    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:
        self.views.composer.end_drag()

    def dropEvent(self, event: QDropEvent) -> None:
        self.views.composer.end_drag()
        self.views.composer.edit.take(event.mimeData(), dragged=True)
        event.acceptProposedAction()

    def focusNextPrevChild(self, forward: bool) -> bool:
        return pass_on(self, forward) or super().focusNextPrevChild(forward)

    # ---- inside

    async def _close_down(self, discard: bool) -> None:
        """End each part. The failure of one is reported, and the window closes all the same."""
        controller = self.controller
        for end in (
            controller.chat.transfer.close,
            controller.chat.importing.close,
            controller.server.close,
            controller.tool_calls.close,
            controller.tool_servers.close,
            self.worker.close,
            self.lab.close,
            controller.origins.close,
        ):
            try:
                await asyncio.wait_for(end(), _END_WITHIN_S)
            except Exception as error:
                _report(error)
        try:
            if self._elsewhere:  # the end of an answer
                controller.chat.saving.write_elsewhere(self._elsewhere)
            if not controller.home.close(discard=discard):
                _LOG.error("Some chats could not be saved before the window closed.")
        except Exception as error:
            _report(error)
        controller.images.close()
        controller.asking.close()
        self._closed.set()
        self.close()

    def _make_views(self) -> Views:
        pages = QStackedWidget(self)
        first_page, transcript = FirstPage(), Transcript()
        # In a small window with large texts the banner needs the height.
        pages.setMinimumHeight(1)
        pages.addWidget(first_page)
        pages.addWidget(transcript)
        hint = TextLabel("", 11, 15, "text2", align=Qt.AlignmentFlag.AlignHCenter)
        set_fixed_height(hint, _FOOT_PX)
        return Views(
            header=Header(),
            strip=InstrumentStrip(),
            banner=Banner(),
            pages=pages,
            first_page=first_page,
            transcript=transcript,
            editing_bar=EditingBar(),
            notice_bar=NoticeBar(),
            queue_list=QueueList(),
            composer=Composer(),
            legend=Legend(),
            hint=hint,
            sidebar=Sidebar(),
            side=SidePanel(),
        )

    def _make_content(self) -> QStackedWidget:
        stack = QStackedWidget(self)
        stack.addWidget(ChatColumn(self.views, self))
        stack.addWidget(self.race_page)
        return stack

    def _make_settings(self) -> QWidget:
        controller = self.controller
        images = controller.home.library.images
        window = self.app_settings.make_window(controller.chat.settings, controller.saved_chats, images)
        on_click((window.tools_button, lambda: self.windows.show("tools")))
        return window

    def _make_tools(self) -> QWidget:
        from app.features.tools.controller import ToolsPage
        from app.features.tools.window import ToolsWindow

        controller, window = self.controller, ToolsWindow()
        preferences = controller.home.preferences
        ToolsPage(window, controller.tool_servers, preferences, controller.tool_choice, self._chat_titles)
        return window

    def _chat_titles(self) -> dict[str, str]:
        return {each.id: each.title for each in self.controller.chats.listed()}

    def _make_server(self) -> QWidget:
        from app.features.server.controller import ServerPage
        from app.features.server.window import ServerWindow

        window = ServerWindow()
        controller = self.controller
        page = ServerPage(window, controller.sharing, controller.server, self._show_images)
        page.files.failed.connect(lambda error: controller.trouble.show_request_error(error, "server"))
        controller.link_changed.connect(page.follow)
        window.transcript.set_token_colors(self.app_settings.now.look.token_colors)
        self.app_settings.changed.connect(
            lambda now: window.transcript.set_token_colors(now.look.token_colors)
        )
        self.app_settings.connect_form(window.panel.form)
        return window

    def _make_images(self) -> QWidget:
        from app.features.images.viewer import ImageViewer

        return ImageViewer()

    def _make_models(self) -> QWidget:
        from app.features.models.window import ModelsWindow

        return ModelsWindow(self.controller.models)

    def _make_library(self) -> QWidget:
        from app.features.library import LibraryWindow

        return self.controller.library.open(LibraryWindow(self.controller.library))

    def _make_tables(self) -> QWidget:
        from app.features.tables.window import TablesWindow

        return self.controller.tables.open(TablesWindow())

    def _make_deleted(self) -> QWidget:
        from app.features.chats import DeletedWindow

        return DeletedWindow(self.controller.chat.listing, self.controller.chats)

    def _make_help(self) -> QWidget:
        return HelpWindow(help_pages(self.menu_actions.sheet()))

    def _on_model_button(self) -> None:
        """Open the menu of the models, which are requested first if they are unknown."""
        models = self.controller.models
        if models.state.listed or not models.alive:
            self._show_model_menu()
        elif self._listing is None or self._listing.done():
            self._listing = self.worker.begin(self._list_models())

    async def _list_models(self) -> None:
        await self.controller.models.installed()
        self._show_model_menu()

    def _show_model_menu(self) -> None:
        """Open the menu below its button."""
        models, menu = self.controller.models, QMenu(self)
        info = models.state.info
        fill_model_menu(menu, models, info.context_tokens if info else DEFAULT_CONTEXT_TOKENS)
        menu.addAction(models_strings.ALL_MODELS).triggered.connect(lambda: self.windows.show("models"))
        menu.aboutToHide.connect(menu.deleteLater)
        button = self.views.header.model_button
        menu.popup(button.mapToGlobal(button.rect().bottomLeft()))

    # ---- where it was

    def _restore(self) -> None:
        """Restore size, position and panels on the available screens."""
        preferences = self.controller.home.preferences.now
        place = preferences.window
        places = free_places()
        if place is None:
            self.columns.set_wants(sidebar=True, inspector=False)
            room = places[0].size() - QSize(0, _TITLE_BAR_PX) if places else START_SIZE
            self.resize(START_SIZE.boundedTo(room).expandedTo(MINIMUM_SIZE))
            return
        size = QSize(place.width, place.height).expandedTo(MINIMUM_SIZE)
        box = seen(QRect(QPoint(place.x, place.y), size), places)
        self.resize(box.size())
        self.move(box.topLeft())
        self.columns.set_wants(place.sidebar, place.inspector)
        if place.maximized:
            self.setWindowState(self.windowState() | Qt.WindowState.WindowMaximized)

    def _remember(self) -> None:
        box, wants = self.normalGeometry(), self.columns.wants
        # `move()` sets the frame's position; `geometry()` excludes the frame.
        corner = box.topLeft() - (self.geometry().topLeft() - self.frameGeometry().topLeft())
        place = WindowPlace(
            corner.x(),
            corner.y(),
            box.width(),
            box.height(),
            self.isMaximized(),
            wants.sidebar,
            wants.inspector,
        )
        self.controller.home.preferences.change(window=place)

    def _wire(self) -> None:
        views = self.views
        views.banner.remedy_requested.connect(self._remedy)
        for view in (views.composer, views.transcript):
            view.intent.connect(self._on_intent)
        self.columns.uncovered.connect(views.composer.edit.setFocus)
        views.first_page.focus_left.connect(views.composer.edit.setFocus)
        views.header.inspector_button.clicked.connect(self.columns.show_inspector)
        on_click(
            (views.header.model_button, self._on_model_button),
            (views.header.sidebar_button, lambda: self.columns.show_sidebar(True)),
            (views.sidebar.hide_button, lambda: self.columns.show_sidebar(False)),
            (views.side.close_button, self.columns.close_over),
        )
        views.side.tab_changed.connect(lambda tab: self.columns.set_panel_width(views.side.width_px))
        self.app_settings.changed.connect(self._on_settings)
        self.controller.server.changed.connect(lambda state: views.header.show_server(state.address))
        self.controller.link_changed.connect(self.lab.follow)
        self.controller.library.window_requested.connect(lambda: self.windows.show("library"))
        self.controller.library.chat_requested.connect(self.activateWindow)
        self.controller.tool_choice.window_requested.connect(lambda: self.windows.show("tools"))
        self.controller.racing.shown_changed.connect(self._show_race)
        self.controller.images.viewer_requested.connect(self._show_images)
        self.columns.arranged.connect(self._show_arrangement)

    def _show_images(self, images: Sequence[Image], index: int, files: ImageFiles) -> None:
        from app.features.images.viewer import ImageViewer

        viewer = self.windows.show("images")
        assert isinstance(viewer, ImageViewer)
        viewer.show_images(images, index, files)

    def _on_settings(self, settings: WindowSettings) -> None:
        self.controller.server.apply(settings.server)
        self.controller.unload_when_idle()

    def _on_intent(self, intent: Intent) -> None:
        if isinstance(intent, Escape):  # the message field has its own shortcut
            self.commands.escape()

    def _remedy(self, name: str) -> None:
        trouble = self.views.banner.trouble
        if name == "tables":
            self.controller.trouble.withdraw(trouble)
            self.windows.show("tables")
        elif name == "download" and trouble:
            self.controller.trouble.withdraw(trouble)
            self.windows.show("models")  # shows progress, Pause and Cancel
            self.controller.models.fetch(trouble.model)

    def _show_arrangement(self, plan: Arrangement) -> None:
        self.views.header.set_inspector_shown(plan.inspector_px > 0)
        self.views.header.set_sidebar_shown(plan.sidebar_px > 0)
        self.views.side.close_button.setVisible(plan.inspector_over)

    def _show_race(self, shown: bool) -> None:
        self._content.setCurrentIndex(1 if shown else 0)
        self.columns.show_alone(shown)
        if shown:
            self.activateWindow()  # it can be opened from another window
        else:
            self.views.composer.edit.setFocus()


def _report(error: Exception) -> None:
    context = {"message": "The window failed while it was closing.", "exception": error}
    asyncio.get_running_loop().call_exception_handler(context)


def pass_on(window: MainWindow, forward: bool) -> bool:
    """Move the focus to the next widget of `window` in reading order. Returns False if the focus is
    elsewhere.

    Qt's own order is the order of creation. Answers are created as the reader scrolls to them, so Qt would
    put them last, among other late widgets.
    """
    ring, focus = _ring(window), QApplication.focusWidget()
    if focus not in ring:
        return False
    target = ring[(ring.index(focus) + (1 if forward else -1)) % len(ring)]
    target.setFocus(Qt.FocusReason.TabFocusReason if forward else Qt.FocusReason.BacktabFocusReason)
    if target in window.views.transcript.stops:
        window.views.transcript.ensureWidgetVisible(target)
    return True


def _ring(window: MainWindow) -> list[QWidget]:
    """The focusable widgets part by part: in reading order within a part, the transcript's by its own."""
    views = window.views
    parts = (
        views.sidebar,
        views.header,
        views.banner,
        views.first_page,
        views.transcript,
        views.notice_bar,
        views.queue_list,
        views.editing_bar,
        views.composer,
        window.race_page,
        views.side,
    )
    conversation = views.transcript.stops
    ring: list[QWidget] = []
    for part in parts:
        ring += [widget for widget in _as_read(part, window) if widget not in conversation]
        ring += conversation if part is views.transcript else []
    return ring


def _as_read(part: QWidget, window: QWidget) -> list[QWidget]:
    """The widgets in `part` that Tab stops at, row by row. Controls of one row may have different heights.

    Not by `nextInFocusChain`: in PySide 6.11 the widget that it returns depends on the one it was called on,
    whose deletion then marks the actions of all that follow as deleted.
    """
    rows: list[list[tuple[int, QWidget]]] = []
    row_y = 0
    stops = (each for each in part.findChildren(QWidget) if takes_tab(each) and each.window() is window)
    centers = [(each.mapTo(window, each.rect().center()), each) for each in stops]
    for center, widget in sorted(centers, key=lambda each: each[0].y()):
        if not rows or center.y() - row_y >= _ROW_PX:
            rows.append([])
            row_y = center.y()
        rows[-1].append((center.x(), widget))
    return [widget for row in rows for _, widget in sorted(row, key=lambda each: each[0])]
