"""TablesWindow: all tables, the commands for the selected one, and how tables learn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QHBoxLayout, QVBoxLayout, QWidget

from app.controls.buttons.button import Button, Kind
from app.controls.buttons.icon_button import IconButton
from app.controls.question import Question
from app.controls.record_table import RecordTable, first_row
from app.controls.scroll_bar import ScrollPage
from app.controls.text_label import TextLabel
from app.controls.window_titles import WindowTitles
from app.session.worker.families import recognised
from app.session.worker.tables import Tables
from app.theme.measures import (
    add_gap,
    lay_beside,
    set_fixed_height,
    set_margins,
    set_maximum_height,
    set_spacing,
)
from app.theme.theme import Theme
from app.theme.zoom import area_of, design_px, height_of, painter_on, width_of
from app.windows.side_window import SideWindow
from app.windows.tables import strings
from app.windows.tables.detail import TableDetail
from app.windows.tables.learning import WIDTH_PX as LEARNING_PX
from app.windows.tables.learning import Learning
from app.windows.tables.rows import (
    COLUMNS,
    Abilities,
    TableRow,
    abilities_of,
    learned_id,
    rows_of,
    size_text,
    table_id,
)
from core.events import LearnedTable, TableInfo


@dataclass(frozen=True)
class Notice:
    """`text` is shown, `all_of_it` is in the tooltip. A `bad` one is a failure."""

    text: str
    all_of_it: str
    bad: bool


class Notices(QWidget):
    """One bar a notice; without one it takes no room. The command's can be put away."""

    put_away = Signal()  # how a command went was read

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.told = _Bar(theme, closable=True)
        if self.told.close_button is not None:
            self.told.close_button.clicked.connect(self.put_away)
        self.read_only = _Bar(theme)
        self.set_aside = _Bar(theme)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        for bar in (self.told, self.read_only, self.set_aside):
            column.addWidget(bar)

    def tell(self, text: str, *, bad: bool = False) -> None:
        """How a command goes or went; empty for nothing."""
        self.told.show_notice(Notice(text, text, bad) if text else None)

    def show_read_only(self, sentences: Sequence[str]) -> None:
        """Families that another Draftlight saves."""
        text = " ".join(sentences)
        self.read_only.show_notice(Notice(text, text, True) if text else None)

    def show_set_aside(self, files: Sequence[str]) -> None:
        """Names of files that could not be used, or sentences about them."""
        if not files:
            self.set_aside.show_notice(None)
            return
        head = strings.set_aside(len(files))
        first = files[0] if len(files) == 1 else f"{files[0]} {strings.more(len(files) - 1)}"
        self.set_aside.show_notice(Notice(f"{head} {first}", "\n".join((head, *files)), True))


class _Bar(QWidget):
    def __init__(self, theme: Theme, *, closable: bool = False) -> None:
        super().__init__()
        self._theme = theme
        self._notice: Notice | None = None
        self.label = TextLabel(theme, "", 12, 17, "text", wrap=True)
        row = QHBoxLayout(self)
        set_margins(row, 26, 7, 14, 8)
        row.addWidget(self.label, 1)
        self.close_button: IconButton | None = None
        if closable:
            self.close_button = IconButton(theme, "x", strings.CLOSE_NOTICE, size=QSize(24, 20))
            row.addWidget(self.close_button, 0, Qt.AlignmentFlag.AlignTop)
        theme.changed.connect(self.update)
        self.hide()

    @property
    def text(self) -> str:
        """What is shown; empty if nothing is."""
        return self.label.text() if self._notice else ""

    @property
    def is_bad(self) -> bool:
        """Whether it tells of a failure."""
        return self._notice is not None and self._notice.bad

    def show_notice(self, notice: Notice | None) -> None:
        self._notice = notice
        if notice is not None:
            self.label.setText(notice.text)
            self.label.setToolTip(notice.all_of_it)
            self.label.setAccessibleName(notice.all_of_it)
            self.label.updateGeometry()
        self.setVisible(notice is not None)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._notice is None:
            return
        painter = painter_on(self)
        color = self._theme.color
        painter.fillRect(area_of(self), color("danger_tint" if self._notice.bad else "fill1"))
        line = color("danger_border" if self._notice.bad else "hair")
        painter.fillRect(QRectF(0, height_of(self) - 1, width_of(self), 1), line)


SIZE = QSize(1180, 732)
_MINIMUM = QSize(1020, 620)
_HEADER_PX = 52
_FOOT_PX = 366
# Narrower, and how tables learn goes below the charts.
_BESIDE_FROM_PX = LEARNING_PX + 440
_LIST_SHARE, _FOOT_SHARE = 2, 3


class TablesWindow(SideWindow):
    """`show_tables` after each change. The buttons' wishes are about the selected table."""

    save_requested = Signal()
    load_requested = Signal()
    import_requested = Signal()
    export_requested = Signal()
    reset_requested = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, strings.TITLE, SIZE, _MINIMUM, parent)
        self._tables = Tables()
        self.save = Button(theme, strings.SAVE, small=True, icon_name="save")
        self.load = Button(theme, strings.LOAD, small=True, icon_name="bolt")
        self.import_ = Button(theme, strings.IMPORT, small=True, icon_name="import")
        self.export = Button(theme, strings.EXPORT, small=True, icon_name="export")
        self.reset = Button(theme, strings.RESET, "danger", small=True, icon_name="reset")
        self.notices = Notices(theme)
        self.list = RecordTable[TableRow](theme, strings.LIST, COLUMNS, instead=first_row)
        self.detail = TableDetail(theme)
        self.learning = Learning(theme)
        self._lay_out()
        self.save.clicked.connect(self.save_requested)
        self.load.clicked.connect(self.load_requested)
        self.import_.clicked.connect(self.import_requested)
        self.export.clicked.connect(self.export_requested)
        self.reset.clicked.connect(self.reset_requested)
        self.list.row_selected.connect(lambda row_id: self._show_selected())
        theme.zoomed.connect(self._arrange)
        self.show_tables(Tables(), alive=False)

    @property
    def selected(self) -> TableInfo | LearnedTable | None:
        """The table that is selected."""
        chosen = self.list.selected
        for info in self._tables.tables:
            if table_id(info) == chosen:
                return info
        for table in self._tables.learned:
            if learned_id(table) == chosen:
                return table
        return None

    def show_tables(self, tables: Tables, *, alive: bool) -> None:
        """Show what is known. `alive`: there is a worker to do something."""
        self._tables, self._alive = tables, alive
        now = datetime.now()
        self.list.show_rows(rows_of(tables.tables, tables.learned, now))
        reasons = {info.family: info for info in tables.tables if info.why_not_saved}
        self.notices.show_read_only(
            [strings.read_only(recognised(info.family_name), info.why_not_saved) for info in reasons.values()]
        )
        self.notices.show_set_aside(tables.set_aside)
        self.learning.show_sum(len(tables.tables) + len(tables.learned), size_text(tables.disk_bytes))
        self.learning.rehearsal.show_rehearsal(tables.rehearsal)
        self._show_selected()

    def tell(self, text: str, *, bad: bool = False) -> None:
        """How a command goes or went; empty for nothing."""
        self.notices.tell(text, bad=bad)

    def ask(self, title: str, detail: str, answers: Sequence[tuple[str, str, Kind]]) -> Question:
        """Ask before something is done."""
        question = Question(self._theme, title, detail, strings.CANCEL, answers, self)
        question.open()
        return question

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        painter.fillRect(area_of(self), self._theme.color("window"))
        painter.fillRect(QRectF(0, _HEADER_PX - 1, width_of(self), 1), self._theme.color("hair"))
        top = design_px(self._foot.y())
        painter.fillRect(QRectF(0, top, width_of(self), 1), self._theme.color("hair"))

    # ---- inside

    def _lay_out(self) -> None:
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self._make_header())
        column.addWidget(self.notices)
        column.addWidget(self.list, _LIST_SHARE)
        page = QWidget()
        self._parts = QBoxLayout(QBoxLayout.Direction.LeftToRight, page)
        self._parts.setContentsMargins(0, 0, 0, 0)
        self._parts.setSpacing(0)
        self._parts.addWidget(self.detail, 1)
        self._parts.addWidget(self.learning)
        self._foot = QWidget()
        set_maximum_height(self._foot, _FOOT_PX)
        inside = QVBoxLayout(self._foot)
        set_margins(inside, 0, 1, 0, 0)
        inside.addWidget(ScrollPage(self._theme, page))
        column.addWidget(self._foot, _FOOT_SHARE)

    def _arrange(self) -> None:
        """How tables learn beside the charts, or below them where they would have no room."""
        beside = width_of(self) >= _BESIDE_FROM_PX
        lay_beside(self._parts, beside)
        self.learning.set_beside(beside)

    def _make_header(self) -> QWidget:
        header = QWidget()
        set_fixed_height(header, _HEADER_PX)
        row = QHBoxLayout(header)
        set_margins(row, 26, 0, 14, 0)
        set_spacing(row, 8)
        row.addWidget(WindowTitles(self._theme, strings.TITLE, strings.SUBTITLE), 1)
        for group in ((self.save, self.load), (self.import_, self.export), (self.reset,)):
            for button in group:
                row.addWidget(button)
            add_gap(row, 8)
        return header

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
