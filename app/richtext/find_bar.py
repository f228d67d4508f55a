"""The find bar over a text: the words, the number of matches, and the steps from one to the next."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QAbstractScrollArea, QApplication, QLineEdit, QWidget
from shiboken6 import isValid

from app.controls.buttons import IconButton, on_click
from app.controls.keys import held
from app.controls.text_label import TextLabel
from app.richtext import strings
from app.theme.measures import row_of, set_fixed_width, set_font
from app.theme.sheet import set_ground
from app.theme.theme import theme
from app.theme.zoom import px

_WIDTH_PX = 348
_HEIGHT_PX = 40
_MARGIN_PX = 12
_COUNT_PX = 76


class Finder(QObject):
    """Searches the text of `area`, which its bar `name` overlays at the upper right. Base class."""

    def __init__(self, area: QAbstractScrollArea, name: str) -> None:
        super().__init__(area)
        self._area = area
        self.bar = FindBar(area, self, name)
        self.bar.hide()
        area.viewport().installEventFilter(self)
        theme.zoomed.connect(self._place)

    def show_over(self, area: QAbstractScrollArea) -> None:
        """Search the text of another area, which the bar then overlays."""
        was_open, focused = self.is_open, self.bar.field.hasFocus()
        self._area.setViewportMargins(0, 0, 0, 0)
        self._area = area
        self.bar.setParent(area)
        area.viewport().removeEventFilter(self)
        area.viewport().installEventFilter(self)
        if was_open:
            self.bar.show()
            self.bar.raise_()
            self._place()
        if focused:
            self.bar.field.setFocus()

    def search(self, needle: str) -> None:
        """Search for `needle`, beginning with the visible text."""
        raise NotImplementedError

    def step(self, forward: bool = True) -> None:
        """Show the next match, or the previous one."""
        raise NotImplementedError

    def stop(self) -> None:
        """End the search and remove the marks."""
        raise NotImplementedError

    @property
    def is_open(self) -> bool:
        return self.bar.is_open

    def open(self) -> None:
        """Show the bar and search for its last text."""
        if not self.is_open:
            self.search(self.bar.field.text())
        self.bar.open()
        self._place()

    def close(self) -> None:
        """Hide the bar and the marks, and return the focus."""
        if self.is_open:
            self.stop()
            self.bar.leave()
            self._area.setViewportMargins(0, 0, 0, 0)

    def forget(self) -> None:
        """Close the bar and clear its text, for another chat."""
        self.close()
        self.bar.field.clear()

    def search_again(self) -> None:
        """Search again after the text was replaced."""
        if self.is_open:
            self.search(self.bar.field.text())

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize:
            self._place()
        return False

    def _place(self) -> None:
        """Move the bar into the corner, and keep the first lines free for it."""
        if self.is_open:
            available = self._area.viewport().width() - 2 * _MARGIN_PX
            self.bar.resize(min(px(_WIDTH_PX), available), px(_HEIGHT_PX))
            self.bar.move(_MARGIN_PX + available - self.bar.width(), _MARGIN_PX)
            self._area.setViewportMargins(0, self.bar.height() + 2 * _MARGIN_PX, 0, 0)


class FindBar(QWidget):
    """`show_count` shows the position; Return and ⇧Return step."""

    def __init__(self, parent: QWidget, finder: Finder, name: str) -> None:
        super().__init__(parent)
        set_ground(self, "card")
        self._came_from: QWidget | None = None
        self.field = _Field(self, finder, name)
        self.field.textChanged.connect(finder.search)
        self.count = TextLabel("", 11, 16, "text2", tabular=True, align=Qt.AlignmentFlag.AlignRight)
        set_fixed_width(self.count, _COUNT_PX)
        self.previous = IconButton("up", strings.FIND_PREVIOUS)
        self.next = IconButton("down", strings.FIND_NEXT)
        self.close_button = IconButton("x", strings.FIND_CLOSE)
        on_click(
            (self.previous, lambda: finder.step(False)),
            (self.next, finder.step),
            (self.close_button, finder.close),
        )
        row = row_of((self.field, 1), self.count, 4, gap=2, margins=(12, 0, 6, 0), parent=self)
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
        # An answer far from the viewport loses its widget.
        if before is None or not isValid(before) or not before.isVisible():
            before = self.parentWidget()
        if had_focus and before is not None:
            before.setFocus()


class _Field(QLineEdit):
    def __init__(self, bar: FindBar, finder: Finder, name: str) -> None:
        super().__init__(bar)
        self._finder = finder
        self.setFrame(False)
        set_font(self, 13)
        self.setPlaceholderText(name)
        self.setAccessibleName(name)
        self.setAttribute(Qt.WidgetAttribute.WA_MacShowFocusRect, False)
        self.setProperty("kind", "bare")

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
            self._finder.step(not held(event) & Qt.KeyboardModifier.ShiftModifier)
        elif event.key() == Qt.Key.Key_Escape:
            self._finder.close()
        else:
            super().keyPressEvent(event)
