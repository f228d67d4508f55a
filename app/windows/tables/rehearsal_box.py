"""RehearsalBox: the switch for the loaded model's rehearsal, and how it stands."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Signal
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from app.controls.buttons.switch import Switch
from app.controls.shapes import draw_box
from app.controls.text_label import TextLabel
from app.theme.measures import set_fixed_height, set_spacing
from app.theme.theme import Theme
from app.theme.zoom import painter_on, width_of
from app.windows.tables import strings
from core.events import Rehearsing

_BAR_PX = 4


class RehearsalBox(QWidget):
    """`switched` tells a person's choice for the model that is shown; `show_model` is silent."""

    switched = Signal(bool)

    def __init__(self, theme: Theme, width_px: int, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.title = TextLabel(theme, strings.REHEARSAL, 13, 20, "text", weight=600)
        self.switch = Switch(theme)
        self.switch.toggled.connect(self.switched)
        self.model = TextLabel(theme, "", 12, 18)
        self.state = TextLabel(theme, "", 12, 16, "text", tabular=True, wrap=True, width_px=width_px)
        self.bar = _Bar(theme)
        head = QHBoxLayout()
        set_spacing(head, 10)
        head.addWidget(self.title)
        head.addWidget(self.model, 1)
        head.addWidget(self.switch)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        set_spacing(column, 4)
        column.addLayout(head)
        column.addWidget(self.bar)
        column.addWidget(self.state)
        column.addWidget(TextLabel(theme, strings.REHEARSAL_HELP, 11, 15, wrap=True, width_px=width_px))
        self.show_model("", wanted=False)

    def show_model(self, model: str, *, wanted: bool) -> None:
        """The loaded model's name (empty: none is loaded), and whether it is to rehearse."""
        self.model.setText(model or strings.NO_MODEL)
        self.switch.blockSignals(True)
        self.switch.setChecked(wanted)
        self.switch.blockSignals(False)
        self.switch.setEnabled(bool(model))
        self.switch.setAccessibleName(strings.rehearse_model(model) if model else strings.REHEARSAL)
        self.switch.setToolTip(strings.REHEARSAL_HELP)
        self.switch.update()

    def show_rehearsal(self, rehearsal: Rehearsing | None) -> None:
        """How it stands; None while nothing is known of it."""
        on = rehearsal is not None and rehearsal.state != "off"
        self.state.setVisible(on)
        self.bar.setVisible(on)
        if rehearsal is None or not on:
            return
        words = state_text(rehearsal)
        if rehearsal.prompts:
            words = strings.rehearsed(words, rehearsal.answered, rehearsal.prompts, rehearsal.tokens)
        self.state.setText(words)
        self.state.set_color("danger" if rehearsal.state == "failed" else "text")
        self.state.updateGeometry()
        self.bar.show_share(rehearsal.answered / max(1, rehearsal.prompts), words)


def state_text(rehearsal: Rehearsing) -> str:
    """What a rehearsal does or waits for, in words."""
    match rehearsal.state:
        case "running":
            return strings.REHEARSAL_RUNNING
        case "done":
            return strings.REHEARSAL_DONE
        case "failed":
            return strings.rehearsal_failed(rehearsal.trouble)
        case "off":
            return strings.REHEARSAL_OFF
    waits = {"quiet": strings.REHEARSAL_QUIET, "answer": strings.REHEARSAL_ANSWER}
    return waits.get(rehearsal.waits_for, strings.REHEARSAL_NEXT)


class _Bar(QLabel):
    """How much is done. A QLabel, so that assistive technology reads it."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._share = 0.0
        set_fixed_height(self, _BAR_PX + 6)
        self.setAccessibleName(strings.REHEARSAL_PROGRESS)
        theme.changed.connect(self.update)

    def show_share(self, share: float, words: str) -> None:
        self._share = min(1.0, share)
        self.setAccessibleDescription(words)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        box = QRectF(0, 3, width_of(self), _BAR_PX)
        draw_box(painter, box, _BAR_PX / 2, self._theme.color("fill2"))
        if self._share > 0:
            box.setWidth(max(_BAR_PX / 2, box.width() * self._share))
            draw_box(painter, box, min(_BAR_PX / 2, box.width() / 2), self._theme.color("series_blue"))
