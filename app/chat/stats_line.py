"""The line of figures under an answer: its parts, and the widget that shows them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Literal

from msgspec import Struct
from PySide6.QtCore import QEvent, QPointF
from PySide6.QtGui import (
    QContextMenuEvent,
    QFont,
    QFontMetricsF,
    QHelpEvent,
    QPainter,
    QPaintEvent,
)
from PySide6.QtWidgets import QMenu, QToolTip, QWidget

from app.chat import strings
from app.chat.answer_text import PartFigures, TokenTable
from app.chat.reading_map import chosen_words
from app.richtext.canvas_menu import pop_up, to_clipboard
from app.theme.fonts import ui_font
from app.theme.theme import color
from app.theme.zoom import design_point, design_px, painter_on, px, width_of
from core.events import Change, Effective, Finished, ReadingMap, Stats
from core.settings import declared
from core.settings.declaration import find

Emphasis = Literal["plain", "strong", "danger"]
SEPARATOR = " · "


class StatsPart(Struct, frozen=True):
    """One figure. `detail` is its tooltip; a `minor` one is shown only while the answer is hovered."""

    text: str
    emphasis: Emphasis = "plain"
    detail: str = ""
    minor: bool = False


def finished_parts(
    finished: Finished, *, alone: PartFigures | None = None, reading: ReadingMap | None = None
) -> tuple[StatsPart, ...]:
    """The figures of a finished answer; `alone` are those without its thoughts, None without thoughts.
    `reading` is the map of its prompt, if it was read sparsely.
    """
    stats = finished.stats
    parts = [
        StatsPart(_speed(stats.tokens_per_s), "strong", _drawn(finished.effective)),
        StatsPart(strings.FIRST_TOKEN.format(seconds=seconds(stats.ttft_s)), minor=True),
        *_counted(stats.tokens, alone),
    ]
    if finished.effective.drafter != "off":
        parts.append(StatsPart(_drafts(stats), minor=True))
    parts += [
        StatsPart(strings.MEAN.format(value=stats.mean_per_step), minor=True),
        _drafter(finished.effective),
    ]
    parts.append(StatsPart(_read(stats), detail=_why_read(finished.effective, reading)))
    if finished.reason == "cancelled":
        parts.append(StatsPart(strings.STOPPED_BY_YOU))
    elif finished.reason == "repetition":
        parts.append(StatsPart(strings.STOPPED_REPEATING))
    elif finished.reason == "length":
        parts.append(StatsPart(strings.STOPPED_AT_LIMIT))
    return tuple(parts)


def live_parts(table: TokenTable, alone: PartFigures | None = None) -> tuple[StatsPart, ...]:
    """The figures of an unfinished answer, from its tokens. Its current speed is on the gauge."""
    if not len(table):
        return ()
    return (
        StatsPart(strings.FIRST_TOKEN.format(seconds=seconds(table[0].time_s)), minor=True),
        *_counted(len(table), alone),
        StatsPart(strings.MEAN.format(value=len(table) / table.steps), minor=True),
    )


def cut_off_parts(table: TokenTable, alone: PartFigures | None = None) -> tuple[StatsPart, ...]:
    """The figures of an answer whose worker died or failed."""
    parts = live_parts(table, alone)
    if len(table) > 1 and (written_s := table[len(table) - 1].time_s - table[0].time_s) > 0:
        parts = (StatsPart(_speed((len(table) - 1) / written_s), "strong"), *parts)
    return (*parts, StatsPart(strings.STOPPED_EARLY, "danger"))


def imported_parts() -> tuple[StatsPart, ...]:
    """The line of an answer imported from a text."""
    return (StatsPart(strings.IMPORTED),)


def edited_parts() -> tuple[StatsPart, ...]:
    """The line of an answer that a person edited, until the model continues it."""
    return (StatsPart(strings.EDITED),)


def change_text(change: Change) -> str:
    """A sentence about a setting that was changed."""
    setting = next((setting for setting in declared() if setting.key == change.setting), None)
    labels = setting.labels if setting else {}
    used, asked = (labels.get(each) or _value(each) for each in (change.used, change.asked))
    title, reason = setting.title if setting else change.setting, change.reason.rstrip(".") + "."
    return strings.CHANGE.format(title=title, used=used, asked=asked, reason=reason)


def details_text(parts: Sequence[StatsPart]) -> str:
    return " ".join(part.detail for part in parts if part.detail)


def plain_text(parts: Sequence[StatsPart]) -> str:
    """All parts in one line."""
    return SEPARATOR.join(part.text for part in parts)


def break_parts(
    parts: Sequence[StatsPart], width: float, measure: Callable[[StatsPart], float]
) -> list[list[StatsPart]]:
    """Breaks `parts` into lines of at most `width`; a part that is wider gets its own line."""
    lines: list[list[StatsPart]] = []
    used = 0.0
    separator = measure(StatsPart(SEPARATOR))
    for part in parts:
        part_width = measure(part)
        if lines and used + separator + part_width <= width:
            lines[-1].append(part)
            used += separator + part_width
        else:
            lines.append([part])
            used = part_width
    return lines


def seconds(value_s: float) -> str:
    """A time with three significant digits: 0.41 s, 24.3 s, 112 s."""
    decimals = 2 if value_s < 9.995 else 1 if value_s < 99.95 else 0
    return strings.SECONDS.format(value=f"{value_s:,.{decimals}f}")


def _speed(tokens_per_s: float) -> str:
    return strings.SPEED.format(value=f"{tokens_per_s:,.{1 if tokens_per_s < 99.95 else 0}f}")


def _drawn(effective: Effective) -> str:
    """The seed, if tokens were sampled."""
    sampling = effective.settings.sampling
    return strings.DRAWN.format(seed=sampling.seed) if sampling.temperature > 0 else ""


def _count(tokens: int) -> str:
    return strings.ONE_TOKEN if tokens == 1 else strings.TOKENS.format(tokens=tokens)


def _counted(tokens: int, alone: PartFigures | None) -> tuple[StatsPart, ...]:
    """The token count; with thoughts, that of the answer and then of both."""
    if alone is None:
        return (StatsPart(_count(tokens)),)
    text = strings.ANSWER_ALONE.format(tokens=_count(alone.tokens), seconds=seconds(alone.took_s))
    if alone.percent is not None:
        text += ", " + strings.ACCEPTED_SHARE.format(accepted=alone.accepted, percent=alone.percent)
    whole = strings.WITH_THOUGHT.format(tokens=_count(tokens))
    return (StatsPart(text), StatsPart(whole, detail=strings.WITH_THOUGHT_DETAIL, minor=True))


def _drafts(stats: Stats) -> str:
    if not stats.tested:
        return strings.NO_DRAFTS
    percent = round(100 * stats.accepted / stats.tested)
    return strings.DRAFTS.format(accepted=stats.accepted, tested=stats.tested, percent=percent)


def _read(stats: Stats) -> str:
    if stats.read_tokens >= stats.prompt_tokens:
        return strings.READ_ALL.format(total=stats.prompt_tokens)
    parts = [strings.READ_SOME.format(read=stats.read_tokens, total=stats.prompt_tokens)]
    if stats.reused_tokens:
        parts.append(strings.CACHED.format(cached=stats.reused_tokens))
    if stats.skipped_tokens:
        parts.append(strings.SKIPPED.format(skipped=stats.skipped_tokens))
    elif stats.kept_tokens:
        parts.append(strings.ATTENDED.format(attended=stats.kept_tokens))
    return ", ".join(parts)


def _drafter(effective: Effective) -> StatsPart:
    return StatsPart(effective.drafter, detail=_sentence(effective.gate), minor=True)


def _why_read(effective: Effective, reading: ReadingMap | None) -> str:
    why = _sentence(effective.reading_reason)
    if not effective.scorer:
        return why
    scorer = find("prefill.scorer").labels.get(effective.scorer, effective.scorer).lower()
    chosen = strings.CHOSEN_BY.format(scorer=scorer)
    if reading is not None:
        chosen = strings.CHOSEN_OF.format(scorer=scorer, chosen=chosen_words(reading))
    return f"{chosen} {why}".strip()


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:].rstrip('.')}." if words else ""


def _value(text: str) -> str:
    return f"{int(text):,}" if text.isascii() and text.isdigit() else text


LINE_PX = 16
_SIZE_PX = 11
_COLORS: dict[Emphasis, str] = {"plain": "text2", "strong": "text", "danger": "danger"}


class StatsLabel(QWidget):
    """Shows the figures, broken between them. The context menu copies one or all.

    Space for minor figures is kept while they are hidden.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._parts: tuple[StatsPart, ...] = ()
        self._revealed = False

    @property
    def text(self) -> str:
        """All figures in one line."""
        return plain_text(self._parts)

    def set_parts(self, parts: Sequence[StatsPart]) -> None:
        self._parts = tuple(parts)
        self.setAccessibleName(self.text)
        self.setAccessibleDescription(details_text(self._parts))
        self.update()

    def set_revealed(self, revealed: bool) -> None:
        """Sets whether minor figures are shown."""
        if revealed != self._revealed:
            self._revealed = revealed
            self.update()

    @property
    def shown_text(self) -> str:
        """The visible figures in one line."""
        return plain_text(self._shown(width_of(self)))

    def _shown(self, width: float) -> list[StatsPart]:
        """The figures shown at that width in design pixels; minor ones never add lines."""
        brief = [part for part in self._parts if not part.minor]
        if not self._revealed:
            return brief
        lines = max(1, len(break_parts(brief, width, _width)))
        shown = list(self._parts)
        for part in reversed([part for part in self._parts if part.minor]):
            if len(break_parts(shown, width, _width)) <= lines:
                break
            shown.remove(part)
        return shown

    def height_for(self, width: int) -> int:
        """The height in screen pixels at that width, at least one line."""
        brief = [part for part in self._parts if not part.minor]
        return px(LINE_PX * max(1, len(break_parts(brief, design_px(width), _width))))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        metrics = QFontMetricsF(_font("plain"))
        baseline = round((LINE_PX - metrics.height()) / 2 + metrics.ascent())
        lines = break_parts(self._shown(width_of(self)), width_of(self), _width)
        for number, line in enumerate(lines):
            x = 0.0
            for place, part in enumerate(line):
                self._draw(painter, part, x, number * LINE_PX + baseline)
                x += _width(part)
                # The separator stays at the end of its line.
                if place + 1 < len(line) or number + 1 < len(lines):
                    self._draw(painter, StatsPart(SEPARATOR), x, number * LINE_PX + baseline)
                    x += _width(StatsPart(SEPARATOR))

    def part_at(self, point: QPointF) -> StatsPart | None:
        point = design_point(point)
        lines = break_parts(self._shown(width_of(self)), width_of(self), _width)
        number = int(point.y() // LINE_PX)
        x = 0.0
        for part in lines[number] if 0 <= number < len(lines) else ():
            if x <= point.x() < x + _width(part):
                return part
            x += _width(part) + _width(StatsPart(SEPARATOR))
        return None

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() is QEvent.Type.ToolTip:
            part = self.part_at(event.pos().toPointF())
            hidden = len(self._shown(width_of(self))) < len(self._parts)
            tip = part.detail if part and part.detail else self.text if hidden else ""
            QToolTip.showText(event.globalPos(), tip, self)
            return True
        return super().event(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        menu = QMenu(self)
        part = self.part_at(event.pos().toPointF())
        if part:
            menu.addAction(strings.COPY_FIGURE.format(figure=part.text), lambda: to_clipboard(part.text))
        menu.addAction(strings.COPY_FIGURES, lambda: to_clipboard(self.text))
        pop_up(menu, event.globalPos())

    def _draw(self, painter: QPainter, part: StatsPart, x: float, baseline: int) -> None:
        painter.setFont(_font(part.emphasis))
        painter.setPen(color(_COLORS[part.emphasis]))
        painter.drawText(QPointF(x, baseline), part.text)


def _font(emphasis: Emphasis) -> QFont:
    return ui_font(_SIZE_PX, 600 if emphasis == "strong" else 400, tabular=True)


@lru_cache(512)
def _width(part: StatsPart) -> float:
    return QFontMetricsF(_font(part.emphasis)).horizontalAdvance(part.text)
