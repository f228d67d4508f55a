"""FirstPage: the page of an empty chat: the model's state, three examples, and the token classes."""

from __future__ import annotations

import sys
from pathlib import Path

from msgspec import Struct
from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QFont, QFontMetricsF, QPainter, QPaintEvent, QPalette, QResizeEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QWidget

from app.chat import strings
from app.chat.intents import UseExample
from app.chat.tokens import paint_class_name
from app.controls.buttons import Button, PaintedButton
from app.controls.scroll_bar import lay_bars_over
from app.controls.shapes import draw_box, draw_text
from app.richtext.markdown.piece import Span
from app.richtext.piece_layout import PieceLayout
from app.richtext.text_style import answer_style, note_style
from app.richtext.tint_paint import InkTable, marks_of, paint_marks
from app.theme.fonts import ui_font
from app.theme.icons import icon_pixmap
from app.theme.theme import color, theme
from app.theme.zoom import area_of, design_size, painter_on, place, px, ratio_of, width_of
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


class SampleLine:
    """A sentence with tinted tokens, laid out for one width. Not an answer of a model."""

    def __init__(self, width: float) -> None:
        text = "".join(token for token, _, _ in _TOKENS)
        spans: list[Span] = []
        for number, (token, _, _) in enumerate(_TOKENS):
            start = spans[-1].end if spans else 0
            spans.append(Span(number, start, start + len(token)))
        self._layout = PieceLayout(text, answer_style(17, 30), width)
        self._inks = InkTable()
        self._inks.extend(text, spans, [(origin, step) for _, origin, step in _TOKENS])

    @property
    def height(self) -> int:
        return round(self._layout.height)

    def paint(self, painter: QPainter, left: float, top: float) -> None:
        """Paint with the upper left corner at (`left`, `top`)."""
        marks = [marks_of(self._layout, self._inks, number) for number in range(len(self._layout.lines))]
        paint_marks(painter, marks, QPointF(left, top))
        painter.setPen(color("text"))
        self._layout.draw(painter, left, top, QRectF(left, top, 10_000, self.height))


_PAD_X_PX = 17
_TILE_TOP_PX = 15
_TITLE_TOP_PX = 53
_TEXT_TOP_PX = 74
_BOTTOM_PX = 16


class ExampleCard(PaintedButton):
    """A button that puts the question `example` into the composer."""

    def __init__(
        self, icon_name: str, title: str, text: str, example: str, parent: QWidget | None = None
    ) -> None:
        super().__init__(12, parent)
        self._icon_name = icon_name
        self._words = text
        self.example = example
        self.setText(title)
        self.setAccessibleName(title)
        self.setAccessibleDescription(text)

    @property
    def least_width(self) -> float:
        """The width of the title with padding, in design pixels."""
        return QFontMetricsF(_title_font()).horizontalAdvance(self.text()) + 2 * _PAD_X_PX

    def height_for(self, width: float) -> int:
        """The height at that width, in design pixels."""
        return _TEXT_TOP_PX + round(self._layout(width).height) + _BOTTOM_PX

    def _layout(self, width: float) -> PieceLayout:
        return PieceLayout(self._words, note_style(), width - 2 * _PAD_X_PX)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        fill = color("fill2" if self.isDown() else "fill1" if self.underMouse() else "raised")
        area = area_of(self)
        draw_box(painter, area, 12, fill, color("hair"))
        draw_box(painter, QRectF(_PAD_X_PX, _TILE_TOP_PX, 28, 28), 7, color("accent_tint"))
        icon = icon_pixmap(self._icon_name, color("accent"), 16, ratio_of(self))
        painter.drawPixmap(_PAD_X_PX + 6, _TILE_TOP_PX + 6, icon)
        title = QRectF(_PAD_X_PX, _TITLE_TOP_PX, area.width() - 2 * _PAD_X_PX, 18)
        draw_text(painter, title, self.text(), _title_font(), color("text"), Qt.AlignmentFlag.AlignLeft)
        painter.setPen(color("text2"))
        self._layout(width_of(self)).draw(painter, _PAD_X_PX, _TEXT_TOP_PX, area)


def _title_font() -> QFont:
    return ui_font(13.5, 600)


_COLUMN_PX = 720
_MIN_MARGIN_PX = 40
_TOP_PX = 98
_LOW_TOP_PX = 24
_MARK_PX = 52
_CARD_GAP_PX = 12
_LEAD_GAP_PX = 18
_LEAD_BUTTON_PX = 28
_CLASS_GAP_PX = 28
_BAR_PX = 6
_CLASSES: tuple[Origin, ...] = ("accepted", "bonus", "normal")
_EXAMPLES = (
    ("doc", strings.EXAMPLE_DOCUMENT, strings.EXAMPLE_DOCUMENT_SAYS, strings.EXAMPLE_DOCUMENT_TEXT),
    ("code", strings.EXAMPLE_CODE, strings.EXAMPLE_CODE_SAYS, strings.EXAMPLE_CODE_TEXT),
    ("edit", strings.EXAMPLE_LIST, strings.EXAMPLE_LIST_SAYS, strings.EXAMPLE_LIST_TEXT),
)


class Lead(Struct, frozen=True):
    """What the page leads with in place of the model's state. `fraction` of a download; None without a bar.

    Empty labels hide the buttons.
    """

    title: str
    text: str
    fraction: float | None = None
    lead_button: str = ""
    other_button: str = ""


class FirstPage(QScrollArea):
    """Starts in the loading state. Scrolls in a low window."""

    intent = Signal(object)  # intents.UseExample
    focus_left = Signal()  # the focused button of the lead disappeared or got another meaning

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._page = _Page()
        self.lead_button, self.other_button = self._page.lead_button, self._page.other_button
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        lay_bars_over(self)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setWidget(self._page)
        for card in self._page.cards:
            card.clicked.connect(lambda _checked=False, card=card: self._choose(card))
        theme.changed.connect(self._recolour)
        theme.zoomed.connect(self._arrange)
        self._recolour()

    @property
    def title(self) -> str:
        """The line in large type."""
        return self._page.title

    @property
    def subtitle(self) -> str:
        """The line under it."""
        return self._page.subtitle

    def _choose(self, card: ExampleCard) -> None:
        with_document = card.example == strings.EXAMPLE_DOCUMENT_TEXT
        attachments = (example_document(),) if with_document else ()
        self.intent.emit(UseExample(Message("user", card.example, attachments)))

    def scroll_to_top(self) -> None:
        self.verticalScrollBar().setValue(0)

    def set_model_name(self, name: str) -> None:
        """Sets the name of the model that is ready or loading."""
        self._page.model = name
        self._page.refresh()

    def set_loading(self, stage: str, fraction: float | None) -> None:
        """Show that the model is loading; `fraction` is None while unknown."""
        self._page.loading, self._page.stage, self._page.fraction = True, stage, fraction
        self._page.refresh()

    def set_ready(self) -> None:
        self._page.loading = False
        self._page.refresh()

    def show_lead(self, lead: Lead | None) -> None:
        """Lead with `lead` instead of the model's state; None ends that."""
        if lead != self._page.lead:
            focused = next((e for e in (self.lead_button, self.other_button) if e.hasFocus()), None)
            label = focused.text() if focused else ""
            self._page.lead = lead
            self._page.refresh()
            self._arrange()
            if focused is not None and focused.text() != label:
                self.focus_left.emit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def _arrange(self) -> None:
        area = self.viewport().size()
        inside = design_size(area)
        height = self._page.arrange(int(inside.width()), int(inside.height()))
        self._page.resize(area.width(), max(area.height(), px(height)))

    def _recolour(self) -> None:
        palette = self._page.palette()
        palette.setColor(QPalette.ColorRole.Window, color("window"))
        self._page.setPalette(palette)
        self.viewport().setPalette(palette)


class _Page(QWidget):
    """Paints all texts; the cards are widgets."""

    def __init__(self) -> None:
        super().__init__()
        self.model = ""
        self.loading = True
        self.stage = ""
        self.fraction: float | None = None
        self.lead: Lead | None = None
        self.lead_button = Button("", "primary", parent=self)
        self.other_button = Button("", parent=self)
        self._left = self._top = 0
        self._column = _COLUMN_PX
        self._cards_bottom = 0
        self.setAutoFillBackground(True)
        self.cards = [ExampleCard(*example, self) for example in _EXAMPLES]
        self.refresh()

    @property
    def title(self) -> str:
        if self.lead is not None:
            return self.lead.title
        form = strings.GETTING_READY if self.loading else strings.READY
        name = self.model or strings.A_MODEL
        return form.format(model=name if self.loading else name[:1].upper() + name[1:])

    @property
    def subtitle(self) -> str:
        if self.lead is not None:
            return self.lead.text
        if self.loading:
            return self.stage
        return strings.RUNS_HERE_MAC if sys.platform == "darwin" else strings.RUNS_HERE

    def refresh(self) -> None:
        """Update the accessible texts and the lead's buttons, and repaint."""
        self.setAccessibleName(self.title)
        self.setAccessibleDescription(self.subtitle)
        lead = self.lead or Lead("", "")
        for button, label in ((self.lead_button, lead.lead_button), (self.other_button, lead.other_button)):
            button.setText(label)
            button.setAccessibleName(label)
            button.setAccessibleDescription(self.subtitle)
            button.setVisible(bool(label))
        self.update()

    def arrange(self, width: int, height: int) -> int:
        """Lay out for a viewport of that size; returns the page's height. In design pixels."""
        self._column = max(200, min(_COLUMN_PX, width - 2 * _MIN_MARGIN_PX))
        self._left = (width - self._column) // 2
        # Stacked where the titles would be elided in a row.
        across = len(self.cards)
        card_width = (self._column - (across - 1) * _CARD_GAP_PX) // across
        if card_width < max(card.least_width for card in self.cards):
            across, card_width = 1, self._column
        card_height = max(card.height_for(card_width) for card in self.cards)
        rows = len(self.cards) // across
        cards_height = rows * card_height + (rows - 1) * _CARD_GAP_PX
        head = _MARK_PX + 10 + 32 + 4 + round(self._says().height) + 28
        rows_of_lead = self._rows_of_lead()
        if rows_of_lead:
            head += _LEAD_GAP_PX + len(rows_of_lead) * (_LEAD_BUTTON_PX + 8) - 8
        explained = 18 + 4 + round(self._how_written().height) + 12 + self._sample().height + 14 + 25
        total = head + cards_height + 36 + 22 + explained + self._words_height()
        self._top = max(_LOW_TOP_PX, min(_TOP_PX, (height - total) // 2))
        top = self._top + head - 28
        for row in reversed(rows_of_lead):
            left, top = self._left, top - _LEAD_BUTTON_PX
            for button, width in row:
                place(button, left, top, width, _LEAD_BUTTON_PX)
                left += width + 8
            top -= 8
        for number, card in enumerate(self.cards):
            left = self._left + number % across * (card_width + _CARD_GAP_PX)
            top = self._top + head + number // across * (card_height + _CARD_GAP_PX)
            place(card, left, top, card_width, card_height)
        self._cards_bottom = self._top + head + cards_height
        return max(height, self._top + total + _LOW_TOP_PX)

    def _rows_of_lead(self) -> list[list[tuple[Button, int]]]:
        """The visible buttons of the lead with their widths; stacked where they do not fit in a row."""
        shown = [
            (each, min(self._column, int(design_size(each.sizeHint()).width())))
            for each in (self.lead_button, self.other_button)
            if not each.isHidden()
        ]
        if sum(width + 8 for _, width in shown) - 8 <= self._column:
            return [shown] if shown else []
        return [[each] for each in shown]

    def _says(self) -> PieceLayout:
        return PieceLayout(self.subtitle, answer_style(14.5, 22), self._column)

    def _how_written(self) -> PieceLayout:
        return PieceLayout(strings.HOW_WRITTEN_SAYS, note_style(), self._column)

    def _sample(self) -> SampleLine:
        return SampleLine(self._column)

    def _words(self, origin: Origin) -> PieceLayout:
        return PieceLayout(strings.CLASS_EXPLAINED[origin], note_style(), self._class_width())

    def _words_height(self) -> int:
        return round(max(self._words(origin).height for origin in _CLASSES))

    def _class_width(self) -> float:
        return (self._column - 2 * _CLASS_GAP_PX) / 3

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        x, y = self._left, self._top
        self._paint_mark(painter, x, y)
        y += _MARK_PX + 10
        font = ui_font(26, 600)
        font.setLetterSpacing(QFont.SpacingType.AbsoluteSpacing, -0.02 * 26)
        left = Qt.AlignmentFlag.AlignLeft
        draw_text(painter, QRectF(x, y, self._column, 32), self.title, font, color("text"), left)
        y += 36
        says = self._says()
        painter.setPen(color("text2"))
        says.draw(painter, x, y, QRectF(x, y, self._column, says.height))
        fraction = self.lead.fraction if self.lead is not None else self.fraction if self.loading else None
        if fraction is not None:
            bar = QRectF(x, y + says.height + 4, self._column, _BAR_PX)
            draw_box(painter, bar, _BAR_PX / 2, color("fill2"))
            bar.setWidth(max(float(_BAR_PX), self._column * min(1.0, fraction)))
            draw_box(painter, bar, _BAR_PX / 2, color("accent_fill"))
        self._paint_classes(painter, x, self._cards_bottom + 36)

    def _paint_classes(self, painter: QPainter, x: int, y: int) -> None:
        left = Qt.AlignmentFlag.AlignLeft
        painter.fillRect(QRectF(x, y, self._column, 1), color("hair"))
        y += 22
        heading = QRectF(x, y, self._column, 18)
        draw_text(painter, heading, strings.HOW_WRITTEN, ui_font(13, 600), color("text"), left)
        y += 22
        says = self._how_written()
        painter.setPen(color("text2"))
        says.draw(painter, x, y, QRectF(x, y, self._column, says.height))
        y += round(says.height) + 12
        sample = self._sample()
        sample.paint(painter, x, y)
        y += sample.height + 14
        for number, origin in enumerate(_CLASSES):
            at = x + number * (self._class_width() + _CLASS_GAP_PX)
            indent = 0 if origin == "normal" else 2
            name = strings.CLASS_NAMES[origin]
            font = ui_font(12.5, 500)
            paint_class_name(painter, origin, name, QPointF(at + indent, y + 14), font)
            area = QRectF(at + indent, y, self._class_width(), 20)
            draw_text(painter, area, name, font, color("text"), left)
            painter.setPen(color("text2"))
            words = self._words(origin)
            words.draw(painter, at, y + 25, QRectF(at, y + 25, self._class_width(), words.height))

    def _paint_mark(self, painter: QPainter, x: float, y: float) -> None:
        """Paint the app's mark in the theme's token colours, on a grid of 32."""
        unit = _MARK_PX / 32
        for left, top, width, height, radius, name in (
            (1.0, 8.0, 13.0, 12.0, 3.5, "accepted_hover"),
            (1.0, 23.0, 13.0, 2.4, 1.2, "accepted_line"),
            (16.0, 8.0, 7.0, 12.0, 3.5, "bonus_hover"),
            (16.05, 22.95, 2.5, 2.5, 1.25, "bonus_line"),
            (20.15, 22.95, 2.5, 2.5, 1.25, "bonus_line"),
            (25.0, 8.0, 6.0, 12.0, 3.0, "normal_mark"),
        ):
            box = QRectF(x + left * unit, y + top * unit, width * unit, height * unit)
            draw_box(painter, box, radius * unit, color(name))
