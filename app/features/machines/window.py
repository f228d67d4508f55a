"""MachinesWindow: the machines, the models that can run on them, and missing requirements."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from PySide6.QtCore import QSize, Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.controls.buttons import Button, CopyButton
from app.controls.record_table import RecordTable, first_row
from app.controls.scroll_bar import ScrollPage
from app.controls.text_label import TextLabel
from app.features.machines import strings
from app.features.machines.rows import MACHINE_COLUMNS, MODEL_COLUMNS, Finding, MachineRow, ModelRow
from app.features.side_window import Hairline, PanelBeside, SideWindow
from app.fields.setting_field import SettingField
from app.theme.measures import STRETCH, add_gap, column_of, row_of, set_fixed_height
from app.theme.theme import Theme
from core.errors import SettingError
from core.settings import declared
from core.settings.cluster import ClusterForm

SIZE = QSize(1180, 732)
_MINIMUM = QSize(900, 560)
_FOOT_PX = 112


class MachinesWindow(SideWindow):
    """The controller fills `machines` and `models`."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, strings.TITLE, SIZE, _MINIMUM, parent)
        self.new = Button(theme, strings.ADD, small=True, icon_name="plus")
        self.machines = RecordTable[MachineRow](theme, strings.MACHINES, MACHINE_COLUMNS, instead=first_row)
        self.models = RecordTable[ModelRow](theme, strings.MODELS, MODEL_COLUMNS, instead=first_row)
        self.panel = MachinePanel(theme)
        self._finding = TextLabel(theme, "", 12, 17, wrap=True)
        self.check = Button(theme, strings.CHECK)
        self.check.setToolTip(strings.CHECK_HELP)
        self.run = Button(theme, strings.RUN, "primary")
        self.alone = Button(theme, strings.RUN_ALONE)
        self._lay_out()

    @property
    def finding(self) -> str:
        """The message under the lists."""
        return self._finding.text()

    def show_finding(self, finding: Finding) -> None:
        """Shows the message under the lists."""
        self._finding.setText("\n".join(finding.lines))
        self._finding.set_color("danger" if finding.bad else "text2")
        self._finding.setAccessibleName(f"{strings.SUMMARY}: {' '.join(finding.lines)}")

    def show_ways(self, *, check: bool, run: bool, running: bool, why_not: str = "") -> None:
        """Enables the commands. `why_not`: the reason why nothing can be loaded.

        `running`: the model runs on these machines already, so the command is to run it on this one alone.
        """
        self.check.setEnabled(check)
        self.run.setVisible(not running)
        self.run.setEnabled(run)
        self.run.setToolTip(why_not or strings.RUN_HELP)
        self.alone.setVisible(running)
        self.alone.setEnabled(not why_not)
        self.alone.setToolTip(why_not)

    # ---- inside

    def _lay_out(self) -> None:
        line, second_line = Hairline(self._theme), Hairline(self._theme)
        lists = column_of((self.machines, 1), line, (self.models, 1), second_line, self._make_foot())
        content = row_of((lists, 1), self.panel)
        column_of(self.make_header((self.new,)), (content, 1), parent=self)
        order: tuple[QWidget, ...] = (self.new, self.machines.view, self.models.view, self.check)
        order = (*order, self.alone, self.run)
        for before, after in pairwise(order):
            self.setTabOrder(before, after)

    def _make_foot(self) -> QWidget:
        page, foot = QWidget(), QWidget()
        column_of(self._finding, STRETCH, gap=6, margins=(20, 8, 14, 4), parent=page)
        row = row_of(STRETCH, self.check, self.alone, self.run, gap=8, margins=(20, 0, 14, 12))
        set_fixed_height(foot, _FOOT_PX)
        column_of((ScrollPage(self._theme, page), 1), row, gap=4, parent=foot)
        return foot


WIDTH_PX = 340
_PAD_PX = 16
_LABEL_PX = 104
_CONTENT_PX = WIDTH_PX - 1 - 2 * _PAD_PX


class MachinePanel(PanelBeside):
    """`show_…` methods set the content; signals report commands."""

    edited = Signal(str, object)  # a setting's key of ClusterForm, the new value

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, WIDTH_PX, parent)
        self._fields: dict[str, SettingField] = {}
        self._said: dict[str, Any] = {}
        self.title = TextLabel(theme, "", 13, 18, "text", weight=600)
        self.note = TextLabel(theme, strings.LEADER_NOTE, 12, 16, wrap=True, width_px=_CONTENT_PX)
        self.problem = TextLabel(theme, "", 12, 16, "danger", wrap=True, width_px=_CONTENT_PX)
        self.about = TextLabel(theme, "", 12, 16, wrap=True, width_px=_CONTENT_PX)
        self.add = Button(theme, strings.ADD_IT, "primary", small=True)
        self.cancel = Button(theme, strings.CANCEL, small=True)
        self.remove = Button(theme, strings.REMOVE, small=True, icon_name="trash")
        self.secret = TextLabel(theme, "", 12, 16, wrap=True, width_px=_CONTENT_PX)
        self.secret_error = TextLabel(theme, "", 12, 16, "danger", wrap=True, width_px=_CONTENT_PX)
        self.make_secret = Button(theme, strings.MAKE_SECRET, small=True)
        self.copy_path = CopyButton(theme, strings.SECRET)
        self.show_file = Button(theme, strings.SHOW_FILE, "link", small=True)
        self.command = CopyButton(theme, strings.FOLLOW_COMMAND)
        self._lay_out()

    def field(self, key: str) -> SettingField:
        """Returns the field of the setting `key`. An unknown key is our bug (KeyError)."""
        return self._fields[key]

    def show_here(self, about: str, problem: str) -> None:
        """Shows this machine, which has no settings."""
        self._show_title(strings.HERE, about, problem, new=False, here=True)

    def show_machine(self, title: str, about: str, problem: str, *, new: bool) -> None:
        """Shows another machine, or a `new` one that is not in the list; `show_values` sets its values."""
        self._show_title(title, about, problem, new=new, here=False)

    def show_values(self, values: Mapping[str, Any]) -> None:
        """Shows values by key; an edited text with the same meaning stays."""
        for key, value in values.items():
            field = self._fields[key]
            if key not in self._said or _plain(self._said[key]) != _plain(value):
                field.show_value(value)
            else:
                field.clear_error()
            self._said[key] = value

    def show_error(self, key: str, error: SettingError) -> None:
        """Shows why an edited value is refused."""
        self._fields[key].show_error(error.message, error.hint)

    def show_secret(self, text: str, path: str, *, there: bool, error: str = "") -> None:
        """Shows the path of the secret file, which may not exist yet."""
        self.secret.setText(text)
        self.secret_error.setText(error)
        self.secret_error.setVisible(bool(error))
        self.make_secret.setVisible(not there)
        self.copy_path.setVisible(there)
        self.show_file.setVisible(there)
        self.copy_path.set_value(strings.COPY_PATH, path)

    def show_command(self, command: str) -> None:
        """Shows the command for another machine."""
        self.command.set_value(command, command)

    # ---- inside

    def _show_title(self, title: str, about: str, problem: str, *, new: bool, here: bool) -> None:
        self.title.setText(title)
        for label, text in ((self.about, about), (self.problem, problem)):
            label.setText(text)
            label.setVisible(bool(text))
        self.note.setVisible(here)
        self._of_machine.setVisible(not here)
        self.add.setVisible(new)
        self.cancel.setVisible(new)
        self.remove.setVisible(not new)

    def _tell(self, key: str, value: Any) -> None:
        self._said[key] = value
        self.edited.emit(key, value)

    def _lay_out(self) -> None:
        page, self._of_machine = QWidget(), QWidget()
        own = column_of(gap=8, parent=self._of_machine)
        self._add_fields(own, "machine")
        own.addLayout(row_of(self.add, self.cancel, self.remove, STRETCH, gap=8))
        column = column_of(
            *(self.title, self.note, self.about, self.problem, self._of_machine),
            gap=8,
            margins=(_PAD_PX + 1, 14, _PAD_PX, 18),
            parent=page,
        )
        self._add_title(column, strings.SECRET)
        column.addWidget(self.secret)
        column.addWidget(self.secret_error)
        column.addLayout(row_of(self.make_secret, self.copy_path, self.show_file, STRETCH, gap=8))
        self._add_title(column, strings.FOLLOW)
        column.addWidget(TextLabel(self._theme, strings.FOLLOW_NOTE, 12, 16, wrap=True, width_px=_CONTENT_PX))
        column.addLayout(row_of(self.command, STRETCH))
        self._add_title(column, strings.TOGETHER)
        self._add_fields(column, "cluster")
        column.addStretch(1)
        column_of(ScrollPage(self._theme, page), parent=self)

    def _add_title(self, column: QVBoxLayout, title: str) -> None:
        add_gap(column, 10)
        column.addWidget(TextLabel(self._theme, title, 13, 18, "text", weight=600))

    def _add_fields(self, column: QVBoxLayout, group: str) -> None:
        for setting in declared(ClusterForm):
            if setting.group == group:
                field = SettingField(self._theme, setting, label_px=_LABEL_PX, content_px=_CONTENT_PX)
                field.edited.connect(self._tell)
                self._fields[setting.key] = field
                column.addWidget(field)


def _plain(value: Any) -> Any:
    """Strips a text, since surrounding spaces have no meaning."""
    return value.strip() if isinstance(value, str) else value
