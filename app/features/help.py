"""HelpWindow: the pages of `resources/help`, with a list of them and a search.

The pages are Markdown. In their text, menu items, buttons and settings are bold and named as in the
window, which a test checks; `Menu > Item` in bold names both. The line `{shortcuts}` is replaced by tables of
the keyboard shortcuts, made from the command table.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct
from PySide6.QtCore import QProcess, QProcessEnvironment, QSize, Qt, QUrl
from PySide6.QtGui import (
    QDesktopServices,
    QFont,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextLength,
    QTextTable,
)
from PySide6.QtWidgets import QFrame, QListWidget, QTextBrowser, QTextEdit

from app.controls.buttons import Button
from app.controls.sheets import first_folder, save_file
from app.controls.text_fields import SearchField
from app.features.side_window import SideWindow
from app.theme.measures import column_of, row_of, set_fixed_width, set_font
from app.theme.sheet import set_ground
from app.theme.theme import color, theme
from app.theme.zoom import px
from core.system.children import CHILD_FOLDER, child_command, child_environment
from core.system.paths import resources_dir

TITLE = "Draftlight Help"
SEARCH = "Search help"
PAGES_NAME = "Pages"
NOTHING_FOUND = "No page contains these words."
REPORT = "Measure This Machine…"
REPORT_TITLE = "Save the Report"
MEASURING = "Measuring for up to ten minutes…"
MEASURED = "The report was saved."
NOT_MEASURED = "The report could not be made."
_ORDER = (
    "ask",
    "attach",
    "images",
    "colors",
    "origins",
    "speed",
    "models",
    "projects",
    "tools",
    "privacy",
    "server",
    "trouble",
    "shortcuts",
)
SHORTCUTS_PAGE = "shortcuts"
_SHORTCUTS_MARK = "{shortcuts}"
_SIZE, _LEAST = QSize(860, 640), QSize(560, 360)
_LIST_PX = 190
_TEXT_PX = 13.5
_MARGIN_PX, _GAP_PX = 28, 8
_LINE_PCT = 130.0
_COLUMNS_PCT = (65, 35)
_PROPORTIONAL = 1  # QTextBlockFormat.LineHeightTypes.ProportionalHeight, which PySide wants as a number

# Headings with rows of a command and its keys.
Sheet = Sequence[tuple[str, Sequence[tuple[str, str]]]]


class HelpPage(Struct, frozen=True):
    """A page: its file's name without the ending, its first heading, and its Markdown."""

    name: str
    title: str
    markdown: str


def help_pages(shortcuts: Sheet) -> tuple[HelpPage, ...]:
    """The pages in order, with `shortcuts` in their place."""
    folder, pages = resources_dir() / "help", []
    for name in _ORDER:
        text = (folder / f"{name}.md").read_text("utf-8")
        title = text.partition("\n")[0].removeprefix("# ")
        pages.append(HelpPage(name, title, text.replace(_SHORTCUTS_MARK, _tables(shortcuts))))
    return tuple(pages)


def _tables(shortcuts: Sheet) -> str:
    parts = []
    for heading, rows in shortcuts:
        lines = [f"| {title} | {_escaped(keys)} |" for title, keys in rows]
        parts.append("\n".join((f"## {heading}", "", "| Command | Keys |", "|---|---|", *lines)))
    return "\n\n".join(parts)


def _text_of(page: HelpPage) -> str:
    document = QTextDocument()
    document.setMarkdown(page.markdown)
    return document.toPlainText()


def _escaped(keys: str) -> str:
    return re.sub(r"([\\`*_|<>#+-])", r"\\\1", keys)


def _end(process: QProcess) -> None:
    """Ends a running process with its children."""
    if pid := process.processId():
        process.blockSignals(True)
        os.killpg(pid, signal.SIGTERM)


class HelpWindow(SideWindow):
    """Links between pages open them; other links open in the browser."""

    def __init__(self, pages: Sequence[HelpPage]) -> None:
        super().__init__(TITLE, _SIZE, _LEAST)
        self.pages = tuple(pages)
        self._marks: list[QTextCursor] = []
        self._texts = [_text_of(page).lower() for page in self.pages]
        self.search = SearchField(SEARCH)
        self.list = QListWidget()
        self.list.setAccessibleName(PAGES_NAME)
        self.list.setFrameShape(QFrame.Shape.NoFrame)
        self.list.addItems([page.title for page in self.pages])
        set_fixed_width(self.list, _LIST_PX)
        set_font(self.list, 13)
        self.list.ensurePolished()  # before it lays its rows out: the style sheet has their height
        self.text = QTextBrowser()
        set_ground(self.list, "sidebar")
        set_ground(self.text, "window")
        self.text.setFrameShape(QFrame.Shape.NoFrame)
        self.text.setOpenLinks(False)
        self.text.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        set_font(self.text, _TEXT_PX)
        self.report = Button(REPORT)
        self.report.clicked.connect(self._choose_report)
        self.process = QProcess(self)
        self.process.setUnixProcessParameters(QProcess.UnixProcessFlag.CreateNewSession)
        self.process.errorOccurred.connect(lambda error: self._finish_report(1))
        process = self.process
        self.destroyed.connect(lambda: _end(process))
        self.process.finished.connect(lambda status, how: self._finish_report(status))
        column_of(
            self.make_header((self.report,), (self.search,)),
            (row_of(self.list, (self.text, 1)), 1),
            parent=self,
        )
        self.list.currentRowChanged.connect(self._show_row)
        self.text.anchorClicked.connect(self._follow)
        self.search.textChanged.connect(lambda text: self._find())
        self.search.results_wanted.connect(self._next_match)
        theme.changed.connect(self._recolor)
        theme.zoomed.connect(self._recolor)
        self._recolor()
        self.list.setCurrentRow(0)

    @property
    def page(self) -> HelpPage:
        return self.pages[max(0, self.list.currentRow())]

    def show_page(self, name: str) -> None:
        self.search.clear()
        self.list.setCurrentRow([page.name for page in self.pages].index(name))

    def measure(self, file: Path) -> None:
        """Run `draftlight doctor --report FILE` in a process, whose end is shown in the header."""
        program, *words = child_command("doctor", "--quiet", "--report", str(file))
        environment = QProcessEnvironment()
        for name, value in child_environment().items():
            environment.insert(name, value)
        self.report.setEnabled(False)
        self.titles.say(MEASURING)
        self.process.setProcessEnvironment(environment)
        self.process.setWorkingDirectory(CHILD_FOLDER)
        self.process.start(program, words)

    # ---- inside

    def _choose_report(self) -> None:
        save_file(self, REPORT_TITLE, Path(first_folder(), "draftlight-report.md"), self.measure)

    def _finish_report(self, status: int) -> None:
        self.report.setEnabled(True)
        reasons = bytes(self.process.readAllStandardError().data()).decode(errors="replace").split("\n")
        self.titles.say(" ".join((NOT_MEASURED, *filter(None, reasons))) if status else MEASURED)

    def _find(self) -> None:
        """List the pages that contain all words of the search, and show the first of them."""
        words = self.search.text().lower().split()
        found = [all(word in text for word in words) for text in self._texts]
        for row, is_found in enumerate(found):
            self.list.item(row).setHidden(not is_found)
        measuring = MEASURING if self.process.processId() else ""
        self.titles.say(measuring if any(found) else NOTHING_FOUND)
        if any(found) and not found[self.list.currentRow()]:
            self.list.setCurrentRow(found.index(True))
        self._mark_matches()

    def _next_match(self) -> None:
        """Scroll to the next of the marked words, from the top again after the last one."""
        at = self.text.textCursor().position()
        after = [mark for mark in self._marks if mark.selectionStart() >= at]
        if self._marks:
            self.text.setTextCursor(min(after or self._marks, key=QTextCursor.position))

    def _mark_matches(self) -> None:
        marks, self._marks = [], []
        document, look = self.text.document(), QTextCharFormat()
        look.setBackground(color("accent_tint"))
        for word in self.search.text().split():
            found = document.find(word)
            while not found.isNull():
                mark = QTextEdit.ExtraSelection()
                mark.cursor, mark.format = found, look
                marks.append(mark)
                self._marks.append(QTextCursor(found))
                found = document.find(word, found)
        self.text.setExtraSelections(marks)

    def _show_row(self, row: int) -> None:
        if row >= 0:
            self._show_current()

    def _show_current(self) -> None:
        document = self.text.document()
        self.text.setMarkdown(self.page.markdown)
        document.setDocumentMargin(px(_MARGIN_PX))
        document.setMetaInformation(QTextDocument.MetaInformation.DocumentTitle, self.page.title)
        self.text.setAccessibleName(self.page.title)
        self._refine()
        self._mark_matches()

    def _refine(self) -> None:
        """Set line heights, gaps and the weight of bold text, which Markdown leaves to Qt."""
        document = self.text.document()
        block = document.begin()
        while block.isValid():
            cursor = QTextCursor(block)
            shape = block.blockFormat()
            heading = shape.headingLevel()
            shape.setLineHeight(_LINE_PCT, _PROPORTIONAL)
            shape.setTopMargin(px(16 if heading > 1 else 0))
            shape.setBottomMargin(0 if cursor.currentTable() else px(_GAP_PX))
            cursor.setBlockFormat(shape)
            runs = block.begin()
            while not runs.atEnd():
                run, look = runs.fragment(), QTextCharFormat()
                if run.charFormat().fontWeight() > QFont.Weight.DemiBold:
                    look.setFontWeight(QFont.Weight.DemiBold)
                if run.charFormat().isAnchor():
                    look.setForeground(color("accent"))
                cursor.setPosition(run.position())
                cursor.setPosition(run.position() + run.length(), QTextCursor.MoveMode.KeepAnchor)
                cursor.mergeCharFormat(look)
                runs += 1
            block = block.next()
        for frame in document.rootFrame().childFrames():
            if isinstance(frame, QTextTable):
                table = frame.format()
                table.setBorderBrush(color("hair"))
                table.setWidth(QTextLength(QTextLength.Type.PercentageLength, 100))
                table.setCellPadding(px(4))
                widths = [QTextLength(QTextLength.Type.PercentageLength, share) for share in _COLUMNS_PCT]
                table.setColumnWidthConstraints(widths)
                frame.setFormat(table)

    def _follow(self, url: QUrl) -> None:
        name = url.fileName().removesuffix(".md")
        if url.isRelative() and name in [page.name for page in self.pages]:
            self.show_page(name)
        else:
            QDesktopServices.openUrl(url)

    def _recolor(self) -> None:
        self.text.document().setDefaultFont(self.text.font())
        self._show_current()
