"""CompareWindow: two versions of an answer side by side, with their differences marked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

from msgspec import Struct
from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QColor, QPalette, QTextCharFormat, QTextCursor
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPlainTextEdit, QVBoxLayout, QWidget

from app.chat import stats_line
from app.controls.choices import Popup
from app.controls.scroll_bar import ScrollBar
from app.controls.text_label import TextLabel
from app.features.side_window import SideWindow
from app.session.chats.conversation import Version
from app.theme.measures import set_font, set_margins, set_spacing
from app.theme.theme import Theme

TITLE = "Compare Versions"
VERSION = "Version {place} of {count}"
SIDES = ("Left version", "Right version")
SAME = "Both say the same."
DIFFERENT = "{percent}% of the words are the same. What only one has is marked."


# Words, whitespace runs, and single other characters.
_PIECES = re.compile(r"\w+|\s+|[^\w\s]")


class Stretch(Struct, frozen=True):
    """Characters [start, end) of a text; `common` if the other text has them, too."""

    start: int
    end: int
    common: bool


class Difference(Struct, frozen=True):
    """The stretches of both texts; `alike` is the share of common words, 0 to 1."""

    left: tuple[Stretch, ...]
    right: tuple[Stretch, ...]
    alike: float


def difference(left: str, right: str) -> Difference:
    """Compares by words, so that a changed word is marked as a whole."""
    ours, theirs = _PIECES.findall(left), _PIECES.findall(right)
    matcher = SequenceMatcher(None, ours, theirs, autojunk=len(ours) * len(theirs) > 4_000_000)
    sides: tuple[list[Stretch], list[Stretch]] = ([], [])
    at = [0, 0]
    common = 0
    for kind, a, b, c, d in matcher.get_opcodes():
        for side, pieces in enumerate((ours[a:b], theirs[c:d])):
            end = at[side] + sum(map(len, pieces))
            if end > at[side]:
                sides[side].append(Stretch(at[side], end, kind == "equal"))
            at[side] = end
        common += sum(not piece.isspace() for piece in ours[a:b]) if kind == "equal" else 0
    words = max(sum(not piece.isspace() for piece in pieces) for pieces in (ours, theirs))
    return Difference(tuple(sides[0]), tuple(sides[1]), common / words if words else 1.0)


SIZE = QSize(1100, 720)
_MINIMUM = QSize(640, 360)
_PAD_PX = 16


class CompareWindow(SideWindow):
    """`show_versions` needs at least two versions."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, TITLE, SIZE, _MINIMUM, parent)
        self._versions: tuple[Version, ...] = ()
        self.choices = (Popup(theme, ()), Popup(theme, ()))
        self.texts = (self._make_text(), self._make_text())
        self._questions = tuple(TextLabel(theme, "", 13, 18, "text", weight=600) for _ in self.texts)
        self._figures = tuple(
            TextLabel(theme, "", 11, 16, "text2", wrap=True, tabular=True) for _ in self.texts
        )
        self.summary = TextLabel(theme, "", 12, 16, "text2")
        self._lay_out()
        for choice, name in zip(self.choices, SIDES, strict=True):
            choice.setAccessibleName(name)
            choice.currentIndexChanged.connect(self._show)
        theme.changed.connect(self._show)

    def show_versions(self, versions: Sequence[Version], place: int) -> None:
        """Shows the version at `place` at the right, the one before (for the first: after) at the left."""
        self._versions = tuple(versions)
        for choice, chosen in zip(self.choices, sorted((place, place - 1 if place else 1)), strict=True):
            choice.blockSignals(True)
            choice.clear()
            for number in range(1, len(versions) + 1):
                choice.addItem(VERSION.format(place=number, count=len(versions)))
            choice.setCurrentIndex(chosen)
            choice.updateGeometry()
            choice.blockSignals(False)
        self._show()

    # ---- inside

    def _show(self) -> None:
        if not self._versions:
            return
        shown = [self._versions[choice.currentIndex()] for choice in self.choices]
        found = difference(shown[0].answer.text, shown[1].answer.text)
        inks = (self._theme.color("danger_tint"), self._theme.color("accent_tint"))
        for side, (version, stretches) in enumerate(zip(shown, (found.left, found.right), strict=True)):
            self._fill(self.texts[side], version.answer.text, stretches, inks[side])
            self._questions[side].setText(" ".join(version.user.content.split()))
            finished = version.answer.finished
            parts = stats_line.finished_parts(finished) if finished else ()
            if version.answer.status == "edited":
                parts = stats_line.edited_parts()
            self._figures[side].setText(stats_line.plain_text(parts))
            self._figures[side].setToolTip(stats_line.plain_text(parts))
        same = shown[0].answer.text == shown[1].answer.text
        percent = min(99, round(100 * found.alike))
        self.summary.setText(SAME if same else DIFFERENT.format(percent=percent))

    def _fill(self, text: QPlainTextEdit, words: str, stretches: Sequence[Stretch], ink: QColor) -> None:
        palette = text.palette()
        palette.setColor(QPalette.ColorRole.Base, self._theme.color("window"))
        palette.setColor(QPalette.ColorRole.Text, self._theme.color("text"))
        text.setPalette(palette)
        set_font(text, 14)
        text.setPlainText("")
        cursor = QTextCursor(text.document())
        plain, marked = QTextCharFormat(), QTextCharFormat()
        marked.setBackground(ink)
        for stretch in stretches:
            cursor.insertText(words[stretch.start : stretch.end], plain if stretch.common else marked)
        text.moveCursor(QTextCursor.MoveOperation.Start)

    def _make_text(self) -> QPlainTextEdit:
        text = QPlainTextEdit(self)
        text.setReadOnly(True)
        text.document().setDocumentMargin(0)
        text.setFrameShape(QFrame.Shape.NoFrame)
        text.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        text.setVerticalScrollBar(ScrollBar(self._theme, Qt.Orientation.Vertical))
        # Lines wrap; only the caret's width would scroll.
        text.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        return text

    def _lay_out(self) -> None:
        page = QVBoxLayout(self)
        set_margins(page, _PAD_PX, _PAD_PX, _PAD_PX, _PAD_PX)
        set_spacing(page, 10)
        sides = QHBoxLayout()
        set_spacing(sides, 2 * _PAD_PX)
        for choice, question, text, figures in zip(
            self.choices, self._questions, self.texts, self._figures, strict=True
        ):
            column = QVBoxLayout()
            set_spacing(column, 6)
            column.addWidget(choice, 0, Qt.AlignmentFlag.AlignLeft)
            column.addWidget(question)
            column.addWidget(text, 1)
            column.addWidget(figures)
            sides.addLayout(column, 1)
        page.addLayout(sides, 1)
        page.addWidget(self.summary)
