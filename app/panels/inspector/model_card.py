"""ModelCard: the facts about the loaded model, as label and value rows."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.controls.buttons.button import Button
from app.controls.text_label import TextLabel
from app.fields.setting_field import CONTENT_PX, GAP_PX, LABEL_PX, ROW_PX
from app.panels.inspector import strings
from app.theme.measures import set_fixed_width, set_spacing
from app.theme.theme import Theme
from core.events import ModelInfo


class ModelCard(QWidget):
    """The facts, or a note without a model. The button opens the models."""

    models_requested = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._values: dict[str, TextLabel] = {}
        self._rows = QWidget()
        rows = QVBoxLayout(self._rows)
        rows.setContentsMargins(0, 0, 0, 0)
        rows.setSpacing(0)
        titles = (strings.MODEL_NAME, strings.MODEL_FAMILY, strings.MODEL_CONTEXT, strings.MODEL_PRECISION)
        for title in titles:
            row = QHBoxLayout()
            set_spacing(row, GAP_PX)
            label = TextLabel(theme, title, 12, ROW_PX)
            set_fixed_width(label, LABEL_PX)
            value = TextLabel(theme, "", 12, ROW_PX, "text", tabular=True)
            row.addWidget(label)
            row.addWidget(value, 1)
            rows.addLayout(row)
            self._values[title] = value
        self._note = TextLabel(theme, strings.NO_MODEL, 11, 15, wrap=True, width_px=CONTENT_PX)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        set_spacing(layout, 6)
        layout.addWidget(self._rows)
        layout.addWidget(self._note)
        self.models_button = Button(theme, strings.CHOOSE_MODEL, small=True)
        self.models_button.clicked.connect(self.models_requested)
        layout.addWidget(self.models_button, 0, Qt.AlignmentFlag.AlignLeft)
        self.show_model(None)

    @property
    def text(self) -> str:
        """All displayed text, for tests and for copying."""
        lines = [f"{title}: {label.text()}" for title, label in self._values.items() if label.text()]
        return "\n".join([*lines, self._note.text()])

    def show_model(self, info: ModelInfo | None) -> None:
        """Show the model; None for no model."""
        self._rows.setVisible(info is not None)
        for title, value in _facts(info).items():
            self._values[title].setText(value)
            self._values[title].setToolTip(value)
            self._values[title].setAccessibleName(f"{title}: {value}" if value else "")
        if info is None:
            self._note.setText(strings.NO_MODEL)
        else:
            unfit = strings.SPECULATES_NOT.format(why=info.why_not)
            drafts = strings.SPECULATES if info.speculates else unfit
            self._note.setText(" ".join(filter(None, (drafts, info.defaults_problem))))


def _facts(info: ModelInfo | None) -> dict[str, str]:
    """The value of each row; all empty without a model."""
    if info is None:
        rows = (strings.MODEL_NAME, strings.MODEL_FAMILY, strings.MODEL_CONTEXT, strings.MODEL_PRECISION)
        return dict.fromkeys(rows, "")
    precision = info.dtype
    if info.quantisation and info.quantisation != info.dtype:
        precision = strings.MODEL_PRECISION_FROM.format(dtype=info.dtype, quantisation=info.quantisation)
    return {
        strings.MODEL_NAME: info.name,
        strings.MODEL_FAMILY: info.family_name,
        strings.MODEL_CONTEXT: strings.MODEL_CONTEXT_TOKENS.format(tokens=f"{info.context_tokens:,}"),
        strings.MODEL_PRECISION: precision,
    }
