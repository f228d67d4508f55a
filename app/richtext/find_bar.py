"""FindBar: what to look for in a text, how many there are, and the way from one to the next."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent, QPaintEvent, QPalette
from PySide6.QtWidgets import QApplication, QHBoxLayout, QLineEdit, QWidget

from app.controls.buttons import IconButton
from app.controls.shapes import draw_box
from app.controls.text_label import TextLabel
from app.richtext import strings
from app.theme.measures import add_gap, set_fixed_width, set_font, set_margins, set_spacing
from app.theme.theme import Theme
from app.theme.zoom import area_of, painter_on, px

WIDTH_PX = 348
HEIGHT_PX = 40
_RADIUS_PX = 10
_COUNT_PX = 76


class FindBar(QWidget):
    """Overlays the text described by `name`. `show_count` shows the position; Return and ⇧Return step."""

    text_changed = Signal(str)
    step_requested = Signal(bool)  # forwards
    closed = Signal()

    def __init__(self, theme: Theme, parent: QWidget, name: str = strings.FIND) -> None:
        super().__init__(parent)
        self._theme = theme
        self._came_from: QWidget | None = None
        self.resize(px(WIDTH_PX), px(HEIGHT_PX))
        self.field = _Field(theme, self, name)
        self.field.textChanged.connect(self.text_changed)
        self.field.stepped.connect(self.step_requested)
        self.field.left.connect(self.closed)
        self.count = TextLabel(theme, "", 11, 16, "text2", tabular=True, align=Qt.AlignmentFlag.AlignRight)
        set_fixed_width(self.count, _COUNT_PX)
        self.previous = IconButton(theme, "up", strings.FIND_PREVIOUS)
        self.next = IconButton(theme, "down", strings.FIND_NEXT)
        self.close_button = IconButton(theme, "x", strings.FIND_CLOSE)
        self.previous.clicked.connect(lambda: self.step_requested.emit(False))
        self.next.clicked.connect(lambda: self.step_requested.emit(True))
        self.close_button.clicked.connect(self.closed)
        row = QHBoxLayout(self)
        set_margins(row, 12, 0, 6, 0)
        set_spacing(row, 2)
        row.addWidget(self.field, 1)
        row.addWidget(self.count)
        add_gap(row, 4)
        for button in (self.previous, self.next, self.close_button):
            row.addWidget(button)
        self.setAccessibleName(name)
        self.show_count(0, 0, True)

    def show_count(self, number: int, count: int, done: bool, similar: int = 0) -> None:
        """Match `number` of `count` is looked at; `done` once everything was searched.

        After the matches there are `similar` passages that do not have the words.
        """
        if similar and number > count:
            text, spoken = strings.FIND_SIMILAR, strings.FIND_SIMILAR_SPOKEN
            number, count = number - count, similar
        elif similar:
            text, spoken = strings.FIND_AND_SIMILAR, strings.FIND_AND_SIMILAR_SPOKEN
        elif count:
            text = spoken = strings.FIND_COUNT + ("" if done else "…")
        else:
            text = spoken = "" if not self.field.text().strip() else strings.FIND_NONE if done else "…"
        figures = {"number": number, "count": count, "similar": similar}
        self.count.setText(text.format(**figures))
        self.count.setAccessibleName(spoken.format(**figures))
        self.count.setToolTip(spoken.format(**figures) if similar else "")
        for button in (self.previous, self.next):
            button.setEnabled(count > 0)

    @property
    def is_open(self) -> bool:
        """Whether it is shown."""
        return not self.isHidden()

    def open(self) -> None:
        """Show the bar with the last search text selected."""
        if not self.is_open:
            self._came_from = QApplication.focusWidget()
        self.show()
        self.raise_()
        self.field.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.field.selectAll()

    def leave(self) -> None:
        """Hide the bar and return the keyboard focus to its previous widget, or to the searched text."""
        focused = QApplication.focusWidget()
        had_focus = focused is not None and self.isAncestorOf(focused)
        self.hide()
        before, self._came_from = self._came_from, None
        if before is None or not before.isVisible():
            before = self.parentWidget()
        if had_focus and before is not None:
            before.setFocus()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        frame = "accent_mid" if self.field.hasFocus() else "hair2"
        color = self._theme.color
        draw_box(painter, area_of(self), _RADIUS_PX, color("raised"), color(frame))


class _Field(QLineEdit):
    stepped = Signal(bool)
    left = Signal()

    def __init__(self, theme: Theme, parent: FindBar, name: str) -> None:
        super().__init__(parent)
        self._theme = theme
        self._bar = parent
        self.setFrame(False)
        set_font(self, 13)
        self.setPlaceholderText(name)
        self.setAccessibleName(name)
        self.setAttribute(Qt.WidgetAttribute.WA_MacShowFocusRect, False)
        theme.changed.connect(self._restyle)
        self._restyle()

    def event(self, event: QEvent) -> bool:
        if (
            event.type() == QEvent.Type.ShortcutOverride
            and isinstance(event, QKeyEvent)
            and event.key() == Qt.Key.Key_Escape
        ):
            event.accept()  # here Escape closes the bar; elsewhere it stops the answer
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.stepped.emit(not event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        elif event.key() == Qt.Key.Key_Escape:
            self.left.emit()
        else:
            super().keyPressEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self._bar.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._bar.update()

    def _restyle(self) -> None:
        palette = self._theme.qpalette()
        palette.setColor(QPalette.ColorRole.Base, self._theme.color("raised"))
        self.setPalette(palette)
