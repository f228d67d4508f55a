"""ChatColumn: header, transcript, composer and the bars around them, and which give way in a low window.

The transcript keeps six lines: where they do not fit, first the legend or hint is hidden, then the gauges;
then the queue is folded into a button of the composer, which gets smaller margins.
"""

from __future__ import annotations

from PySide6.QtCore import QEvent
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QLayout, QWidget

from app.controllers.views import Views
from app.theme.measures import column_of, row_of, set_margins
from app.theme.zoom import px

_SIDE_MARGIN_PX = 24
_LEAST_LINES = 6
_LINE_PX = 25  # of an answer's text
_BAR_GAP_PX = 6
# Above the composer, in a low window too, and below it where the legend is hidden.
_ABOVE_PX, _LOW_ABOVE_PX, _BELOW_PX = 10, 4, 6


class ChatColumn(QWidget):
    """Owns the layout of `views` around the conversation."""

    def __init__(self, views: Views, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._views = views
        self._gauges, self._foot = QWidget(), QWidget()
        column_of(views.strip, parent=self._gauges)
        column_of(views.legend, views.hint, parent=self._foot)
        self._composer_row = _centred(views.composer, _ABOVE_PX)
        views.composer.add_tool(views.queue_list.fold_button)
        column_of(
            views.header,
            self._gauges,
            _centred(views.banner, 0),
            (views.pages, 1),
            _centred(views.notice_bar, _BAR_GAP_PX),
            _centred(views.queue_list, _BAR_GAP_PX),
            _centred(views.editing_bar, _BAR_GAP_PX),
            self._composer_row,
            self._foot,
            parent=self,
        )

    def event(self, event: QEvent) -> bool:
        done = super().event(event)
        if event.type() is QEvent.Type.LayoutRequest:
            self._fit()
        return done

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        views, queue = self._views, self._views.queue_list
        bars = (views.banner, views.notice_bar, views.editing_bar)
        left_px = self.height() - _height(views.header) - views.composer.full_height_px - px(_ABOVE_PX)
        left_px -= sum(_height(bar) + px(_BAR_GAP_PX) for bar in bars if not bar.isHidden())
        left_px -= px(_LEAST_LINES * _LINE_PX)
        # The most important first.
        folded = bool(queue.text) and queue.full_height_px + px(_BAR_GAP_PX) > left_px
        left_px -= queue.full_height_px + px(_BAR_GAP_PX) if queue.text and not folded else 0
        gauges = self._gauges.sizeHint().height() <= left_px and not folded
        left_px -= self._gauges.sizeHint().height() if gauges else 0
        foot = self._foot.sizeHint().height() <= left_px and gauges
        queue.set_folded(folded)
        low = folded or left_px < 0
        views.composer.set_low(low)
        above_px, below_px = _LOW_ABOVE_PX if low else _ABOVE_PX, 0 if foot else _BELOW_PX
        set_margins(self._composer_row, _SIDE_MARGIN_PX, above_px, _SIDE_MARGIN_PX, below_px)
        self._gauges.setVisible(gauges)
        self._foot.setVisible(foot)


def _height(widget: QWidget) -> int:
    """The height of a widget that does not stretch, in screen pixels."""
    return widget.minimumHeight() or widget.sizeHint().height()


def _centred(widget: QWidget, top_px: int) -> QLayout:
    """Returns a layout that centres `widget` at its maximum width, with side margins in a narrow window."""
    return row_of((widget, 1), margins=(_SIDE_MARGIN_PX, top_px, _SIDE_MARGIN_PX, 0))
