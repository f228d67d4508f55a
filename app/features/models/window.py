"""ModelsWindow: installed models, downloads, hub results, and the details of the selected model.

Shows the state of the models' controller and calls its commands.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF, QSize, Qt, QUrl
from PySide6.QtGui import QDesktopServices, QPainter, QPixmap, QResizeEvent
from PySide6.QtWidgets import QWidget

from app.chat import strings as app_strings
from app.controls.buttons import Button, IconButton, on_click
from app.controls.message_bar import MessageBar
from app.controls.record_table import Column, RecordTable, draw_meter, swatch
from app.controls.sheets import choose_folder
from app.controls.text_fields import SearchField
from app.features.models import facts, strings
from app.features.models.detail import WIDTH_PX as DETAIL_PX
from app.features.models.detail import ModelDetail
from app.features.models.facts import FitFacts, ModelRow
from app.features.side_window import SideWindow
from app.theme.icons import icon_pixmap
from app.theme.measures import STRETCH, column_of, lay_beside, row_of
from app.theme.theme import color, theme
from app.theme.zoom import width_of

if TYPE_CHECKING:
    from app.features.models.controller import ModelsController

START_SIZE = QSize(1220, 756)
MINIMUM_SIZE = QSize(980, 480)
# In a narrower window the details are below the list.
_BESIDE_FROM_PX = 820 + DETAIL_PX
_LIST_SHARE, _DETAIL_SHARE = 5, 4
# Position of the limit on the bar; the space after it shows the excess.
LIMIT_AT = 0.794


def _family(row: ModelRow, place: int, ratio: float) -> QPixmap | None:
    return swatch(8, 2, ratio, row.family_color) if row.family else None


def _fit(row: ModelRow, place: int, ratio: float) -> QPixmap | None:
    icon = strings.FIT_ICONS[row.bar.fit] if isinstance(row.bar, FitFacts) else ""
    return icon_pixmap(icon, color("text2"), 13, ratio) if icon else None


def _paint_bar(painter: QPainter, box: QRectF, row: ModelRow) -> None:
    """The needed memory, with a mark at the limit, or what has arrived of a download."""
    if isinstance(row.bar, FitFacts):
        ink = "series_vermilion" if row.bar.fit == "too-large" else "series_blue"
        draw_meter(painter, box, row.bar.share * LIMIT_AT, ink, LIMIT_AT)
    else:
        draw_meter(painter, box, row.bar or 0.0, "accent_fill" if "pause" in row.commands else "text3")


COLUMNS = (
    Column("title", strings.MODEL, 236, grows=True, below="below"),
    Column("family", strings.TOKENIZER, 100, icon=_family),
    Column("memory", strings.FIT, 188, icon=_fit, below="bar", paint_below=_paint_bar),
    Column("note", strings.DRAFT_MODEL, 162, ink=lambda row: "danger" if row.problem else "text2"),
    Column("status", "", 118, right=True, ink=lambda row: "danger" if row.problem else "text"),
)
_ICONS = {"get": "download", "pause": "pause", "resume": "play", "cancel": "x"}


class RowButtons(QWidget):
    """The commands of a row as buttons, for the mouse: Return and the details have them for the keyboard."""

    def __init__(self, row: ModelRow, act: Callable[[str, str], object]) -> None:
        super().__init__()
        self.commands = row.commands
        buttons = row_of(STRETCH, gap=4, parent=self)
        for command in row.commands:
            words, icon = strings.COMMANDS[command], _ICONS.get(command, "")
            name = f"{words} {row.title}"
            alone = command in ("pause", "resume", "cancel")
            button = IconButton(icon, name) if alone else Button(words, small=True, icon_name=icon)
            button.setAccessibleName(name)
            button.setFocusPolicy(Qt.FocusPolicy.NoFocus)
            on_click((button, partial(act, command, row.id)))
            buttons.addWidget(button)


class ModelsWindow(SideWindow):
    """Requests the list whenever it becomes visible."""

    def __init__(self, controller: ModelsController) -> None:
        super().__init__(strings.TITLE, START_SIZE, MINIMUM_SIZE)
        self._controller = controller
        self._context_tokens = facts.DEFAULT_CONTEXT_TOKENS
        self.search = SearchField(strings.SEARCH, self._search_entered)
        self.add = Button(strings.ADD, icon_name="folder")
        self.problem = MessageBar(app_strings.CLOSE_BANNER)
        self.list = RecordTable[ModelRow](strings.MODEL_LIST, COLUMNS)
        self.detail = ModelDetail(self._act, self._set_context)
        self._lay_out()
        self._wire()
        self._arrange()
        controller.watch()
        self._show()

    @property
    def chosen(self) -> str:
        return self.list.selected

    def row(self, row_id: str) -> ModelRow | None:
        """Returns the row with that id; None if it is not listed, and for the empty id, which titles have."""
        return next((row for row in self.list.rows if row.id and row.id == row_id), None)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    # ---- showing

    def _show(self) -> None:
        controller, state = self._controller, self._controller.shown
        figures = (len(state.models), state.disk_bytes, state.free_bytes, state.limit_bytes)
        self.titles.say(strings.subtitle(*figures) if state.listed else "")
        missing = strings.NO_MODELS if state.listed else strings.LISTING
        self.list.set_empty(missing if controller.alive else strings.NO_WORKER)
        first = not self.list.rows
        text = self.search.text().strip()
        self.list.show_rows(facts.rows(state, self._context_tokens, text) if state.listed else ())
        self._show_buttons()
        if first and state.loaded:
            self.list.select(state.loaded.reference)
        note = strings.ASKING if state.finding else ""
        if text and text == state.asked and not state.finding and not state.found:
            note = strings.not_found(text)
        self.problem.show_message(f"{state.problem} {state.hint}".strip() or note, bad=bool(state.problem))
        self._show_detail()

    def _show_buttons(self) -> None:
        for row in filter(lambda row: row.id, self.list.rows):
            last = self.list.index_of(row.id).siblingAtColumn(len(COLUMNS) - 1)
            buttons = self.list.indexWidget(last)
            if not isinstance(buttons, RowButtons) or buttons.commands != row.commands:
                buttons = RowButtons(row, self._press)
                self.list.setIndexWidget(last, buttons)
            usable = self._controller.may_choose if "load" in row.commands else self._controller.alive
            buttons.setEnabled(usable)

    def _show_detail(self) -> None:
        controller, state = self._controller, self._controller.shown
        row, entry = self.row(self.chosen), state.entry(self.chosen)
        if entry is None or row is None:
            self.detail.show_row(row, controller.alive)
            return
        told = controller.last_stats
        self.detail.show_model(
            entry,
            state,
            self._context_tokens,
            draft=controller.draft,
            at_start=controller.loads_at_start(entry.reference),
            can_load=controller.may_choose,
            tokens_per_s=told[1].tokens_per_s if told and told[0] == entry.path else 0.0,
        )

    # ---- commands

    def _act(self, command: str, key: str) -> None:
        """Carry out a command of the details on a model, a hub name or a text of the search."""
        controller = self._controller
        commands: dict[str, Callable[[str], object]] = {
            "load": controller.load,
            "unload": lambda _: controller.unload(),
            "default": controller.make_default,
            "draft": controller.choose_draft,
            "folder": self._open_folder,
            "remove": controller.remove,
            **dict.fromkeys(("get", "search", "add"), self._get),
            "pause": controller.pause,
            "resume": controller.download,
            "cancel": controller.cancel,
        }
        commands[command](key)

    def _press(self, command: str, key: str) -> None:
        """Carry out a command of a row's button. The details may ask before they cancel a download."""
        if command == "cancel":
            self.list.select(key)
            self.detail.ask()
        else:
            self._act(command, key)

    def _open(self, row_id: str) -> None:
        """Load, download, pause or resume with Return or a double click."""
        row = self.row(row_id)
        if row is not None and row.commands:
            self._act(row.commands[0], row_id)

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
            if self._controller.alive:
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
        controller.imported.connect(self.list.select)
        self.search.textChanged.connect(lambda text: self._search_changed())
        self.search.results_wanted.connect(self.list.setFocus)
        on_click((self.add, self._ask_folder), (self.problem.close_button, controller.dismiss))
        self.list.row_selected.connect(self._show_detail)
        self.list.opened.connect(self._open)
        self.list.remove_requested.connect(self.detail.ask)
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
        header = self.make_header((self.search, self.add), left_px=20)
        column_of(header, (self._content, 1), parent=self)
