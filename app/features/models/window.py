"""ModelsWindow: installed models, downloads, hub results, and the details of the selected model.

Shows the state of the models' controller and calls its commands.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, QUrl
from PySide6.QtGui import QDesktopServices, QResizeEvent
from PySide6.QtWidgets import QWidget

from app.chat import strings as app_strings
from app.controls.buttons import Button
from app.controls.message_bar import MessageBar
from app.controls.sheets import choose_folder
from app.controls.text_fields import SearchField
from app.features.models import facts, strings
from app.features.models.detail import WIDTH_PX as DETAIL_PX
from app.features.models.detail import ModelDetail
from app.features.models.model_list import INSET_PX, LEAST_WIDTH_PX, PADDING_PX, HubRow, ModelListView
from app.features.side_window import SideWindow
from app.theme.measures import column_of, lay_beside, row_of
from app.theme.theme import theme
from app.theme.zoom import width_of

if TYPE_CHECKING:
    from app.features.models.controller import ModelsController

START_SIZE = QSize(1220, 756)
MINIMUM_SIZE = QSize(980, 480)
# In a narrower window the details are below the list.
_BESIDE_FROM_PX = LEAST_WIDTH_PX + DETAIL_PX
_LIST_SHARE, _DETAIL_SHARE = 5, 4


class ModelsWindow(SideWindow):
    """Requests the list whenever it becomes visible."""

    def __init__(self, controller: ModelsController, parent: QWidget | None = None) -> None:
        super().__init__(strings.TITLE, START_SIZE, MINIMUM_SIZE, parent)
        self._controller = controller
        self._chosen = ""
        self._context_tokens = facts.DEFAULT_CONTEXT_TOKENS
        self._hub_shown: tuple[object, ...] = ()
        self.search = SearchField(strings.SEARCH, strings.CLEAR_SEARCH)
        self.add = Button(strings.ADD, icon_name="folder")
        self.problem = MessageBar(app_strings.CLOSE_BANNER)
        self.list = ModelListView()
        self.detail = ModelDetail()
        self._lay_out()
        self._wire()
        self._arrange()
        controller.watch()
        self._show()

    @property
    def chosen(self) -> str:
        """The reference of the model in the details; empty for none."""
        return self._chosen

    def choose(self, reference: str) -> None:
        """Show this model in the details."""
        self._chosen = reference
        self._show()
        self.list.choose(reference)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    # ---- showing

    def _show(self) -> None:
        controller, state = self._controller, self._controller.shown
        if state.entry(self._chosen) is None and state.models:
            self._chosen = (state.loaded or state.models[0]).reference
        limit = strings.limit_note(state.limit_bytes) if state.limit_bytes else ""
        rows = facts.rows(state, self._context_tokens, self.search.text())
        self.titles.say(
            strings.subtitle(len(state.models), state.disk_bytes, state.free_bytes) if state.listed else ""
        )
        self.list.show_models(rows, self._chosen, can_load=controller.may_choose, limit_note=limit)
        self.list.show_downloads(state.downloads, controller.alive)
        self.list.say("" if state.listed else strings.LISTING if controller.alive else strings.NO_WORKER)
        worth = facts.suggestions(state, self._context_tokens, self.search.text())
        self.list.show_suggested(worth, strings.suggested_for(state.limit_bytes), controller.alive)
        self._show_hub()
        self.problem.show_message(f"{state.problem} {state.hint}".strip(), bad=True)
        entry = state.entry(self._chosen)
        if entry is None:
            self.detail.show_nothing()
            return
        self.detail.show_model(
            entry,
            state,
            self._context_tokens,
            draft=controller.draft,
            at_start=controller.loads_at_start(entry.reference),
            can_load=controller.may_choose,
        )
        told = controller.last_stats
        self.detail.show_speed(entry, told[1].tokens_per_s if told and told[0] == entry.path else 0.0)

    def _show_hub(self) -> None:
        """Show downloads that match the search field; rows are rebuilt only after a change."""
        state, text = self._controller.state, self.search.text().strip()
        coming = tuple(each.model for each in state.downloads)
        here = tuple(each.reference for each in state.models)
        shown = (text, state.asked, state.finding, state.found, coming, here)
        if shown == self._hub_shown:
            return
        self._hub_shown = shown
        rows: list[HubRow] = []
        note = ""
        taken = {*here, *coming}
        if path := facts.local_path(text):
            rows = [HubRow(text, path, strings.ON_DISK, strings.ADD_FOLDER, "folder")]
        elif text and text != state.asked:
            if facts.is_hub_name(text):
                rows = [] if text in taken else [HubRow(text, text, "", strings.GET)]
            else:
                title = strings.ask_for(text)
                rows = [HubRow(text, title, strings.NOT_ASKED, strings.ASK_HUB)]
        elif text:
            rows = [HubRow.of_model(each) for each in state.found if each.model not in taken]
            if state.finding:
                note = strings.ASKING
            elif not state.found and not state.problem:
                note = strings.not_found(text)
        self.list.show_hub(rows, note)

    # ---- commands

    def _act(self, command: str, key: str) -> None:
        """Carry out a command of the list or the details on a model, a hub name or a text of the search."""
        controller = self._controller
        commands: dict[str, Callable[[str], object]] = {
            "select": self._select,
            "load": controller.load,
            "unload": lambda _: controller.unload(),
            "default": controller.make_default,
            "draft": controller.choose_draft,
            "folder": self._open_folder,
            "remove": controller.remove,
            "get": self._get,
            "pause": controller.pause,
            "resume": controller.download,
            "cancel": controller.cancel,
        }
        commands[command](key)

    def _select(self, key: str) -> None:
        if key in self.list.models:  # downloads and hub results have no details
            self.choose(key)

    def _search_changed(self) -> None:
        if self._controller.state.asked:
            self._controller.look_up("")
        self._show()

    def _search_entered(self) -> None:
        """Handle Return: download a full hub name, search the hub for any other text."""
        text = self.search.text().strip()
        if text:
            self._get(text)

    def _get(self, key: str) -> None:
        if path := facts.local_path(key):
            self.search.clear()
            self._controller.take_folder(path)
        elif facts.is_hub_name(key):
            self._controller.download(key)
        else:
            self._controller.look_up(key)

    def _ask_folder(self) -> None:
        choose_folder(self, strings.ADD_TITLE, lambda path: self._controller.take_folder(str(path)))

    def _open_folder(self, reference: str) -> None:
        if entry := self._controller.state.entry(reference):
            QDesktopServices.openUrl(QUrl.fromLocalFile(entry.path))

    def _set_context(self, tokens: int) -> None:
        self._context_tokens = tokens
        self._show()

    def _wire(self) -> None:
        controller = self._controller
        controller.changed.connect(self._show)
        controller.imported.connect(self.choose)
        self.search.textChanged.connect(lambda text: self._search_changed())
        self.search.results_wanted.connect(self._search_entered)
        self.add.clicked.connect(self._ask_folder)
        self.problem.closed.connect(controller.dismiss)
        self.list.commanded.connect(self._act)
        self.detail.commanded.connect(self._act)
        self.detail.context_changed.connect(self._set_context)
        theme.zoomed.connect(self._arrange)

    def _arrange(self) -> None:
        """Put the details next to the list, or below it in a narrow window."""
        beside = width_of(self) >= _BESIDE_FROM_PX
        lay_beside(self._content, beside)
        self._content.setStretch(0, 1 if beside else _LIST_SHARE)
        self._content.setStretch(1, 0 if beside else _DETAIL_SHARE)
        self.detail.set_beside(beside)

    def _lay_out(self) -> None:
        self._content = row_of(column_of(self.problem, (self.list, 1)), self.detail)
        header = self.make_header((self.search, self.add), left_px=INSET_PX + PADDING_PX)
        column_of(header, (self._content, 1), parent=self)
