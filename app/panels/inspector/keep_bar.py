"""KeepBar: above the settings of sparse prefill: usual shares to keep, and what they mean."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.controls.buttons.button import Button
from app.controls.text_label import TextLabel
from app.fields.setting_field import CONTENT_PX
from app.panels.inspector import strings
from app.theme.measures import set_spacing
from app.theme.theme import Theme

SHARES_PCT = (10.0, 20.0, 30.0, 50.0, 100.0)


class KeepBar(QWidget):
    """A share that is none of the five marks none."""

    keep_chosen = Signal(float)  # percent

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.buttons = {share: Button(theme, strings.keep(share), "plain", True) for share in SHARES_PCT}
        self.estimate = TextLabel(theme, "", 11, 15, "text2", wrap=True, tabular=True, width_px=CONTENT_PX)
        row = QHBoxLayout()
        set_spacing(row, 4)
        for share, button in self.buttons.items():
            button.setAccessibleName(strings.keep_name(share))
            button.clicked.connect(lambda checked=False, share=share: self.keep_chosen.emit(share))
            row.addWidget(button)
        row.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        set_spacing(column, 6)
        column.addLayout(row)
        column.addWidget(self.estimate)
        self.estimate.hide()

    def show_keep(self, keep_pct: float) -> None:
        """Mark the share that holds."""
        for share, button in self.buttons.items():
            button.set_kind("primary" if share == keep_pct else "plain")

    def set_unused(self, reason: str) -> None:
        """Nothing is chosen here while there is a `reason`."""
        for button in self.buttons.values():
            button.setEnabled(not reason)
            button.setToolTip(reason)

    def show_estimate(self, new_tokens: int, skipped_tokens: int, dense_s: float | None) -> None:
        """What is written has `new_tokens`, of which so many are skipped; all take `dense_s`, if known."""
        words = strings.reads(new_tokens, skipped_tokens, dense_s) if new_tokens else ""
        self.estimate.setText(words)
        self.estimate.setVisible(bool(words))
