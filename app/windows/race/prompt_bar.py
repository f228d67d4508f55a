"""PromptBar: what is raced with: the question, its documents, the seed; opened, it can be changed."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFontMetricsF, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from app.controls.buttons.icon_button import IconButton
from app.controls.popup import Popup
from app.controls.shapes import draw_box, draw_text
from app.controls.spin import Spin
from app.controls.text_area import TextArea
from app.controls.text_label import TextLabel
from app.theme.fonts import ui_font
from app.theme.icons import icon_pixmap
from app.theme.measures import add_gap, set_fixed_width, set_margins, set_spacing, set_strut
from app.theme.theme import Theme
from app.theme.zoom import area_of, design_px, painter_on, px_size, ratio_of, width_of
from app.windows.race import strings
from core.events import Attachment, Message
from core.settings.declaration import find
from core.settings.request import Sampling

_HEAD_PX = 40
_RADIUS_PX = 10
_CHIP_PX = 24
_LEAST_TOKENS, _MOST_TOKENS = 8, 4096


class PromptBar(QWidget):
    """Documents come with the question and cannot be changed here."""

    edited = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._attachments: tuple[Attachment, ...] = ()
        self._line = TextLabel(theme, "", 13.5, 19, "text")
        self._line.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self._chips = QHBoxLayout()
        set_spacing(self._chips, 6)
        self._named: list[_NameChip] = []
        self.seed = TextLabel(theme, "", 12, 16, tabular=True)
        self.edit_button = IconButton(theme, "edit", strings.EDIT, True)
        self.question = TextArea(theme)
        self.question.setAccessibleName(strings.QUESTION)
        labels = find("drafting.drafter").labels
        self.drafter = Popup(theme, [(name, label) for name, label in labels.items() if name != "off"])
        self.drafter.setAccessibleName(strings.DRAFTER)
        self.most_tokens = Spin(theme, _LEAST_TOKENS, _MOST_TOKENS, 32)
        self.most_tokens.setAccessibleName(f"{strings.AT_MOST} {strings.TOKENS}")
        self._earlier = TextLabel(theme, "", 11, 15)
        self._lay_out(theme)
        self.edit_button.toggled.connect(self._editor.setVisible)
        self.question.value_changed.connect(self._show_line)
        for control in (self.question, self.drafter, self.most_tokens):
            control.value_changed.connect(self.edited)
        theme.changed.connect(self.update)
        theme.zoomed.connect(self._show_line)
        self._editor.hide()

    @property
    def message(self) -> Message:
        """The question as it stands."""
        return Message("user", self.question.value.strip(), self._attachments)

    def show_message(self, message: Message, earlier: int) -> None:
        """Another question; `earlier` messages of its chat go before it."""
        self._attachments = message.attachments
        for chip in self._named:
            self._chips.removeWidget(chip)
            chip.hide()
            chip.deleteLater()
        self._named = [_NameChip(self._theme, attachment.name) for attachment in message.attachments]
        for chip in self._named:
            self._chips.addWidget(chip)
        self._earlier.setText(strings.earlier(earlier) if earlier else "")
        self.question.set_value(message.content)
        self._show_line()

    def show_seed(self, sampling: Sampling) -> None:
        """Both answers draw with the seed of `sampling`, if they draw at all."""
        draws = sampling.temperature > 0
        self.seed.setText(strings.SEED.format(seed=sampling.seed) if draws else "")
        self.seed.setVisible(draws)

    def open_editor(self, opened: bool) -> None:
        """Show the question in full, to be changed."""
        self.edit_button.setChecked(opened)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._show_line()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        draw_box(painter, area_of(self), _RADIUS_PX, self._theme.color("fill1"))

    def _show_line(self, _text: str = "") -> None:
        text = " ".join(self.question.value.split())
        metrics = QFontMetricsF(ui_font(13.5))
        self._head.activate()
        shown = metrics.elidedText(text, Qt.TextElideMode.ElideRight, max(1.0, design_px(self._line.width())))
        self._line.setText(shown)
        self._line.setAccessibleName(text)

    def _lay_out(self, theme: Theme) -> None:
        self._head = QHBoxLayout()
        set_margins(self._head, 14, 0, 8, 0)
        set_spacing(self._head, 10)
        self._head.addWidget(self._line, 1)
        self._head.addLayout(self._chips)
        self._head.addWidget(self._earlier)
        self._head.addWidget(self.seed)
        self._head.addWidget(self.edit_button)
        set_strut(self._head, _HEAD_PX)
        self._editor = QWidget(self)
        choices = QHBoxLayout()
        set_spacing(choices, 8)
        choices.addWidget(TextLabel(theme, strings.DRAFTER, 12, 16))
        set_fixed_width(self.drafter, 160)
        choices.addWidget(self.drafter)
        add_gap(choices, 16)
        choices.addWidget(TextLabel(theme, strings.AT_MOST, 12, 16))
        choices.addWidget(self.most_tokens)
        choices.addWidget(TextLabel(theme, strings.TOKENS, 12, 16))
        choices.addStretch(1)
        inner = QVBoxLayout(self._editor)
        set_margins(inner, 14, 0, 14, 12)
        set_spacing(inner, 10)
        inner.addWidget(self.question)
        inner.addLayout(choices)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(self._head)
        column.addWidget(self._editor)


class _NameChip(QWidget):
    """A document by its name."""

    def __init__(self, theme: Theme, name: str) -> None:
        super().__init__()
        self._theme = theme
        self._name = name
        self.setAccessibleName(name)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.update)

    def sizeHint(self) -> QSize:
        text_px = QFontMetricsF(ui_font(12)).horizontalAdvance(self._name)
        return px_size(QSize(min(180, int(text_px) + 36), _CHIP_PX))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        color = self._theme.color
        draw_box(painter, area_of(self), 7, color("control"), color("hair2"))
        icon = icon_pixmap("doc", color("text2"), 14, ratio_of(self))
        painter.drawPixmap(7, (_CHIP_PX - 14) // 2, icon)
        box = QRectF(26, 0, width_of(self) - 34, _CHIP_PX)
        draw_text(painter, box, self._name, ui_font(12), color("text"), Qt.AlignmentFlag.AlignLeft)
