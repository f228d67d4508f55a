"""Section: a titled part of the inspector that opens and closes.

Closed, it shows a summary on the right. The header is a button: Space, Return or a click toggles it; Left
closes, Right opens.
"""

from __future__ import annotations

from itertools import pairwise

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QKeyEvent, QPaintEvent
from PySide6.QtWidgets import QAbstractButton, QSizePolicy, QVBoxLayout, QWidget

from app.controls.buttons import pressed_by
from app.controls.focus_ring import FocusRing
from app.controls.shapes import draw_box, draw_text
from app.panels import strings
from app.theme.fonts import ui_font
from app.theme.icons import icon_pixmap
from app.theme.measures import column_of, set_fixed_height, set_margins, set_spacing
from app.theme.sheet import set_ground
from app.theme.theme import color
from app.theme.zoom import height_of, painter_on, px_size, ratio_of, width_of

PADDING_PX = 16
_HEADER_PX = 38
_CHEVRON_PX = 14
_SUMMARY_MAX_PX = 180
_DOT_PX = 6


class Section(QWidget):
    """Add the contents to `body`. A hairline is below. `flush`: the contents are sections themselves."""

    def __init__(
        self,
        title: str,
        opened: bool = True,
        parent: QWidget | None = None,
        *,
        flush: bool = False,
    ) -> None:
        super().__init__(parent)
        set_ground(self, "", "bottom")
        self.header = _Header(title)
        self._holder = QWidget()
        self.body = QVBoxLayout(self._holder)
        if flush:
            self.body.setContentsMargins(0, 0, 0, 0)
            self.body.setSpacing(0)
        else:
            set_margins(self.body, PADDING_PX, 0, PADDING_PX, 14)
            set_spacing(self.body, 8)
        column_of(self.header, self._holder, margins=(0, 0, 0, 1), parent=self)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
        self.header.setChecked(opened)
        self._holder.setVisible(opened)
        self.header.toggled.connect(self._holder.setVisible)

    @property
    def title(self) -> str:
        """The section's name."""
        return self.header.text()

    @property
    def is_open(self) -> bool:
        """Whether the contents are shown."""
        return self.header.isChecked()

    def set_open(self, opened: bool) -> None:
        """Show or hide the contents."""
        self.header.setChecked(opened)

    def set_summary(self, summary: str) -> None:
        """Set the text on the right of the closed section."""
        self.header.set_summary(summary)

    @property
    def is_own(self) -> bool:
        """Whether the section is marked."""
        return self.header.is_own

    def set_own(self, own: bool) -> None:
        """Mark that a setting in it applies to this chat only."""
        self.header.set_own(own)

    def order_tabs(self) -> None:
        """Set the Tab order of the contents to their layout: widgets created late would come last."""
        stops = [
            widget
            for widget in self._holder.findChildren(QWidget)
            if widget.focusPolicy() & Qt.FocusPolicy.TabFocus
            and widget.focusProxy() is None
            and widget.window() is self.window()
        ]
        for before, after in pairwise((self.header, *stops)):
            QWidget.setTabOrder(before, after)


class _Header(QAbstractButton):
    """Chevron, title, and the summary while closed."""

    def __init__(self, title: str) -> None:
        super().__init__()
        self.summary = ""
        self.is_own = False
        self.setText(title)
        self.setAccessibleName(title)
        self.setCheckable(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        set_fixed_height(self, _HEADER_PX)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._ring = FocusRing(self, 6, inset_px=8)
        self.toggled.connect(self._describe)
        self._describe()

    def set_summary(self, summary: str) -> None:
        self.summary = summary
        self._describe()
        self.update()

    def set_own(self, own: bool) -> None:
        self.is_own = own
        self._describe()
        self.update()

    def sizeHint(self) -> QSize:
        return px_size(QSize(200, _HEADER_PX))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = event.key()
        if key in (Qt.Key.Key_Left, Qt.Key.Key_Right):
            self.setChecked(key == Qt.Key.Key_Right)
        elif not pressed_by(self, event):
            super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        left, right = Qt.AlignmentFlag.AlignLeft, Qt.AlignmentFlag.AlignRight
        chevron = icon_pixmap(
            "down" if self.isChecked() else "right", color("text2"), _CHEVRON_PX, ratio_of(self)
        )
        painter.drawPixmap(QPointF(PADDING_PX - 3, (height_of(self) - _CHEVRON_PX) // 2), chevron)
        font = ui_font(12.5, 600)
        title_left = PADDING_PX - 3 + _CHEVRON_PX + 6
        box = QRectF(title_left, 0, width_of(self) - title_left - PADDING_PX, height_of(self))
        draw_text(painter, box, self.text(), font, color("text"), left)
        title_px = QFontMetricsF(font).horizontalAdvance(self.text())
        if self.is_own:
            dot = QRectF(title_left + title_px + 8, (height_of(self) - _DOT_PX) / 2, _DOT_PX, _DOT_PX)
            draw_box(painter, dot, _DOT_PX / 2, color("accent"))
            title_px += 8 + _DOT_PX
        if self.summary and not self.isChecked():
            room = box.width() - title_px - 12
            width = min(_SUMMARY_MAX_PX, room)
            summary_box = QRectF(box.right() - width, 0, width, height_of(self))
            summary_font = ui_font(11.5, tabular=True)
            draw_text(painter, summary_box, self.summary, summary_font, color("text2"), right)

    def _describe(self) -> None:
        state = strings.OPEN_SECTION if self.isChecked() else strings.CLOSED_SECTION
        summary = "" if self.isChecked() else self.summary
        own = strings.OWN_SETTINGS if self.is_own else ""
        self.setAccessibleDescription(", ".join(filter(None, (state, own, summary))))
        self.setToolTip(own)
