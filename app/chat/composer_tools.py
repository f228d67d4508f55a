"""Parts of the composer: the notice of a message that is too long, context gauge, Send, and thinking switch.

Token counts are of the plain texts. The chat template adds a few, so the worker may refuse a message that
seems to fit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from msgspec import Struct
from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import (
    QAccessible,
    QAccessibleEvent,
    QFontMetricsF,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
)
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QWidget

from app.chat import strings
from app.controls.buttons import Button, IconLabel, themed_icon
from app.controls.choices import Switch
from app.controls.text_label import TextLabel
from app.theme.fonts import ui_font
from app.theme.measures import column_of, row_of, set_margins, set_spacing
from app.theme.sheet import set_ground
from app.theme.theme import theme
from app.theme.zoom import painter_on, px_size, width_of

# A shortened document leaves an eighth of the context, and at least 256 tokens, for the template, the answer
# and later turns.
_SPARE_PART = 8
_LEAST_SPARE_TOKENS = 256
# A shorter beginning of a document is not worth sending.
_MIN_KEPT_TOKENS = 128

Action = Literal["remove", "shorten", "new_chat"]


class Remedy(Struct, frozen=True):
    """`attachment` is the index of the document or, after all documents, of the image. `tokens`: its tokens,
    or those left after shortening.
    """

    action: Action
    attachment: int = -1
    tokens: int = 0


class MessageSize(Struct, frozen=True):
    """Token counts of the context and the draft; None: not counted yet, taken as 0, so that no estimate
    decides. `exact`: all are counted. `is_new`: the chat has no messages, so a new chat has no more space.
    `image_tokens`: rows of the images.
    """

    used_tokens: int
    typed_tokens: int | None
    attachment_tokens: tuple[int | None, ...]
    limit_tokens: int
    exact: bool = True
    is_new: bool = False
    image_tokens: tuple[int | None, ...] = ()

    @property
    def attached_tokens(self) -> tuple[int | None, ...]:
        """Tokens of the documents, then of the images."""
        return (*self.attachment_tokens, *self.image_tokens)

    @property
    def new_tokens(self) -> int:
        """The counted tokens of the draft."""
        return (self.typed_tokens or 0) + sum(tokens or 0 for tokens in self.attached_tokens)

    @property
    def over_tokens(self) -> int:
        """Tokens over the limit; 0 if it fits or the limit is unknown."""
        if not self.limit_tokens or not self.new_tokens:
            return 0
        # The engine needs one position for the first token of the answer.
        return max(0, self.used_tokens + self.new_tokens - (self.limit_tokens - 1))


def remedies(written: MessageSize, refused_by_tokens: int = 0) -> tuple[Remedy, ...]:
    """The remedies, the most effective first; empty if the message fits.

    `refused_by_tokens`, the excess reported by the worker, takes precedence over the sum of the counts.
    """
    over = refused_by_tokens or written.over_tokens
    if not over:
        return ()
    found = []
    if written.used_tokens and not written.is_new:
        found.append(Remedy("new_chat"))
    counted = [(index, tokens) for index, tokens in enumerate(written.attached_tokens) if tokens]
    if counted:
        index, tokens = max(counted, key=lambda entry: entry[1])
        kept = tokens - over - max(_LEAST_SPARE_TOKENS, written.limit_tokens // _SPARE_PART)
        if kept >= _MIN_KEPT_TOKENS and index < len(written.attachment_tokens):
            found.append(Remedy("shorten", index, kept))
        found.append(Remedy("remove", index, tokens))
    return tuple(found)


def beginning(text: str, tokens: int, kept_tokens: int) -> str:
    """About the first `kept_tokens` of the `tokens` of `text`, cut at the end of a line or word."""
    cut = text[: len(text) * kept_tokens // max(1, tokens)]
    for end in ("\n", " "):
        at = cut.rfind(end)
        if at > 0.8 * len(cut):
            return cut[:at].rstrip()
    return cut


NoticeAction = tuple[str, Callable[[], object]]  # a button's label, and its action


class ComposerNotice(QWidget):
    """A warning inside the composer with a button for each remedy. Hidden without a text."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        set_ground(self, "danger")
        self._actions: list[NoticeAction] = []
        self._text = TextLabel("", 12, 17, "text", tabular=True, parent=self)
        self.buttons: list[Button] = []
        self._row = QHBoxLayout()
        self._row.setContentsMargins(0, 0, 0, 0)
        set_spacing(self._row, 6)
        icon = IconLabel("warn", "danger")
        row = row_of(icon, (column_of(self._text, self._row, gap=7), 1), gap=9, parent=self)
        set_margins(row, 11, 9, 12, 9)
        row.setAlignment(icon, Qt.AlignmentFlag.AlignTop)
        self._row.addStretch(1)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setVisible(False)

    @property
    def text(self) -> str:
        """The text; empty while hidden."""
        return self._text.text()

    def show_notice(self, text: str, actions: Sequence[NoticeAction]) -> None:
        """Show `text` with a button for each action; empty hides the notice.

        Buttons are kept while the labels stay the same, so that a click is not lost.
        """
        is_new = text != self.text
        self._text.setText(text)
        self._actions = list(actions)
        if [label for label, _ in actions] != [button.text() for button in self.buttons]:
            self._rebuild()
        self.setVisible(bool(text))
        self.setAccessibleName(text)
        if text and is_new:
            QAccessible.updateAccessibility(QAccessibleEvent(self, QAccessible.Event.Alert))

    def _rebuild(self) -> None:
        for button in self.buttons:
            self._row.removeWidget(button)
            button.hide()
            button.deleteLater()
        self.buttons = [Button(label, "plain", True, self) for label, _ in self._actions]
        for index, button in enumerate(self.buttons):
            self._row.insertWidget(index, button, 0, Qt.AlignmentFlag.AlignLeft)
            button.clicked.connect(lambda checked=False, index=index: self._actions[index][1]())
            button.show()


# Above this the ring is vermilion.
WARN_FRACTION = 0.85
_HEIGHT_PX = 24
_LEFT_PX, _RING_PX, _GAP_PX, _RIGHT_PX = 7, 14, 6, 10
_RADIUS_PX, _STROKE_PX = 5.2, 2.0


class ContextUse(Struct, frozen=True):
    """The tokens of the next prompt by part; a part that is not counted is estimated.

    - `chat_tokens`: system prompt, chat template, and all earlier messages and documents of the chat.
    - `document_tokens`, `image_tokens`, `typed_tokens`: of the message that is being written.
    - `limit_tokens`: length of the context; 0 if no model is loaded.
    """

    chat_tokens: int = 0
    document_tokens: int = 0
    typed_tokens: int = 0
    limit_tokens: int = 0
    chat_exact: bool = True
    documents_exact: bool = True
    typed_exact: bool = True
    image_tokens: int = 0
    images_exact: bool = True

    @property
    def used_tokens(self) -> int:
        return self.chat_tokens + self.document_tokens + self.image_tokens + self.typed_tokens

    @property
    def exact(self) -> bool:
        return self.chat_exact and self.documents_exact and self.images_exact and self.typed_exact


class ContextPill(QWidget):
    """The used part of the model's context, as a ring and in figures; the tooltip has the parts of the sum.

    Without a model it has no limit, and is hidden while there is nothing to count.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.use = ContextUse()
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.setVisible(False)

    @property
    def used_tokens(self) -> int:
        return self.use.used_tokens

    @property
    def limit_tokens(self) -> int:
        """0: unknown."""
        return self.use.limit_tokens

    @property
    def has_figures(self) -> bool:
        """Whether there is anything to show."""
        return self.limit_tokens > 0 or self.used_tokens > 0

    @property
    def near_limit(self) -> bool:
        """Whether the ring shows a warning."""
        return self.used_tokens > WARN_FRACTION * self.limit_tokens > 0

    @property
    def text(self) -> str:
        """The figures, with “~” if they are estimated."""
        return strings.context_pill(self.used_tokens, self.limit_tokens, exact=self.use.exact)

    def show_context(self, use: ContextUse) -> None:
        if use == self.use:
            return
        before, self.use = self.sizeHint(), use
        self.setVisible(self.has_figures)
        self.setAccessibleName(strings.context_spoken(self.text))
        parts = strings.context_parts(
            (use.chat_tokens, use.chat_exact),
            (use.document_tokens, use.documents_exact),
            (use.image_tokens, use.images_exact),
            (use.typed_tokens, use.typed_exact),
        )
        self.setAccessibleDescription(parts)
        self.setToolTip(f"{self.accessibleName()}\n{parts}")
        if self.sizeHint() != before:
            self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        width = QFontMetricsF(ui_font(11.5, tabular=True)).horizontalAdvance(self.text)
        return px_size(QSize(round(_LEFT_PX + _RING_PX + _GAP_PX + width + _RIGHT_PX), _HEIGHT_PX))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        middle = QPointF(_LEFT_PX + _RING_PX / 2, _HEIGHT_PX / 2)
        ring = QRectF(middle.x() - _RADIUS_PX, middle.y() - _RADIUS_PX, 2 * _RADIUS_PX, 2 * _RADIUS_PX)
        painter.setPen(QPen(theme.color("hair2"), _STROKE_PX))
        painter.drawEllipse(ring)
        fraction = min(1.0, self.used_tokens / self.limit_tokens) if self.limit_tokens else 0.0
        color = theme.color("series_vermilion" if self.near_limit else "accent")
        painter.setPen(QPen(color, _STROKE_PX, Qt.PenStyle.SolidLine, Qt.PenCapStyle.FlatCap))
        # Qt measures in sixteenths of a degree, anticlockwise from three o'clock.
        painter.drawArc(ring, 90 * 16, -round(fraction * 360 * 16))
        painter.setFont(ui_font(11.5, tabular=True))
        painter.setPen(theme.color("text2"))
        words = QRectF(_LEFT_PX + _RING_PX + _GAP_PX, 0, width_of(self), _HEIGHT_PX)
        painter.drawText(words, int(Qt.AlignmentFlag.AlignVCenter), self.text)
        painter.end()


class SendButton(Button):
    """The round button that sends the message, or stops the answer."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("", "send", parent=parent)
        self.stops = True
        self.set_stops(False)

    def set_stops(self, stops: bool) -> None:
        if stops == self.stops:
            return
        self.stops = stops
        self.setIcon(themed_icon("stop" if stops else "send", "on_accent"))
        self.setAccessibleName(strings.STOP if stops else strings.SEND)
        self.setToolTip(strings.STOP if stops else strings.SEND)


_THINK_SWITCH_GAP_PX = 7
_THINK_SWITCH_LEFT_PX = 6


class ThinkSwitch(QWidget):
    """Whether the model thinks before it answers. Hidden for models without that choice."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.switch = Switch()
        self.switch.setAccessibleName(strings.THINK_FIRST)
        self.switch.setAccessibleDescription(strings.THINK_FIRST_SAYS)
        self.setToolTip(strings.THINK_FIRST_SAYS)
        row_of(
            self.switch,
            TextLabel(strings.THINK_FIRST, 12, 16),
            gap=_THINK_SWITCH_GAP_PX,
            margins=(_THINK_SWITCH_LEFT_PX, 0, 0, 0),
            parent=self,
        )
        self.turned = self.switch.clicked  # bool, by the person
        self.hide()

    def show_choice(self, known: bool, thinks: bool) -> None:
        """Show the switch if the model has it, in that state."""
        self.switch.setChecked(thinks)
        self.setVisible(known)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Clicks on the label turn the switch as well."""
        if event.button() == Qt.MouseButton.LeftButton and self.rect().contains(event.position().toPoint()):
            self.switch.click()
