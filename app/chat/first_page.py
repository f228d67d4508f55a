"""FirstPage: the page of an empty chat: the model's state, three examples, and the token classes."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct
from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QProgressBar, QSizePolicy, QWidget

from app.chat import strings
from app.chat.intents import UseExample
from app.chat.tokens import Swatch
from app.controls.buttons import Button, IconLabel
from app.controls.scroll_bar import ScrollPage
from app.controls.shapes import draw_box
from app.controls.text_label import TextLabel
from app.richtext.markdown.piece import Span
from app.richtext.piece_layout import PieceLayout
from app.richtext.text_style import answer_style
from app.richtext.tint_paint import InkTable, marks_of, paint_marks
from app.theme.measures import (
    STRETCH,
    column_of,
    lay_beside,
    row_of,
    set_fixed_height,
    set_fixed_size,
    set_maximum_width,
)
from app.theme.sheet import set_ground
from app.theme.theme import color, theme
from app.theme.zoom import area_of, design_px, painter_on, px, width_of
from core.events import Attachment, Message, Origin

_FILE = Path(__file__).resolve().parents[2] / "resources" / "first-page" / "heat-pump.md"


def example_document() -> Attachment:
    """The manual of a heat pump; about 4,000 tokens."""
    return Attachment(strings.EXAMPLE_FILE, _FILE.read_text("utf-8"))


# Text, class and step of the tokens of a made-up answer.
_TOKENS: tuple[tuple[str, Origin, int], ...] = (
    ("When", "normal", 1),
    (" the", "normal", 2),
    (" tide", "normal", 3),
    (" turns", "accepted", 4),
    (",", "accepted", 4),
    (" the", "bonus", 4),
    (" har", "accepted", 5),
    ("bour", "accepted", 5),
    (" lights", "accepted", 5),
    (" are", "accepted", 5),
    (" lit", "accepted", 5),
    (" along", "bonus", 5),
    (" the", "accepted", 6),
    (" north", "accepted", 6),
    (" qu", "accepted", 6),
    ("ay", "accepted", 6),
    (" first", "bonus", 6),
    (".", "normal", 7),
)


class _Sample(QWidget):
    """A sentence with tinted tokens. Not an answer of a model."""

    def __init__(self) -> None:
        super().__init__()
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        self._words = "".join(token for token, _, _ in _TOKENS)
        spans: list[Span] = []
        for number, (token, _, _) in enumerate(_TOKENS):
            start = spans[-1].end if spans else 0
            spans.append(Span(number, start, start + len(token)))
        self._inks = InkTable()
        self._inks.extend(self._words, spans, [(origin, step) for _, origin, step in _TOKENS])

    def heightForWidth(self, width: int) -> int:
        return px(round(self._layout(design_px(width)).height))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        layout = self._layout(width_of(self))
        marks = [marks_of(layout, self._inks, number) for number in range(len(layout.lines))]
        paint_marks(painter, marks, QPointF(0, 0))
        painter.setPen(color("text"))
        layout.draw(painter, 0, 0, area_of(self))

    def _layout(self, width: float) -> PieceLayout:
        return PieceLayout(self._words, answer_style(17, 30), width)


class _Mark(QWidget):
    """The app's mark in the theme's token colours, on a grid of 32."""

    def __init__(self) -> None:
        super().__init__()
        set_fixed_size(self, QSize(_MARK_PX, _MARK_PX))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        unit = _MARK_PX / 32
        for left, top, width, height, radius, name in (
            (1.0, 8.0, 13.0, 12.0, 3.5, "accepted_hover"),
            (1.0, 23.0, 13.0, 2.4, 1.2, "accepted_line"),
            (16.0, 8.0, 7.0, 12.0, 3.5, "bonus_hover"),
            (16.05, 22.95, 2.5, 2.5, 1.25, "bonus_line"),
            (20.15, 22.95, 2.5, 2.5, 1.25, "bonus_line"),
            (25.0, 8.0, 6.0, 12.0, 3.0, "normal_mark"),
        ):
            box = QRectF(left * unit, top * unit, width * unit, height * unit)
            draw_box(painter, box, radius * unit, color(name))


class ExampleCard(Button):
    """A button that puts the question `example` into the composer."""

    def __init__(self, icon_name: str, title: str, text: str, example: str) -> None:
        super().__init__("", "card")
        self.example = example
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)
        self.setAccessibleName(title)
        self.setAccessibleDescription(text)
        self.title = TextLabel(title, 13.5, 18, "text", weight=600)
        words = TextLabel(text, 12, 17, wrap=True)
        icon = IconLabel(icon_name, "accent", 16)
        set_ground(icon, "tile")
        set_fixed_size(icon, QSize(28, 28))
        icon.setAlignment(Qt.AlignmentFlag.AlignCenter)
        parts = (row_of(icon, STRETCH), 10, self.title, 3, words, STRETCH)
        self._parts = column_of(*parts, margins=_CARD_MARGINS, parent=self)
        for part in self.findChildren(QWidget):
            part.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)

    @property
    def least_width(self) -> int:
        """The width at which the title is whole, in screen pixels."""
        return self.title.sizeHint().width() + px(_CARD_MARGINS[0] + _CARD_MARGINS[2])

    def sizeHint(self) -> QSize:
        return self._parts.sizeHint()

    def minimumSizeHint(self) -> QSize:
        return self._parts.minimumSize()


_COLUMN_PX = 720
_MIN_MARGIN_PX = 40
_LOW_TOP_PX = 24
_MARK_PX = 52
_CARD_MARGINS = (17, 15, 17, 16)
_CARD_GAP_PX = 12
_CLASS_GAP_PX = 28
_BAR_PX = 6
_CLASSES: tuple[Origin, ...] = ("accepted", "bonus", "normal")
_EXAMPLES = (
    ("doc", strings.EXAMPLE_DOCUMENT, strings.EXAMPLE_DOCUMENT_SAYS, strings.EXAMPLE_DOCUMENT_TEXT),
    ("code", strings.EXAMPLE_CODE, strings.EXAMPLE_CODE_SAYS, strings.EXAMPLE_CODE_TEXT),
    ("edit", strings.EXAMPLE_LIST, strings.EXAMPLE_LIST_SAYS, strings.EXAMPLE_LIST_TEXT),
)


class Lead(Struct, frozen=True):
    """The top of the page: the model's state, or an offer instead. `fraction`: progress of a load or
    download; None without a bar.

    Empty labels hide the buttons.
    """

    title: str
    text: str
    fraction: float | None = None
    lead_button: str = ""
    other_button: str = ""


class FirstPage(ScrollPage):
    """Starts in the loading state. Scrolls in a low window."""

    intent = Signal(object)  # intents.UseExample
    focus_left = Signal()  # the focused button of the lead disappeared or got another meaning

    def __init__(self) -> None:
        self._state = Lead(strings.GETTING_READY.format(model=strings.A_MODEL), "")
        self._lead: Lead | None = None
        self._title = TextLabel("", 26, 32, "text", weight=600)
        self._subtitle = TextLabel("", 14.5, 22, wrap=True)
        self._bar = QProgressBar()
        self.lead_button, self.other_button = Button("", "primary"), Button("")
        self._choices = QWidget()
        parts = (self.lead_button, self.other_button, STRETCH)
        self._buttons = row_of(*parts, gap=8, margins=(0, 14, 0, 0), parent=self._choices)
        self._cards = [ExampleCard(*example) for example in _EXAMPLES]
        self._examples = row_of(*((card, 1) for card in self._cards), gap=_CARD_GAP_PX)
        self._column = QWidget()
        page = QWidget()
        super().__init__(page)
        self._lay_out(page)
        set_ground(self, "window")
        self._bar.setTextVisible(False)
        set_fixed_height(self._bar, _BAR_PX)
        for card in self._cards:
            card.clicked.connect(lambda _checked=False, card=card: self._choose(card))
        theme.zoomed.connect(self._arrange)
        self._refresh()

    @property
    def title(self) -> str:
        """The line in large type."""
        return (self._lead or self._state).title

    @property
    def subtitle(self) -> str:
        """The line under it."""
        return (self._lead or self._state).text

    def scroll_to_top(self) -> None:
        self.verticalScrollBar().setValue(0)

    def show_state(self, state: Lead) -> None:
        """Show the model's state; `fraction` is None while unknown."""
        if state != self._state:
            self._state = state
            self._refresh()

    def show_lead(self, lead: Lead | None) -> None:
        """Lead with `lead` instead of the model's state; None ends that."""
        if lead != self._lead:
            focused = next((e for e in (self.lead_button, self.other_button) if e.hasFocus()), None)
            label = focused.text() if focused else ""
            self._lead = lead
            self._refresh()
            self._arrange()
            if focused is not None and focused.text() != label:
                self.focus_left.emit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    # ---- inside

    def _choose(self, card: ExampleCard) -> None:
        with_document = card.example == strings.EXAMPLE_DOCUMENT_TEXT
        attachments = (example_document(),) if with_document else ()
        self.intent.emit(UseExample(Message("user", card.example, attachments)))

    def _lay_out(self, page: QWidget) -> None:
        line = QWidget()
        set_ground(line, "hair")
        set_fixed_height(line, 1)
        classes = []
        for origin in _CLASSES:
            explained = TextLabel(strings.CLASS_EXPLAINED[origin], 12, 17, wrap=True)
            name = TextLabel(strings.CLASS_NAMES[origin], 12.5, 20, "text", weight=500)
            classes.append((column_of(row_of(Swatch(origin), 8, (name, 1)), 4, explained, STRETCH), 1))
        heading = TextLabel(strings.HOW_WRITTEN, 13, 18, "text", weight=600)
        says = TextLabel(strings.HOW_WRITTEN_SAYS, 12, 17, wrap=True)
        column_of(
            *(row_of(_Mark(), STRETCH), 10, self._title, 4, self._subtitle, 4, self._bar, self._choices, 28),
            *(self._examples, 36, line, 21, heading, 4, says, 12, _Sample(), 14),
            row_of(*classes, gap=_CLASS_GAP_PX),
            parent=self._column,
        )
        set_maximum_width(self._column, _COLUMN_PX)
        row = row_of(STRETCH, (self._column, 10_000), STRETCH)
        column = column_of(margins=(_MIN_MARGIN_PX, _LOW_TOP_PX, _MIN_MARGIN_PX, _LOW_TOP_PX), parent=page)
        column.addStretch(1)
        column.addLayout(row)
        column.addStretch(3)

    def _refresh(self) -> None:
        """Shows the texts, the bar and the lead's buttons."""
        self._title.setText(self.title)
        self._subtitle.setText(self.subtitle)
        lead = self._lead or self._state
        self._bar.setVisible(lead.fraction is not None)
        self._bar.setValue(round(100 * (lead.fraction or 0)))
        self._choices.setVisible(bool(lead.lead_button or lead.other_button))
        for button, label in ((self.lead_button, lead.lead_button), (self.other_button, lead.other_button)):
            button.setText(label)
            button.setAccessibleName(label)
            button.setAccessibleDescription(self.subtitle)
            button.setVisible(bool(label))

    def _arrange(self) -> None:
        """Stacks the examples where their titles would be elided in a row, and the lead's buttons as well."""
        room = min(px(_COLUMN_PX), self.viewport().width() - 2 * px(_MIN_MARGIN_PX))
        least = max(card.least_width for card in self._cards)
        across = len(self._cards)
        lay_beside(self._examples, across * least + (across - 1) * px(_CARD_GAP_PX) <= room)
        buttons = (self.lead_button, self.other_button)
        lay_beside(self._buttons, sum(each.sizeHint().width() for each in buttons) + px(8) <= room)
