"""The line of figures under an answer: its parts, and the widget that shows them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from html import escape

from msgspec import Struct
from PySide6.QtCore import Qt
from PySide6.QtGui import QContextMenuEvent, QPalette
from PySide6.QtWidgets import QLabel, QMenu, QWidget

from app.chat import strings
from app.chat.answer_text import PartFigures, TokenTable
from app.chat.reading_map import chosen_words
from app.chat.tools import strings as tools_strings
from app.richtext.canvas_menu import pop_up, to_clipboard
from app.theme.measures import set_font, set_minimum_height
from app.theme.theme import color, theme
from core.events import TYPED, Change, Effective, Finished, ReadingMap, Stats
from core.settings import declared
from core.settings.declaration import find

SEPARATOR = " · "


class StatsPart(Struct, frozen=True):
    """One figure and its explanation. A `minor` one is shown on demand only, a `failed` one as a failure."""

    text: str
    detail: str = ""
    minor: bool = False
    failed: bool = False


def finished_parts(
    finished: Finished, *, alone: PartFigures | None = None, reading: ReadingMap | None = None
) -> tuple[StatsPart, ...]:
    """The figures of a finished answer; `alone` are those without its thoughts, None without thoughts.
    `reading` is the map of its prompt, if it was read sparsely.
    """
    stats, drafts = finished.stats, finished.effective.drafter != "off"
    parts = [
        _speed_part(finished),
        StatsPart(strings.FIRST_TOKEN.format(seconds=seconds(stats.ttft_s))),
    ]
    if drafts and stats.tested:
        percent = round(100 * stats.accepted / stats.tested)
        parts.append(StatsPart(strings.ACCEPTED_PERCENT.format(percent=percent)))
    if drafts and _rested(finished):
        parts.append(StatsPart(strings.RESTED, strings.RESTED_DETAIL))
    if ended := _ENDINGS.get(finished.reason):
        parts.append(StatsPart(ended))
    parts += _counted(stats.tokens, alone)
    if drafts:
        parts.append(StatsPart(_drafts(stats), minor=True))
    return (
        *parts,
        StatsPart(strings.MEAN.format(value=stats.mean_per_step), minor=True),
        StatsPart(finished.effective.drafter, _sentence(finished.effective.gate), minor=True),
        StatsPart(_read(stats), _why_read(finished.effective, reading), minor=True),
    )


_ENDINGS = {
    "cancelled": strings.STOPPED_BY_YOU,
    "repetition": strings.STOPPED_REPEATING,
    "length": strings.STOPPED_AT_LIMIT,
}


def live_parts(table: TokenTable, alone: PartFigures | None = None) -> tuple[StatsPart, ...]:
    """The figures of an unfinished answer, from its tokens. Its current speed is on the gauge."""
    if not len(table):
        return ()
    return (
        StatsPart(strings.FIRST_TOKEN.format(seconds=seconds(table[0].time_s))),
        *_counted(len(table), alone),
        StatsPart(strings.MEAN.format(value=len(table) / table.steps), minor=True),
    )


def cut_off_parts(table: TokenTable, alone: PartFigures | None = None) -> tuple[StatsPart, ...]:
    """The figures of an answer whose worker died or failed."""
    parts = live_parts(table, alone)
    if len(table) > 1 and (written_s := table[len(table) - 1].time_s - table[0].time_s) > 0:
        parts = (StatsPart(_speed((len(table) - 1) / written_s)), *parts)
    return (*parts, StatsPart(strings.STOPPED_EARLY, failed=True))


def call_parts(table: TokenTable, calls: Sequence[range]) -> tuple[StatsPart, ...]:
    """How many tokens of the calls with these token indices were forced, copied and new; empty without."""
    written = [table[index] for tokens in calls for index in tokens if table[index].id != TYPED]
    if len(written) < 2:  # imported
        return ()
    forced = sum(token.source == "grammar" for token in written)
    copied = sum(token.origin == "accepted" for token in written) - forced
    words = tools_strings.call_figures(forced, copied, len(written) - forced - copied)
    return (StatsPart(words, tools_strings.CALL_FIGURES_SAYS),)


def imported_parts() -> tuple[StatsPart, ...]:
    """The line of an answer imported from a text."""
    return (StatsPart(strings.IMPORTED),)


def edited_parts() -> tuple[StatsPart, ...]:
    """The line of an answer that a person edited, until the model continues it."""
    return (StatsPart(strings.EDITED),)


def change_text(change: Change) -> str:
    """A sentence about a setting that was changed, or about images that were left out."""
    if change.setting == "images" and change.used.isdigit():
        return strings.images_left_out(change.used, change.asked, change.reason)
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


def tip_text(parts: Sequence[StatsPart]) -> str:
    """All figures, one in a line, with their explanations."""
    return "\n".join(f"{part.text}: {part.detail}" if part.detail else part.text for part in parts)


def seconds(value_s: float) -> str:
    """A time with three significant digits: 0.41 s, 24.3 s, 112 s."""
    decimals = 2 if value_s < 9.995 else 1 if value_s < 99.95 else 0
    return strings.SECONDS.format(value=f"{value_s:,.{decimals}f}")


# Below this gain, and for fewer tokens, the two speeds differ by chance.
_LEAST_GAIN, _LEAST_TOKENS = 1.05, 16
# With fewer plain steps in the answer their speed may be that of its first ones, which are slow.
_LEAST_PLAIN = 4
# Share of plain steps from which on an answer counts as written without drafts.
_MOSTLY = 0.75


def _gain(stats: Stats) -> float:
    """How many times faster the answer was written than without drafts; 0 if it was not, or if unknown."""
    plain = stats.plain_tokens_per_s
    is_known = plain and stats.tokens >= _LEAST_TOKENS and stats.normal >= _LEAST_PLAIN
    gain = stats.tokens_per_s / plain if is_known else 0.0
    return gain if gain >= _LEAST_GAIN else 0.0


def _rested(finished: Finished) -> bool:
    """Whether most of the answer was written without drafts, because they do not pay."""
    stats = finished.stats
    is_plain = stats.tokens >= _LEAST_TOKENS and stats.normal > _MOSTLY * stats.steps
    return is_plain and finished.effective.gate.startswith("resting") and not _gain(stats)


def _speed_part(finished: Finished) -> StatsPart:
    stats, drawn = finished.stats, _drawn(finished.effective)
    gain = _gain(stats) if finished.effective.drafter != "off" else 0.0
    if not gain:
        return StatsPart(_speed(stats.tokens_per_s), drawn)
    value, plain = _rate(stats.tokens_per_s), _rate(stats.plain_tokens_per_s)
    detail = f"{strings.GAIN_DETAIL.format(plain=plain)} {drawn}".strip()
    return StatsPart(strings.GAIN.format(times=f"{gain:.1f}", value=value, plain=plain), detail)


def _rate(tokens_per_s: float) -> str:
    return f"{tokens_per_s:,.{1 if tokens_per_s < 99.95 else 0}f}"


def _speed(tokens_per_s: float) -> str:
    return strings.SPEED.format(value=_rate(tokens_per_s))


def _drawn(effective: Effective) -> str:
    """The seed, if tokens were sampled."""
    sampling = effective.settings.sampling
    return strings.DRAWN.format(seed=sampling.seed) if sampling.temperature > 0 else ""


def _count(tokens: int) -> str:
    return strings.ONE_TOKEN if tokens == 1 else strings.TOKENS.format(tokens=tokens)


def _counted(tokens: int, alone: PartFigures | None) -> tuple[StatsPart, ...]:
    """The token count; with thoughts, that of the answer and then of both."""
    if alone is None:
        return (StatsPart(_count(tokens), minor=True),)
    text = strings.ANSWER_ALONE.format(tokens=_count(alone.tokens), seconds=seconds(alone.took_s))
    if alone.percent is not None:
        text += ", " + strings.ACCEPTED_SHARE.format(accepted=alone.accepted, percent=alone.percent)
    whole = strings.WITH_THOUGHT.format(tokens=_count(tokens))
    return (StatsPart(text, minor=True), StatsPart(whole, strings.WITH_THOUGHT_DETAIL, minor=True))


def _drafts(stats: Stats) -> str:
    if not stats.tested:
        return strings.NO_DRAFTS
    return strings.DRAFTS.format(accepted=stats.accepted, tested=stats.tested)


def _read(stats: Stats) -> str:
    images = []
    if stats.image_tokens:
        took = seconds(stats.image_s)
        images = [strings.IMAGES_READ.format(tokens=stats.image_tokens, seconds=took)]
    if stats.read_tokens >= stats.prompt_tokens:
        return ", ".join((strings.READ_ALL.format(total=stats.prompt_tokens), *images))
    parts = [strings.READ_SOME.format(read=stats.read_tokens, total=stats.prompt_tokens)]
    if stats.reused_tokens:
        parts.append(strings.CACHED.format(cached=stats.reused_tokens))
    if stats.skipped_tokens:
        parts.append(strings.SKIPPED.format(skipped=stats.skipped_tokens))
    elif stats.kept_tokens:
        parts.append(strings.ATTENDED.format(attended=stats.kept_tokens))
    return ", ".join((*parts, *images))


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


_LINE_PX = 16


class StatsLabel(QLabel):
    """Shows the brief figures in one line; all of them are in the tooltip and the context menu."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._parts: tuple[StatsPart, ...] = ()
        self.setTextFormat(Qt.TextFormat.RichText)
        self.setWordWrap(True)
        self.setForegroundRole(QPalette.ColorRole.PlaceholderText)
        set_font(self, 11, tabular=True)
        set_minimum_height(self, _LINE_PX)
        theme.changed.connect(self._write)

    @property
    def figures(self) -> str:
        """All figures in one line."""
        return plain_text(self._parts)

    @property
    def line(self) -> str:
        """The visible figures in one line."""
        return plain_text([part for part in self._parts if not part.minor])

    def set_parts(self, parts: Sequence[StatsPart]) -> None:
        self._parts = tuple(parts)
        self.setAccessibleName(self.figures)
        self.setAccessibleDescription(details_text(self._parts))
        self.setToolTip(tip_text(self._parts))
        self._write()

    def _write(self) -> None:
        # A line breaks between figures only.
        shown = [
            f"<span style='color: {color('danger' if part.failed else 'text2').name()}'>"
            f"{escape(part.text).replace(' ', '&nbsp;')}</span>"
            for part in self._parts
            if not part.minor
        ]
        self.setText(SEPARATOR.join(shown))

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        menu = QMenu(self)
        for text in (part.text for part in self._parts):
            menu.addAction(strings.COPY_FIGURE.format(figure=text), partial(to_clipboard, text))
        menu.addAction(strings.COPY_FIGURES, lambda: to_clipboard(self.figures))
        pop_up(menu, event.globalPos())
