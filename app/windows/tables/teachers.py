"""Teachers: from which models a table was learned, as bars by share of entries."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QPaintEvent
from PySide6.QtWidgets import QLabel, QSizePolicy, QWidget

from app.controls.shapes import draw_box, draw_text
from app.gauges.figures import percent
from app.theme.fonts import ui_font
from app.theme.measures import set_fixed_height
from app.theme.theme import Theme
from app.theme.zoom import painter_on, px_size, width_of
from app.windows.tables import strings
from core.events import TableTeacher

MOST = 3
_TITLE_PX = 26
_ROW_PX = 24
_BAR_PX = 4
_LEAST_NAME_PX, _MOST_NAME_PX = 100, 200
_SHARE_PX = 44


class Teachers(QLabel):
    """The models that taught most; all others together are the last bar."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._shares: tuple[tuple[str, float], ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        set_fixed_height(self, _TITLE_PX + MOST * _ROW_PX)
        self.setAccessibleName(strings.BY_SHARE)
        theme.changed.connect(self.update)

    def show_teachers(self, teachers: Sequence[TableTeacher]) -> None:
        """Draw these."""
        self._shares = shares(teachers)
        self.setAccessibleDescription(", ".join(f"{name} {percent(share)}" for name, share in self._shares))
        self.setToolTip("\n".join(f"{teacher.model}: {teacher.entries:,}" for teacher in teachers))
        self.update()

    def sizeHint(self) -> QSize:
        return px_size(QSize(680, _TITLE_PX + MOST * _ROW_PX))

    def paintEvent(self, event: QPaintEvent) -> None:
        if not self._shares:
            return
        painter = painter_on(self)
        color = self._theme.color
        left, right = Qt.AlignmentFlag.AlignLeft, Qt.AlignmentFlag.AlignRight
        title = QRectF(0, 0, width_of(self), _TITLE_PX - 8)
        draw_text(painter, title, strings.BY_SHARE, ui_font(12), color("text2"), left)
        font = ui_font(12)
        widest = max(QFontMetricsF(font).horizontalAdvance(name) for name, _ in self._shares)
        name_px = min(_MOST_NAME_PX, max(_LEAST_NAME_PX, widest + 12))
        for place, (name, share) in enumerate(self._shares):
            row = QRectF(0, _TITLE_PX + place * _ROW_PX, width_of(self), _ROW_PX)
            draw_text(
                painter, QRectF(row.left(), row.top(), name_px - 10, _ROW_PX), name, font, color("text"), left
            )
            bar = QRectF(name_px, row.center().y() - 2, row.width() - name_px - _SHARE_PX, _BAR_PX)
            draw_box(painter, bar, 2, color("fill2"))
            bar.setWidth(max(2.0, bar.width() * share))
            draw_box(painter, bar, 2, color("series_blue"))
            draw_text(painter, row, percent(share), ui_font(12, tabular=True), color("text2"), right)


def shares(teachers: Sequence[TableTeacher]) -> tuple[tuple[str, float], ...]:
    """At most `MOST` names with their shares, most first; they sum to 1."""
    total = sum(teacher.entries for teacher in teachers)
    if not total:
        return ()
    ranked = sorted(teachers, key=lambda teacher: -teacher.entries)
    if len(ranked) > MOST:
        rest = sum(teacher.entries for teacher in ranked[MOST - 1 :])
        ranked = [*ranked[: MOST - 1], TableTeacher(strings.OTHERS, rest)]
    return tuple((teacher.model, teacher.entries / total) for teacher in ranked)
