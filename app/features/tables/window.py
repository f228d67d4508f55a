"""TablesWindow: all tables, the commands for the selected one, and how tables learn."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QWidget

from app.controls.buttons import Button, Kind
from app.controls.choices import Switch
from app.controls.message_bar import MessageBar
from app.controls.record_table import RecordTable, first_row
from app.controls.scroll_bar import ScrollPage
from app.controls.sheets import Question
from app.controls.text_label import TextLabel
from app.features.side_window import Hairline, PanelBeside, ProgressBar, SideWindow
from app.features.tables import strings
from app.features.tables.detail import TableDetail
from app.features.tables.rows import (
    COLUMNS,
    Abilities,
    TableRow,
    abilities_of,
    learned_id,
    rows_of,
    size_text,
    table_id,
)
from app.features.tables.state import Tables
from app.fields.setting_field import SettingControl, control_for
from app.session.status import recognised
from app.theme.measures import (
    STRETCH,
    column_of,
    lay_beside,
    row_of,
    set_fixed_width,
    set_maximum_height,
)
from app.theme.theme import Theme
from app.theme.zoom import width_of
from core.events import LearnedTable, Rehearsing, TableInfo
from core.settings import Settings, read
from core.settings.declaration import find

SIZE = QSize(1180, 732)
_MINIMUM = QSize(1020, 620)
_FOOT_PX = 366
# In a narrower window the learning panel is below the charts.
_LEARNING_PX = 416
_BESIDE_FROM_PX = _LEARNING_PX + 440
_LIST_SHARE, _FOOT_SHARE = 2, 3


class TablesWindow(SideWindow):
    """`show_tables` after each change. The commands refer to the selected table."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, strings.TITLE, SIZE, _MINIMUM, parent)
        self._tables = Tables()
        self.save = Button(theme, strings.SAVE, small=True, icon_name="save")
        self.load = Button(theme, strings.LOAD, small=True, icon_name="bolt")
        self.import_ = Button(theme, strings.IMPORT, small=True, icon_name="import")
        self.export = Button(theme, strings.EXPORT, small=True, icon_name="export")
        self.reset = Button(theme, strings.RESET, "danger", small=True, icon_name="reset")
        # The outcome of the last command; families saved elsewhere; files that could not be used.
        self.told = MessageBar(theme, strings.CLOSE_NOTICE)
        self.read_only, self.set_aside = MessageBar(theme), MessageBar(theme)
        self.list = RecordTable[TableRow](theme, strings.LIST, COLUMNS, instead=first_row)
        self.detail = TableDetail(theme)
        self.learning = Learning(theme)
        self._lay_out()
        self.list.row_selected.connect(lambda row_id: self._show_selected())
        theme.zoomed.connect(self._arrange)
        self.show_tables(Tables(), alive=False)

    @property
    def selected(self) -> TableInfo | LearnedTable | None:
        chosen = self.list.selected
        for info in self._tables.tables:
            if table_id(info) == chosen:
                return info
        for table in self._tables.learned:
            if learned_id(table) == chosen:
                return table
        return None

    def show_tables(self, tables: Tables, *, alive: bool) -> None:
        """Shows the tables. `alive`: the worker runs."""
        self._tables, self._alive = tables, alive
        now = datetime.now()
        self.list.show_rows(rows_of(tables.tables, tables.learned, now))
        reasons = {info.family: info for info in tables.tables if info.why_not_saved}
        held = [
            strings.read_only(recognised(each.family_name), each.why_not_saved) for each in reasons.values()
        ]
        self.read_only.show_message(" ".join(held), bad=True)
        self._show_set_aside(tables.set_aside)
        self.learning.show_sum(len(tables.tables) + len(tables.learned), size_text(tables.disk_bytes))
        self.learning.rehearsal.show_rehearsal(tables.rehearsal)
        self._show_selected()

    def tell(self, text: str, *, bad: bool = False) -> None:
        """Shows the progress or outcome of a command; an empty text hides it."""
        self.told.show_message(text, bad=bad)

    def ask(self, title: str, detail: str, answers: Sequence[tuple[str, str, Kind]]) -> Question:
        """Opens a question over the window and returns it."""
        return self.open_question(title, detail, strings.CANCEL, answers)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    # ---- inside

    def _lay_out(self) -> None:
        page, foot = QWidget(), QWidget()
        self._parts = row_of((self.detail, 1), self.learning, parent=page)
        set_maximum_height(foot, _FOOT_PX)
        column_of(Hairline(self._theme), ScrollPage(self._theme, page), parent=foot)
        commands = ((self.save, self.load), (self.import_, self.export), (self.reset,))
        header = self.make_header(*commands, subtitle=strings.SUBTITLE)
        bars = (self.told, self.read_only, self.set_aside)
        column_of(header, *bars, (self.list, _LIST_SHARE), (foot, _FOOT_SHARE), parent=self)

    def _arrange(self) -> None:
        """Lays the learning panel out beside the charts, or below them in a narrow window."""
        beside = width_of(self) >= _BESIDE_FROM_PX
        lay_beside(self._parts, beside)
        self.learning.set_beside(beside)

    def _show_set_aside(self, files: Sequence[str]) -> None:
        """Shows names of files that could not be used, or sentences about them."""
        if not files:
            self.set_aside.show_message("")
            return
        head = strings.set_aside(len(files))
        first = files[0] if len(files) == 1 else f"{files[0]} {strings.more(len(files) - 1)}"
        self.set_aside.show_message(f"{head} {first}", bad=True, full="\n".join((head, *files)))

    def _show_selected(self) -> None:
        chosen = self.selected
        if isinstance(chosen, TableInfo):
            self.detail.show_table(chosen, datetime.now())
        elif isinstance(chosen, LearnedTable):
            self.detail.show_learned(chosen)
        else:
            self.detail.show_nothing(listed=self._tables.listed)
        self._enable(abilities_of(self._tables, chosen, alive=self._alive))

    def _enable(self, abilities: Abilities) -> None:
        for button, why_not, help_text in (
            (self.save, abilities.save, strings.SAVE_HELP),
            (self.load, abilities.load, strings.LOAD_HELP),
            (self.import_, abilities.import_, strings.IMPORT_HELP),
            (self.export, abilities.export, strings.EXPORT_HELP),
            (self.reset, abilities.reset, strings.RESET_HELP),
        ):
            button.setEnabled(not why_not)
            button.setToolTip(why_not or help_text)
            button.setAccessibleDescription(why_not or help_text)


class RehearsalBox(QWidget):
    """`switch.toggled` reports the person's choice for the shown model; `show_model` emits nothing."""

    def __init__(self, theme: Theme, width_px: int, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.title = TextLabel(theme, strings.REHEARSAL, 13, 20, "text", weight=600)
        self.switch = Switch(theme)
        self.model = TextLabel(theme, "", 12, 18)
        self.state = TextLabel(theme, "", 12, 16, "text", tabular=True, wrap=True, width_px=width_px)
        self.bar = ProgressBar(theme, "series_blue", _BAR_PX, strings.REHEARSAL_PROGRESS)
        head = row_of(self.title, (self.model, 1), self.switch, gap=10)
        about = TextLabel(theme, strings.REHEARSAL_HELP, 11, 15, wrap=True, width_px=width_px)
        column_of(head, 3, self.bar, 3, self.state, about, gap=4, parent=self)
        self.show_model("", wanted=False)

    def show_model(self, model: str, *, wanted: bool) -> None:
        """Shows the loaded model (empty: none) and whether it rehearses while idle."""
        self.model.setText(model or strings.NO_MODEL)
        self.switch.blockSignals(True)
        self.switch.setChecked(wanted)
        self.switch.blockSignals(False)
        self.switch.setEnabled(bool(model))
        self.switch.setAccessibleName(strings.rehearse_model(model) if model else strings.REHEARSAL)
        self.switch.setToolTip(strings.REHEARSAL_HELP)
        self.switch.update()

    def show_rehearsal(self, rehearsal: Rehearsing | None) -> None:
        """Shows the rehearsal; None if its state is unknown."""
        on = rehearsal is not None and rehearsal.state != "off"
        self.state.setVisible(on)
        self.bar.setVisible(on)
        if rehearsal is None or not on:
            return
        words = state_text(rehearsal)
        if rehearsal.prompts:
            words = strings.rehearsed(words, rehearsal.answered, rehearsal.prompts, rehearsal.tokens)
        self.state.setText(words)
        self.state.set_color("danger" if rehearsal.state == "failed" else "text")
        self.state.updateGeometry()
        self.bar.show_share(rehearsal.answered / max(1, rehearsal.prompts), words)


def state_text(rehearsal: Rehearsing) -> str:
    """Returns the state of a rehearsal, or what it waits for."""
    match rehearsal.state:
        case "running":
            return strings.REHEARSAL_RUNNING
        case "done":
            return strings.REHEARSAL_DONE
        case "failed":
            return strings.rehearsal_failed(rehearsal.trouble)
        case "off":
            return strings.REHEARSAL_OFF
    waits = {"quiet": strings.REHEARSAL_QUIET, "answer": strings.REHEARSAL_ANSWER}
    return waits.get(rehearsal.waits_for, strings.REHEARSAL_NEXT)


_PADDING_PX = 20
_LABEL_PX = 120
_BAR_PX = 4
_INNER_PX = _LEARNING_PX - 2 * _PADDING_PX - 1
_KEYS = {"tables.learn": strings.LEARN, "tables.autosave_s": "", "tables.decay_at": ""}


class Learning(PanelBeside):
    """The panel at the right. `default_changed` reports a person's change; `show_defaults` emits nothing."""

    default_changed = Signal(str, object)  # the setting's key, the new value

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, _LEARNING_PX, parent)
        self.controls: dict[str, SettingControl] = {}
        self.rehearsal = RehearsalBox(theme, _INNER_PX)
        self.tables = TextLabel(theme, "", 12, 16, tabular=True)
        self.disk = TextLabel(theme, "", 12, 16, tabular=True, align=Qt.AlignmentFlag.AlignRight)
        self.folder = Button(theme, strings.SHOW_FOLDER, "link", small=True)
        self.setAccessibleName(strings.LEARNING)
        self._lay_out()

    def show_defaults(self, defaults: Settings) -> None:
        """Shows the defaults for all chats."""
        for key, control in self.controls.items():
            control.show_value(read(defaults, key))

    def show_sum(self, tables: int, disk: str) -> None:
        """Shows the number of tables and their size on disk."""
        self.tables.setText(strings.tables(tables))
        self.disk.setText(strings.on_disk(disk))

    def _lay_out(self) -> None:
        theme = self._theme
        title = TextLabel(theme, strings.LEARNING, 13, 20, "text", weight=600)
        privacy = TextLabel(theme, strings.PRIVACY, 11, 15, wrap=True, width_px=_INNER_PX)
        column_of(
            title,
            *(self._row(key, title) for key, title in _KEYS.items()),
            privacy,
            Hairline(theme, 9),
            self.rehearsal,
            STRETCH,
            Hairline(theme, 9),
            row_of(self.tables, self.folder, (self.disk, 1), gap=8),
            gap=5,
            margins=(_PADDING_PX + 1, 12, _PADDING_PX, 8),
            parent=self,
        )

    def _row(self, key: str, title: str) -> QHBoxLayout:
        setting = find(key)
        control = control_for(self._theme, setting)
        self.controls[key] = control
        control.edited.connect(lambda value, key=key: self.default_changed.emit(key, value))
        label = TextLabel(self._theme, title or setting.title, 12, 24)
        set_fixed_width(label, _LABEL_PX)
        label.setBuddy(control.editor)
        if title:
            control.editor.setAccessibleName(title)
            for widget in (control.editor, label):
                widget.setToolTip(strings.LEARN_HELP)
            control.editor.setAccessibleDescription(strings.LEARN_HELP)
        else:
            label.setToolTip(setting.help)
        return row_of(label, (control, 1), gap=10)
