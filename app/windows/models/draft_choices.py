"""DraftChoices: which model drafts for the chosen one; those that cannot are shown with the reason."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent, QPaintEvent
from PySide6.QtWidgets import QAbstractButton, QSizePolicy, QVBoxLayout, QWidget

from app.controls.buttons.button import pressed_by
from app.controls.focus_ring import FocusRing
from app.controls.shapes import draw_box, draw_text
from app.theme.fonts import ui_font
from app.theme.measures import set_fixed_height
from app.theme.theme import Theme
from app.theme.zoom import painter_on, px_size, width_of
from app.windows.models.facts import DraftFacts
from app.windows.models.painting import LEFT

_ROW_PX = 42
_RING_PX = 15
_SIZE_PX = 64
_RIGHT = Qt.AlignmentFlag.AlignRight


class DraftChoice(QAbstractButton):
    """One model: a ring that is filled when it drafts, its name, the reason, its size."""

    def __init__(self, theme: Theme, facts: DraftFacts, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._facts = facts
        self.setCheckable(True)
        set_fixed_height(self, _ROW_PX)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._ring = FocusRing(self, theme, 6, inset_px=3)
        self.setAccessibleName(facts.name)
        self.setAccessibleDescription(f"{facts.why}, {facts.size}")
        self.setToolTip(facts.why)
        theme.changed.connect(self.update)

    @property
    def facts(self) -> DraftFacts:
        """What it stands for."""
        return self._facts

    def sizeHint(self) -> QSize:
        return px_size(QSize(200, _ROW_PX))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not pressed_by(self, event):
            super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        color = self._theme.color
        painter.fillRect(QRectF(0, 0, width_of(self), 1), color("hair"))
        ring = QRectF(0, (_ROW_PX - _RING_PX) / 2 + 0.5, _RING_PX, _RING_PX)
        if self.isChecked():
            draw_box(painter, ring, _RING_PX / 2, color("accent_fill" if self.isEnabled() else "text3"))
            draw_box(painter, ring.adjusted(4.5, 4.5, -4.5, -4.5), 3, color("on_accent"))
        else:
            fill = color("fill1") if self.underMouse() and self.isEnabled() else color("control")
            draw_box(painter, ring, _RING_PX / 2, fill, color("control_border"))
        usable = self._facts.usable
        left = _RING_PX + 10
        upper = QRectF(left, 5, width_of(self) - left - _SIZE_PX, 17)
        lower = QRectF(left, 22, width_of(self) - left - _SIZE_PX, 15)
        name_ink, ink = color("text" if usable else "text3"), color("text2" if usable else "text3")
        draw_text(painter, upper, self._facts.name, ui_font(12, 500), name_ink, LEFT)
        draw_text(painter, lower, self._facts.why, ui_font(11), ink, LEFT)
        size = QRectF(width_of(self) - _SIZE_PX, 0, _SIZE_PX, _ROW_PX)
        draw_text(painter, size, self._facts.size, ui_font(12, tabular=True), ink, _RIGHT)


class DraftChoices(QWidget):
    """At most one is on; choosing it again takes it back. `show_choices()` emits nothing."""

    chosen = Signal(str)  # the reference, empty for none

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._choices: list[DraftChoice] = []
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(0)

    @property
    def choices(self) -> tuple[DraftChoice, ...]:
        """From top to bottom."""
        return tuple(self._choices)

    def show_choices(self, facts: Sequence[DraftFacts], chosen: str, can_choose: bool) -> None:
        """`chosen` is a reference; without `can_choose` nothing can be changed."""
        if [choice.facts for choice in self._choices] != list(facts):
            for old in self._choices:
                old.hide()
                old.setParent(None)
                old.deleteLater()
            self._choices = [self._make(each) for each in facts]
            for choice in self._choices:
                self._layout.addWidget(choice)
        for choice in self._choices:
            choice.setChecked(choice.facts.reference == chosen)
            choice.setEnabled(choice.facts.usable and can_choose)

    def _make(self, facts: DraftFacts) -> DraftChoice:
        choice = DraftChoice(self._theme, facts)
        choice.clicked.connect(lambda on: self.chosen.emit(facts.reference if on else ""))
        return choice
