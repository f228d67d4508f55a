"""Banner: shows a problem above the conversation.

It shows one `Trouble` at a time: title, text, the button of its remedy, and log lines on request; of several,
also its number. The controller handles the signals and then shows another problem or hides the banner.
"""

from __future__ import annotations

from PySide6.QtCore import QPointF, QSize, Qt, Signal
from PySide6.QtGui import QAccessible, QAccessibleEvent, QPainter, QPaintEvent, QPalette, QPen, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QPlainTextEdit, QSizePolicy, QSpacerItem, QVBoxLayout, QWidget

from app.chat import strings
from app.controls.buttons import Button, IconButton
from app.controls.scroll_bar import ScrollBar
from app.controls.text_label import TextLabel
from app.session.worker.trouble import Trouble
from app.theme.icons import icon_pixmap
from app.theme.measures import set_margins, set_maximum_width, set_mono_font, set_spacing
from app.theme.theme import Theme
from app.theme.zoom import area_of, painter_on, px, ratio_of

WIDTH_PX = 752
_LOG_LINES = 9
_LOG_GAP_PX = 8
# Margin above the box.
_ABOVE_PX = 12
_REMEDIES = {
    "restart": strings.RESTART_WORKER,
    "anew": strings.START_ANEW,
    "load": strings.TRY_AGAIN,
    "download": strings.DOWNLOAD_MODEL,
    "repair": strings.REPAIR_CHATS,
    "restore": strings.RESTORE_CHATS,
    "tables": strings.OPEN_TABLES,
}


class Banner(QWidget):
    """Hidden until `show_trouble()`."""

    remedy_requested = Signal(str)  # trouble.Remedy

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._trouble: Trouble | None = None
        set_maximum_width(self, WIDTH_PX)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

        self._title = TextLabel(theme, "", 13.5, 18, "text", weight=600, wrap=True, parent=self)
        self._text = TextLabel(theme, "", 12.5, 18, "text", tabular=True, wrap=True, parent=self)
        self.remedy_button = Button(theme, strings.RESTART_WORKER, "primary", True)
        self.smaller_button = Button(theme, "", small=True)
        self.details_button = Button(theme, strings.DETAILS, "link", True)
        self.count_label = TextLabel(theme, "", 11, 16, tabular=True, parent=self)
        self.next_button = Button(theme, strings.NEXT_TROUBLE, "link", True)
        self.close_button = IconButton(theme, "x", strings.CLOSE_BANNER)
        self.log_view = QPlainTextEdit(self)
        self._prepare_log()
        self._lay_out()

        self.remedy_button.clicked.connect(self._choose_remedy)
        self.smaller_button.clicked.connect(lambda: self.remedy_requested.emit("smaller"))
        self.details_button.clicked.connect(self._toggle_details)
        self.next_requested = self.next_button.clicked
        self.dismissed = self.close_button.clicked
        theme.changed.connect(self._recolor)
        theme.zoomed.connect(self._fit)
        self._recolor()
        self.setVisible(False)

    @property
    def trouble(self) -> Trouble | None:
        """The shown problem; None while hidden."""
        return self._trouble

    def show_trouble(self, trouble: Trouble, number: int = 1, count: int = 1) -> None:
        """Show `trouble`, number `number` of `count`, and announce it to assistive technology."""
        self._trouble = trouble
        self._title.setText(trouble.title)
        self._text.setText(trouble.text)
        self._text.setVisible(bool(trouble.text))
        self.remedy_button.setVisible(bool(trouble.remedy))
        _relabel(self.remedy_button, _REMEDIES.get(trouble.remedy, ""))
        self.smaller_button.setVisible(bool(trouble.smaller_tokens))
        _relabel(self.smaller_button, strings.smaller_context(trouble.smaller_tokens))
        self.details_button.setVisible(bool(trouble.log))
        position = strings.trouble_count(number, count) if count > 1 else ""
        self.count_label.setText(position)
        for widget in (self.count_label, self.next_button):
            widget.setVisible(bool(position))
        # Without buttons there is no row and no margin above it.
        any_button = bool(trouble.remedy or trouble.smaller_tokens or trouble.log or position)
        set_margins(self._buttons, 0, 11 if any_button else 0, 0, 0)
        self.log_view.setPlainText("\n".join(trouble.log))
        lines = min(max(len(trouble.log), 2), _LOG_LINES)
        self.log_view.setFixedHeight(lines * self.log_view.fontMetrics().lineSpacing() + px(18))
        self._show_log(False)
        self.setAccessibleName(" ".join(part for part in (position, trouble.title, trouble.text) if part))
        self.setVisible(True)
        QAccessible.updateAccessibility(QAccessibleEvent(self, QAccessible.Event.Alert))

    def clear(self) -> None:
        self._trouble = None
        self.setVisible(False)

    def _choose_remedy(self) -> None:
        if self._trouble and self._trouble.remedy:
            self.remedy_requested.emit(self._trouble.remedy)

    def _toggle_details(self) -> None:
        self._show_log(self.log_view.isHidden())

    def _show_log(self, shown: bool) -> None:
        self.log_view.setVisible(shown)
        self._log_gap.changeSize(0, _LOG_GAP_PX if shown else 0, vData=QSizePolicy.Policy.Fixed)
        _relabel(self.details_button, strings.HIDE_DETAILS if shown else strings.DETAILS)
        if shown:
            bar = self.log_view.verticalScrollBar()
            bar.setValue(bar.maximum())  # to the newest lines
        self._fit()

    def _prepare_log(self) -> None:
        self.log_view.setReadOnly(True)
        self.log_view.setAccessibleName(strings.LOG_NAME)
        set_mono_font(self.log_view, 11)
        self.log_view.document().setDocumentMargin(px(5))
        self.log_view.setFrameShape(QPlainTextEdit.Shape.NoFrame)
        self.log_view.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.log_view.setTabChangesFocus(True)
        self.log_view.setVerticalScrollBar(ScrollBar(self._theme, Qt.Orientation.Vertical))
        self.log_view.setHorizontalScrollBar(ScrollBar(self._theme, Qt.Orientation.Horizontal))

    def _lay_out(self) -> None:
        buttons = self._buttons = QHBoxLayout()
        set_spacing(buttons, 8)
        buttons.addWidget(self.remedy_button)
        buttons.addWidget(self.smaller_button)
        buttons.addWidget(self.details_button)
        buttons.addStretch(1)
        buttons.addWidget(self.count_label)
        buttons.addWidget(self.next_button)
        # A spacer is not hidden together with a widget, so its size is changed.
        self._log_gap = QSpacerItem(0, 0, vData=QSizePolicy.Policy.Fixed)
        column = self._column = QVBoxLayout()
        column.setContentsMargins(0, 0, 0, 0)
        set_spacing(column, 2)
        column.addWidget(self._title)
        column.addWidget(self._text)
        column.addLayout(buttons)
        column.addItem(self._log_gap)
        column.addWidget(self.log_view)
        row = self._row = QHBoxLayout(self)
        set_margins(row, 44, _ABOVE_PX + 13, 10, 14)
        set_spacing(row, 8)
        row.addLayout(column, 1)
        row.addWidget(self.close_button, 0, Qt.AlignmentFlag.AlignTop)

    def sizeHint(self) -> QSize:
        return QSize(px(WIDTH_PX), self.height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        """Sets the height of the wrapped text at this width; a layout would do that too late."""
        # Nested layouts cache their height for a width.
        for layout in (self._buttons, self._column, self._row):
            layout.invalidate()
        height = self._row.heightForWidth(self.width())
        if height != self.height():
            self.setFixedHeight(height)

    def paintEvent(self, event: QPaintEvent) -> None:
        theme, painter = self._theme, painter_on(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(theme.color("danger_border"), 1))
        painter.setBrush(theme.color("danger_tint"))
        box = area_of(self).adjusted(0.5, _ABOVE_PX + 0.5, -0.5, -0.5)
        painter.drawRoundedRect(box, 11, 11)
        icon = icon_pixmap("warn", theme.color("danger"), 16, ratio_of(self))
        painter.drawPixmap(QPointF(15, _ABOVE_PX + 15), icon)
        painter.end()

    def _recolor(self) -> None:
        palette = self.log_view.palette()
        palette.setColor(QPalette.ColorRole.Base, self._theme.color("window"))
        palette.setColor(QPalette.ColorRole.Text, self._theme.color("text"))
        self.log_view.setPalette(palette)
        self.update()


def _relabel(button: Button, text: str) -> None:
    button.setText(text)
    button.setAccessibleName(text)
    button.updateGeometry()
