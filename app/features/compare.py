"""CompareWindow: two versions of an answer side by side, with their differences marked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

from msgspec import Struct
from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QColor, QTextCharFormat, QTextCursor
from PySide6.QtWidgets import QPlainTextEdit, QWidget

from app.chat import stats_line
from app.controls.choices import Popup
from app.controls.text_label import TextLabel
from app.features.side_window import SideWindow, TextView
from app.session.chats.conversation import Version
from app.theme.measures import column_of, row_of
from app.theme.theme import Theme

TITLE = "Compare Versions"
VERSION = "Version {place} of {count}"
SIDES = ("Left version", "Right version")
SAME = "Both say the same."
DIFFERENT = "{percent}% of the words are the same. Words that only one version has are highlighted."


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
        self.texts = tuple(TextView(theme, name, 14) for name in SIDES)
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
        count = len(versions)
        names = [(str(number), VERSION.format(place=number + 1, count=count)) for number in range(count)]
        for choice, chosen in zip(self.choices, sorted((place, place - 1 if place else 1)), strict=True):
            choice.show_options(names, str(chosen))
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
        text.setPlainText("")
        cursor = QTextCursor(text.document())
        plain, marked = QTextCharFormat(), QTextCharFormat()
        marked.setBackground(ink)
        for stretch in stretches:
            cursor.insertText(words[stretch.start : stretch.end], plain if stretch.common else marked)
        text.moveCursor(QTextCursor.MoveOperation.Start)

    def _lay_out(self) -> None:
        sides = row_of(gap=2 * _PAD_PX)
        for choice, question, text, figures in zip(
            self.choices, self._questions, self.texts, self._figures, strict=True
        ):
            column = column_of(choice, question, (text, 1), figures, gap=6)
            column.setAlignment(choice, Qt.AlignmentFlag.AlignLeft)
            sides.addLayout(column, 1)
        margins = (_PAD_PX, _PAD_PX, _PAD_PX, _PAD_PX)
        column_of((sides, 1), self.summary, gap=10, margins=margins, parent=self)
