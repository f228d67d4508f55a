"""Tokens outside the text: facts of one in its tooltip, the strip above an answer's footer, and the legend.

The tooltip is a child widget of the transcript and transparent for the mouse.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from html import escape

from msgspec import Struct
from PySide6.QtCore import QEvent, QLineF, QObject, QPoint, QRect, QRectF, QSize, Qt, QTimer
from PySide6.QtGui import (
    QImage,
    QMouseEvent,
    QPainter,
    QPainterPath,
    QPaintEvent,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import QAbstractScrollArea, QLabel, QWidget

from app.chat import strings
from app.chat.answer_text import TokenTable, shown_origin
from app.chat.stats_line import seconds
from app.controls.shapes import draw_box, in_own_direction
from app.controls.text_label import TextLabel
from app.richtext.origin_paint import NOWHERE_COLOR, RULE_PX, source_color
from app.richtext.tint_paint import dots
from app.theme.fonts import mono_font
from app.theme.measures import STRETCH, Part, row_of, set_fixed_height, set_fixed_size, set_font
from app.theme.theme import color
from app.theme.zoom import design_point, painter_on, px, ratio_of, width_of
from core.events import Origin, Token
from core.settings import declared

_VISIBLE = str.maketrans({" ": "␣", "\n": "↵", "\t": "⇥", "\r": "↵", "\u00a0": "␣"})
_MAX_CHARACTERS = 24
_MOST_STEP_TOKENS = 12


class TokenFacts(Struct, frozen=True):
    """The tooltip of one token. `lines` are sentences after the class's name."""

    text: str
    origin: Origin
    class_name: str
    lines: tuple[str, ...]
    address: str = ""  # of the link that the token belongs to
    passage: tuple[str, str, str] | None = None  # of a document: before the marked words, those, after


def facts_of(table: TokenTable, index: int, drafter: str, address: str = "") -> TokenFacts:
    """The facts of the token `index`. `drafter` is empty while unknown."""
    token, origin = table[index], table.origin_of(index)
    step = strings.TIP_STEP.format(step=token.step, steps=max(table.steps, token.step))
    if origin == "accepted" and token.draft_length > 0:
        step += f", {strings.TIP_GUESS.format(index=token.draft_index, length=token.draft_length)}"
    return TokenFacts(
        _shown(table, index),
        origin,
        strings.CLASS_NAMES[origin],
        (
            _origin_text(token, origin, drafter),
            step,
            *_step_text(table, index),
            _arrived(token, table.in_step(token.step) - 1),
        ),
        address,
    )


def _step_text(table: TokenTable, index: int) -> tuple[str, ...]:
    """The tokens that a token's step gave, if some were drafted, and which of its guesses were rejected."""
    step = table[index].step
    first = last = index
    while first > 0 and table[first - 1].step == step:
        first -= 1
    while last + 1 < len(table) and table[last + 1].step == step:
        last += 1
    own = range(first, last + 1)
    length = max(table[each].draft_length for each in own)
    instead = [_visible(each) for each in table[last].rejected]
    told = (strings.TIP_INSTEAD.format(texts=" · ".join(instead)),) if instead else ()
    if not length:
        return told
    shown = [_shown(table, each) for each in own[:_MOST_STEP_TOKENS]] + ["…"] * (len(own) > _MOST_STEP_TOKENS)
    accepted = sum(table.origin_of(each) == "accepted" for each in own)
    rejected = max(0, length - accepted)
    return (
        strings.TIP_STEP_TOKENS.format(tokens=" · ".join(shown)),
        strings.TIP_REJECTED.format(accepted=accepted, length=length, rejected=rejected),
        *told,
    )


def _origin_text(token: Token, origin: Origin, drafter: str) -> str:
    """Where a token of that class came from, as a sentence."""
    if origin == "bonus":
        return strings.TIP_BONUS
    if origin == "normal":
        return strings.TIP_NORMAL
    name = drafter_label(drafter) if drafter not in ("", "off") else strings.THE_DRAFTER
    if token.source:
        source = strings.SOURCES_OF_DRAFTS[token.source]
        name = strings.DRAFTER_FROM.format(drafter=name, source=source[:1].lower() + source[1:])
    return strings.TIP_ACCEPTED.format(drafter=name)


def drafter_label(name: str) -> str:
    """The label of the drafter `name`, or the name if it has none."""
    for setting in declared():
        if setting.key == "drafting.drafter":
            return setting.labels.get(name, name)
    return name


def _arrived(token: Token, others: int) -> str:
    time = seconds(token.time_s)
    if others <= 0:
        return strings.ARRIVED.format(seconds=time)
    if others == 1:
        return strings.ARRIVED_WITH_ONE.format(seconds=time)
    return strings.ARRIVED_WITH.format(seconds=time, others=others)


def _shown(table: TokenTable, index: int) -> str:
    """The token's text as `_visible`, or its description if it has none."""
    text = table[index].text
    if not text:
        whole = table.shown_by(index)
        if whole is None:
            return strings.END_OF_ANSWER
        return strings.PART_OF.format(text=_shown(table, whole))
    return _visible(text)


def _visible(text: str) -> str:
    """The text without surrounding white space; white space alone is shown as symbols."""
    core = text.strip() or text.translate(_VISIBLE)
    core = core.translate({10: "↵", 9: "⇥", 13: "↵"})
    return core if len(core) <= _MAX_CHARACTERS else core[: _MAX_CHARACTERS - 1] + "…"


TIP_PX = 248
_GAP_PX = 8
# A longer address is cut at its end, so that the host is visible.
_LINK_CHARACTERS = 110


def place_tip(card: QSize, target: QRect, inside: QRect) -> QPoint:
    """The card's upper left corner: 8 px below `target`, or above it, within `inside`."""
    x = max(inside.left(), min(target.left() - px(24), inside.right() + 1 - card.width()))
    below = target.bottom() + 1 + px(_GAP_PX)
    above = target.top() - px(_GAP_PX) - card.height()
    fits_below = below + card.height() <= inside.bottom() + 1
    y = below if fits_below or above < inside.top() else above
    return QPoint(x, max(inside.top(), min(y, inside.bottom() + 1 - card.height())))


class TokenTip(QLabel):
    """A card with the facts of one token. Hidden until `show_facts()`."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.facts: TokenFacts | None = None
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setTextFormat(Qt.TextFormat.RichText)
        self.setWordWrap(True)
        set_font(self, 12, tabular=True)
        self.hide()

    def show_facts(self, facts: TokenFacts, target: QRect, inside: QRect) -> None:
        """Show `facts` of the token at `target`, within `inside`; both in the parent's coordinates."""
        self.facts = facts
        self.setText(_card(facts))
        texts = list(spoken(facts))
        self.setAccessibleName(", ".join(texts))
        self.ensurePolished()
        card = QSize(px(TIP_PX), self.heightForWidth(px(TIP_PX)))
        self.setGeometry(QRect(place_tip(card, target, inside), card))
        self.raise_()
        self.show()


def spoken(facts: TokenFacts) -> Iterator[str]:
    """A tooltip's text for screen readers."""
    yield from filter(None, (facts.text, facts.class_name))
    if facts.passage:
        yield " ".join("".join(facts.passage).split())
    yield from facts.lines
    if facts.address:
        yield f"{strings.TIP_LINK} {facts.address}"


def _card(facts: TokenFacts) -> str:
    """`facts` as rich text: the token, the class with its mark, the sentences, the link."""
    pale = color("text2").name()
    lines = "<br>".join(escape(in_own_direction(line)) for line in facts.lines)
    link = ""
    if facts.address:
        cut = facts.address[:_LINK_CHARACTERS] + "…" * (len(facts.address) > _LINK_CHARACTERS)
        # It may break anywhere.
        broken = "&#8203;".join(map(escape, cut))
        link = (
            f"<p style='margin: {px(6)}px 0 0 0; color: {pale}'>{strings.TIP_LINK}<br>"
            f"<span style='color: {color('accent').name()}'>{broken}</span></p>"
        )
    token = (
        f"<span style='background: {color('fill2').name()}; font-family: {mono_font(13).family()}'>&nbsp;"
        f"{escape(in_own_direction(facts.text))}&nbsp;</span>&nbsp; "
    )
    head = f"{token if facts.text else ''}<b>{escape(in_own_direction(facts.class_name))}</b>"
    passage = ""
    if facts.passage:
        before, words, after = map(escape, facts.passage)
        marked = f"{before}<b style='color: {color('text').name()}'>{words}</b>{after}"
        passage = f"<p style='margin: 0 0 {px(5)}px 0; line-height: 130%; color: {pale}'>{marked}</p>"
    return (
        f"<p dir='ltr' style='margin: 0 0 {px(5)}px 0'>{head}</p>{passage}"
        f"<p dir='ltr' style='margin: 0; line-height: 130%'>{lines}</p>{link}"
    )


_DELAY_MS = 150
_MARGIN_PX = 8


class Tips(QObject):
    """Shows the tooltip of the transcript `area` after 150 ms, or at once while it is open."""

    def __init__(self, area: QAbstractScrollArea) -> None:
        super().__init__(area)
        self._area = area
        self._pointed: tuple[QWidget, Callable[[], TokenFacts], QRect] | None = None
        self.tip = TokenTip(area)
        self._timer = QTimer(self, interval=_DELAY_MS, singleShot=True)
        self._timer.timeout.connect(self._show)

    def point(self, answer: QWidget, facts: Callable[[], TokenFacts] | None, target: QRect) -> None:
        """The mouse or the keyboard points at a token at `target` in `answer`; without `facts`: at none."""
        if facts is None:
            self.drop()
            return
        self._pointed = (answer, facts, target)
        # The address of a link is shown before it can be clicked.
        if self.tip.isVisible() or facts().address:
            self._show()
        else:
            self._timer.start()

    def keep(self) -> None:
        """Move the open tooltip with its text."""
        if self.tip.isVisible():
            self._show()

    def drop(self) -> None:
        self._pointed = None
        self._timer.stop()
        self.tip.hide()

    def forget(self, answer: QWidget) -> None:
        """Hide the tooltip if it belongs to `answer`, which will be deleted."""
        if self._pointed and self._pointed[0] is answer:
            self.drop()

    def _show(self) -> None:
        if self._pointed is None:
            return
        answer, facts, target = self._pointed
        seen = self._area.viewport().geometry()
        target = target.translated(answer.mapTo(self._area, QPoint(0, 0)))
        if not seen.intersects(target):
            self.drop()
            return
        inside = seen.adjusted(_MARGIN_PX, _MARGIN_PX, -_MARGIN_PX, -_MARGIN_PX)
        self.tip.show_facts(facts(), target, inside)


_STRIP_PX = 4
# The bar is too thin for the mouse: the widget extends this far above and below it.
STRIP_REACH_PX = 4
_STRIP_GAP_PX = 0.6
_THOUGHT_VEIL = 0.55
_GAP_FROM_PX = 3.0
_COLORS: dict[Origin, str] = {"accepted": "series_green", "bonus": "bonus_line", "normal": "normal_mark"}
_CLASSES = tuple(_COLORS)


class TokenStrip(QWidget):
    """A thin bar with a cell for each token in the colour of its class, half as high for a bonus.

    Empty until `finish()`, because the tokens of an answer that is being written are marked in its text.
    """

    def __init__(self, point: Callable[[int], object], parent: QWidget | None = None) -> None:
        """`point` gets the index of the token under the mouse, or −1."""
        super().__init__(parent)
        self._on_pointed = point
        self._cells = bytearray()  # for each token, the index of its class in `_CLASSES`
        self._last: Token | None = None
        self._thoughts: tuple[range, ...] = ()
        self._pointed = -1
        self._is_finished = False
        self.setMouseTracking(True)
        self.setAccessibleName(strings.STRIP_NAME)
        set_fixed_height(self, _STRIP_PX + 2 * STRIP_REACH_PX)

    def append(self, tokens: Sequence[Token]) -> None:
        """Append cells; the others become narrower."""
        for token in tokens:
            self._cells.append(_CLASSES.index(shown_origin(token, self._last)))
            self._last = token
        self.update()

    def set_thoughts(self, thoughts: Sequence[range]) -> None:
        """Dim the tokens of thoughts."""
        if tuple(thoughts) != self._thoughts:
            self._thoughts = tuple(thoughts)
            self.update()

    def finish(self) -> None:
        """Shows the bar, and describes it by the tokens of each class."""
        self._is_finished = True
        self.update()
        counts = {origin: self._cells.count(number) for number, origin in enumerate(_CLASSES)}
        self.setAccessibleDescription(strings.STRIP_SAYS.format(**counts))

    def cell(self, token: int) -> QRectF:
        """The rectangle of a token's cell, in design pixels."""
        width = width_of(self) / max(1, len(self._cells))
        return QRectF(token * width, STRIP_REACH_PX, width, _STRIP_PX)

    def paintEvent(self, event: QPaintEvent) -> None:
        if not self._cells or not self._is_finished:
            return
        painter = painter_on(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        shape = QPainterPath()
        bar, radius = QRectF(0, STRIP_REACH_PX, width_of(self), _STRIP_PX), _STRIP_PX / 2
        shape.addRoundedRect(bar, radius, radius)
        painter.setClipPath(shape)
        self._paint_cells(painter)
        veil = color("window")
        veil.setAlphaF(_THOUGHT_VEIL)
        for tokens in self._thoughts:
            painter.fillRect(self.cell(tokens.start).united(self.cell(tokens.stop - 1)), veil)

    def _paint_cells(self, painter: QPainter) -> None:
        width = width_of(self) / len(self._cells)
        if width > _GAP_FROM_PX:
            for number, index in enumerate(self._cells):
                origin, low = _CLASSES[index], STRIP_REACH_PX + _STRIP_PX
                height = _STRIP_PX / 2 if origin == "bonus" else _STRIP_PX
                cell = QRectF(number * width, low - height, width - _STRIP_GAP_PX, height)
                painter.fillRect(cell, color(_COLORS[origin]))
            return
        # Thousands of narrow cells are scaled by Qt, because painting each takes long.
        bar = self._bar()
        pixels = max(1, round(width_of(self) * ratio_of(self)))
        if bar.width() > pixels:
            bar = bar.scaled(
                pixels,
                2,
                Qt.AspectRatioMode.IgnoreAspectRatio,
                Qt.TransformationMode.SmoothTransformation,
            )
        painter.drawImage(QRectF(0, STRIP_REACH_PX, width_of(self), _STRIP_PX), bar)

    def _bar(self) -> QImage:
        """An image with a column per token and two rows; the upper one is empty over bonus tokens."""
        count, bonus = len(self._cells), _CLASSES.index("bonus")
        upper = self._cells.replace(bytes([bonus]), bytes([len(_CLASSES)]))
        indexed = QImage(bytes(upper + self._cells), count, 2, count, QImage.Format.Format_Indexed8)
        indexed.setColorTable([*(color(name).rgba() for name in _COLORS.values()), 0])
        return indexed.convertToFormat(QImage.Format.Format_ARGB32_Premultiplied)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if event.buttons() != Qt.MouseButton.NoButton or not self._cells or not self._is_finished:
            return
        number = int(design_point(event.position()).x() * len(self._cells) / max(1, width_of(self)))
        self._point(max(0, min(number, len(self._cells) - 1)))

    def leaveEvent(self, event: QEvent) -> None:
        self._point(-1)

    def _point(self, token: int) -> None:
        if token != self._pointed:
            self._pointed = token
            self._on_pointed(token)


_LEGEND_HEIGHT_PX = 34


class OriginSwatch(QWidget):
    """The mark of words from a document; `dotted`: of a fact in no source."""

    def __init__(self, *, dotted: bool) -> None:
        super().__init__()
        self._dotted = dotted
        set_fixed_size(self, QSize(26, 16))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        name = NOWHERE_COLOR if self._dotted else source_color(0)
        painter.setPen(dots(color(name)) if self._dotted else QPen(color(name), RULE_PX))
        painter.drawLine(QLineF(4, 12.5, 22.5, 12.5))


class Swatch(QWidget):
    """The mark of a class; a dashed frame for tokens without one."""

    def __init__(self, origin: Origin) -> None:
        super().__init__()
        self._origin = origin
        set_fixed_size(self, QSize(26, 16))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        box = QRectF(0, 0, 26, 16)
        if self._origin == "normal":
            pen = QPen(color("hair2"), 1, Qt.PenStyle.CustomDashLine)
            pen.setDashPattern([2.5, 2])
            painter.setPen(pen)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), 3.5, 3.5)
            return
        if self._origin == "accepted":
            draw_box(painter, box, 4, color("accepted_tint"))
            return
        painter.setPen(dots(color("bonus_line")))
        painter.drawLine(QLineF(4, 12.5, 22.5, 12.5))


class Legend(QWidget):
    """The token classes in one centred line, and what the drafts of the last answer came from, or a hint.

    What follows the classes is left out where it does not fit; the tooltip has it as well.
    """

    def __init__(self) -> None:
        super().__init__()
        self.is_wanted = True  # False while token tint is off
        self._words = TextLabel()
        keys: list[Part] = []
        for origin in _CLASSES:
            keys += [Swatch(origin), 7, TextLabel(strings.CLASS_NAMES[origin]), 20]
        set_fixed_height(self, _LEGEND_HEIGHT_PX)
        self._keys = QWidget()
        row_of(*keys[:-1], parent=self._keys)
        self._origin_keys = QWidget()
        stands, nowhere = (TextLabel(words) for words in strings.ORIGIN_KEYS)
        dotted = OriginSwatch(dotted=True)
        row_of(OriginSwatch(dotted=False), 7, stands, 20, dotted, 7, nowhere, parent=self._origin_keys)
        row_of(STRETCH, self._keys, self._origin_keys, 20, self._words, STRETCH, parent=self)
        self.shows_origins = False
        self.sources = ""
        self.show_origins(False)

    def show_origins(self, shown: bool) -> None:
        """Explain the marks of the Origins view instead of the token classes."""
        self.shows_origins = shown
        self._keys.setVisible(not shown)
        self._origin_keys.setVisible(shown)
        names = strings.ORIGIN_KEYS if shown else [strings.CLASS_NAMES[origin] for origin in _CLASSES]
        self.setAccessibleName(", ".join(names))
        self._describe()

    def show_sources(self, tokens: Sequence[Token]) -> None:
        """Show what the accepted drafts of an answer with these tokens came from."""
        counts = Counter(token.source for token in tokens if token.source)
        sources = ", ".join(
            strings.DRAFTED_FROM_ONE.format(source=strings.SOURCES_OF_DRAFTS[source], tokens=count)
            for source, count in counts.most_common()
        )
        self.sources = strings.DRAFTED_FROM.format(sources=sources) if sources else ""
        self._describe()

    def _describe(self) -> None:
        if self.shows_origins:
            self.setAccessibleDescription(strings.ORIGINS_HINT)
            self.setToolTip("")
            self._words.setText(strings.ORIGINS_HINT)
            self._fit()
            return
        explained = " ".join(strings.CLASS_EXPLAINED[origin] for origin in _CLASSES)
        self.setAccessibleDescription(f"{explained} {self.sources}".strip())
        self.setToolTip(self.sources)
        self._words.setText(self.sources or strings.LEGEND_HINT)
        self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._fit()

    def _fit(self) -> None:
        keys = self._origin_keys if self.shows_origins else self._keys
        needed = keys.sizeHint().width() + self._words.sizeHint().width() + px(20 + 16)
        self._words.setVisible(needed <= self.width())
