"""Notices: what must be known of the tables, above the list: read only, set aside, how a command ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.controls.buttons.icon_button import IconButton
from app.controls.text_label import TextLabel
from app.theme.measures import set_margins
from app.theme.theme import Theme
from app.theme.zoom import area_of, height_of, painter_on, width_of
from app.windows.tables import strings


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
