"""MachinesWindow: the machines, the models that can run on them, and missing requirements."""

from __future__ import annotations

from itertools import pairwise

from PySide6.QtCore import QSize
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.controls.buttons.button import Button
from app.controls.record_table import RecordTable, first_row
from app.controls.scroll_bar import ScrollPage
from app.controls.text_label import TextLabel
from app.theme.measures import set_fixed_height, set_margins, set_spacing
from app.theme.theme import Theme
from app.windows.machines import strings
from app.windows.machines.panel import MachinePanel
from app.windows.machines.rows import MACHINE_COLUMNS, MODEL_COLUMNS, Finding, MachineRow, ModelRow
from app.windows.side_window import Hairline, SideWindow

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
        lists = QVBoxLayout()
        lists.setSpacing(0)
        lists.addWidget(self.machines, 1)
        lists.addWidget(Hairline(self._theme))
        lists.addWidget(self.models, 1)
        lists.addWidget(Hairline(self._theme))
        lists.addWidget(self._make_foot())
        parts = QWidget()
        content = QHBoxLayout(parts)
        content.setContentsMargins(0, 0, 0, 0)
        content.setSpacing(0)
        content.addLayout(lists, 1)
        content.addWidget(self.panel)
        self.make_column((self.make_header((self.new,)), 0), (parts, 1))
        order: tuple[QWidget, ...] = (self.new, self.machines.view, self.models.view, self.check)
        order = (*order, self.alone, self.run)
        for before, after in pairwise(order):
            self.setTabOrder(before, after)

    def _make_foot(self) -> QWidget:
        page = QWidget()
        words = QVBoxLayout(page)
        set_margins(words, 20, 8, 14, 4)
        words.addWidget(self._finding)
        words.addStretch(1)
        row = QHBoxLayout()
        set_margins(row, 20, 0, 14, 12)
        set_spacing(row, 8)
        row.addStretch(1)
        for button in (self.check, self.alone, self.run):
            row.addWidget(button)
        foot = QWidget()
        set_fixed_height(foot, _FOOT_PX)
        column = QVBoxLayout(foot)
        column.setContentsMargins(0, 0, 0, 0)
        set_spacing(column, 4)
        column.addWidget(ScrollPage(self._theme, page), 1)
        column.addLayout(row)
        return foot
