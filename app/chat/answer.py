"""AnswerView: one answer in the transcript: what is read, then the text, then the footer.

Widgets of the transcript are asked `height_for(width)` and placed by it; `height_changed` says
that the answer must be asked again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from PySide6.QtCore import QEvent, QRect, Qt, Signal
from PySide6.QtGui import QEnterEvent, QGuiApplication, QMouseEvent, QResizeEvent
from PySide6.QtWidgets import QWidget

from app.chat import stats_line, strings, token_strip
from app.chat.answer_body import AnswerBody
from app.chat.answer_footer import AnswerFooter
from app.chat.entry import Reply
from app.chat.reading_card import ReadingCard
from app.chat.reading_facts import everything_s, everything_words, fits, is_worth_showing
from app.chat.sources import sources_of
from app.chat.token_facts import TokenFacts, facts_of
from app.richtext.canvas.accessible_text import announce
from app.richtext.canvas.text_canvas import MARGIN_PX
from app.richtext.layout.tint_paint import TintMode
from app.theme.theme import Theme
from app.theme.zoom import px, px_rect
from core.events import Finished, PrefillProgress, Token

_STRIP_GAP_PX = 12
_FOOTER_OUTDENT_PX = 6
# Figures that change 30 times a second cannot be read: four times is what the gauges do.
_STATS_EVERY_S = 0.25


class AnswerView(QWidget):
    """Stands `OUTDENT_PX` out of the reading column on both sides."""

    OUTDENT_PX = MARGIN_PX
    height_changed = Signal()
    token_pointed = Signal(object, int, QRect)  # self, token or −1, where it is in this widget
    regenerate_requested = Signal()
    everything_requested = Signal()
    more_requested = Signal()
    stop_requested = Signal()
    place_chosen = Signal(object)  # events.Passage, on the map that is read
    source_chosen = Signal(object)  # Source
    chosen = Signal()  # a press of the mouse anywhere in it
    branch_requested = Signal()
    version_requested = Signal(int)  # its place
    compare_requested = Signal()

    def __init__(self, theme: Theme, reply: Reply, parent: QWidget | None = None) -> None:
        """Shows nothing of `reply` until `ready_some` has said that it is ready."""
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_StaticContents)
        self._theme = theme
        self._reply = reply
        self._drafter = reply.drafter
        self._ready = False
        self._card: ReadingCard | None = None
        self._is_newest = False
        self._hovered = False
        self._finished = False
        self._stats_shown_s = 0.0
        self.body = AnswerBody(theme, self, reply.text, reply.unfolded)
        self.footer = AnswerFooter(theme, self)
        self.footer.hide()
        self.body.height_changed.connect(self.height_changed)
        self.body.token_pointed.connect(self._body_pointed)
        self.footer.strip.token_pointed.connect(self._strip_pointed)
        self.footer.regenerate_requested.connect(self.regenerate_requested)
        self.footer.everything_requested.connect(self.everything_requested)
        self.footer.more_requested.connect(self.more_requested)
        self.footer.branch_requested.connect(self.branch_requested)
        self.footer.copy_requested.connect(self.copy)
        self.footer.source_chosen.connect(self.source_chosen)
        self.footer.version_requested.connect(self.version_requested)
        self.footer.compare_requested.connect(self.compare_requested)

    # ---- getting ready

    @property
    def is_ready(self) -> bool:
        """Whether all that is known of the answer is shown."""
        return self._ready

    def ready_some(self) -> bool:
        """Show one part more of what is known, a few milliseconds' work; whether that was all."""
        column = self.width() - 2 * self.OUTDENT_PX
        if self._ready or not self._reply.read_some() or not self.body.lay_out_some(column):
            return self._ready
        self._ready = True
        reply = self._reply
        if reply.tokens:
            self.footer.show()
            self.footer.append(reply.tokens)
            self._show_live()
        elif reply.progress:
            self.show_progress(reply.progress)
        if reply.over:
            self.finish(reply.finished, reply.note)
        return True

    # ---- what is shown

    @property
    def text(self) -> str:
        """The answer's source."""
        return self.body.table.text

    @property
    def card(self) -> ReadingCard | None:
        """The reading card while it is shown."""
        return self._card

    def facts(self, token: int) -> TokenFacts:
        """What the tooltip says about that token."""
        return facts_of(self.body.table, token, self._drafter, self.body.link_of(token))

    def show_progress(self, progress: PrefillProgress) -> None:
        """The prompt is being read. Ignored once a token has come."""
        if len(self.body.table) or self._finished:
            return
        if self._card is None:
            if not is_worth_showing(progress):
                return
            self._make_card()
        assert self._card
        self._change_card(lambda card: card.show_progress(progress))

    def show_map(self) -> None:
        """It is known what of the prompt is read. Ignored once a token has come."""
        reading = self._reply.reading
        if self._card is not None and reading is not None:
            self._change_card(lambda card: card.show_map(reading, self._reply.labels))

    def append(self, tokens: Sequence[Token]) -> None:
        """More of the answer."""
        if not tokens:
            return
        self._drop_card()
        self.footer.show()
        self.body.append(tokens)
        self.footer.append(tokens)
        now_s = time.monotonic()
        if now_s - self._stats_shown_s >= _STATS_EVERY_S:
            self._stats_shown_s = now_s
            self._show_live()

    def finish(self, finished: Finished | None, note: str) -> None:
        """The end: figures if it ended in order, or that it was cut off, and a note."""
        self._drop_card()
        self._finished = True
        self.body.finish()  # which says what of it was a thought
        alone = self.body.figures
        notes = [note] if note else []
        if finished:
            self._drafter = finished.effective.drafter
            parts = stats_line.finished_parts(finished, by_you=not note, alone=alone)
            notes = [stats_line.change_text(change) for change in finished.effective.changes] + notes
            if finished.effective.unmatched:
                notes.insert(0, strings.UNMATCHED)
        else:
            parts = (
                stats_line.imported_parts()
                if self._reply.imported
                else stats_line.cut_off_parts(self.body.table, alone)
            )
        # Words that an answer shares with a passage by chance support nothing.
        passages = finished.sources if finished and not finished.effective.unmatched else ()
        self.footer.finish(
            parts, notes, sources_of(passages, self.text, self._reply.documents, self._reply.reading)
        )
        self.footer.show_version(self._reply.place, self._reply.versions)
        if finished and finished.effective.reading == "sparse" and fits(finished.stats):
            stats = finished.stats
            takes_s = everything_s(self._reply.reading, stats)
            self.footer.offer_everything(everything_words(stats.prompt_tokens, takes_s))
        self.footer.show()
        self.footer.strip.set_thoughts(self.body.thoughts)
        self._reveal()
        self.height_changed.emit()
        if self._ready and self.isVisible():
            announce(self, f"{strings.ANSWER_DONE}. {self.footer.stats.text}")

    def _show_live(self) -> None:
        """Figures of what is there so far."""
        self.footer.set_stats(stats_line.live_parts(self.body.table, self.body.figures))
        self.footer.strip.set_thoughts(self.body.thoughts)

    def set_mode(self, mode: TintMode) -> None:
        """When tints show."""
        self.body.set_mode(mode)
        if self.footer.strip.isHidden() != (mode == "never"):
            self.footer.strip.setVisible(mode != "never")
            self.height_changed.emit()

    def set_newest(self, newest: bool) -> None:
        """Whether this is the newest finished answer, whose actions always show."""
        self._is_newest = newest
        self._reveal()

    def _reveal(self) -> None:
        self.footer.set_revealed(self._is_newest or self._hovered)
        self.footer.stats.set_revealed(self._hovered)

    def _make_card(self) -> None:
        card = self._card = ReadingCard(self._theme, self)
        card.everything_requested.connect(self.everything_requested)
        card.cancel_requested.connect(self.stop_requested)
        card.place_chosen.connect(self.place_chosen)
        card.show()
        self.body.hide()
        if self._reply.reading is not None:
            card.show_map(self._reply.reading, self._reply.labels)
        self.height_changed.emit()

    def _change_card(self, change: Callable[[ReadingCard], None]) -> None:
        assert self._card
        before_px = self._card.height_px
        change(self._card)
        if self._card.height_px != before_px:
            self.height_changed.emit()

    def _drop_card(self) -> None:
        if self._card:
            self._card.hide()
            self._card.deleteLater()
            self._card = None
            self.body.show()

    def copy(self) -> None:
        """Copy the answer's source, without thoughts."""
        QGuiApplication.clipboard().setText(self._reply.text.answer_source)

    # ---- place

    def height_for(self, width: int) -> int:
        """The height when the reading column is `width` wide."""
        if self._card:
            return px(self._card.height_px)
        height = self.body.height_for(width)
        if not self.footer.isHidden():
            height += px(_STRIP_GAP_PX - token_strip.REACH_PX) + self.footer.height_for(
                width + 2 * px(_FOOTER_OUTDENT_PX)
            )
        return height

    def resizeEvent(self, event: QResizeEvent) -> None:
        self.arrange()

    def arrange(self) -> None:
        """Put the parts in their places. The owner calls it after a change of height."""
        column = self.width() - 2 * self.OUTDENT_PX
        if self._card:
            self._card.setGeometry(self.OUTDENT_PX, 0, column, px(self._card.height_px))
            return
        height = self.body.height_for(column)
        # Outlines reach over the last line's edge; the footer starts well below.
        self.body.setGeometry(self.OUTDENT_PX - MARGIN_PX, 0, column + 2 * MARGIN_PX, height + 2)
        top = height + px(_STRIP_GAP_PX - token_strip.REACH_PX)
        width = column + 2 * px(_FOOTER_OUTDENT_PX)
        left = self.OUTDENT_PX - px(_FOOTER_OUTDENT_PX)
        self.footer.setGeometry(left, top, width, self.footer.height_for(width))

    # ---- pointing

    def _body_pointed(self, token: int) -> None:
        rect = self.body.token_rect(token) if token >= 0 else None
        if rect is None:
            self.token_pointed.emit(self, -1, QRect())
            return
        self.token_pointed.emit(self, token, self.target_of(token))

    def target_of(self, token: int) -> QRect:
        """Where the token's text is in this widget; empty if it is not seen."""
        rect = self.body.token_rect(token)
        return rect.toAlignedRect().translated(self.body.pos()) if rect else QRect()

    def _strip_pointed(self, token: int) -> None:
        shown = self.body.table.shown_by(token) if token >= 0 else None
        self.body.point_at(-1 if shown is None else shown)
        if token < 0:
            self.token_pointed.emit(self, -1, QRect())
            return
        cell = px_rect(self.footer.strip.cell(token)).toAlignedRect()
        origin = self.footer.strip.mapTo(self, cell.topLeft())
        self.token_pointed.emit(self, token, QRect(origin, cell.size()))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self.chosen.emit()
        super().mousePressEvent(event)

    def enterEvent(self, event: QEnterEvent) -> None:
        self._hovered = True
        self._reveal()

    def leaveEvent(self, event: QEvent) -> None:
        self._hovered = False
        self._reveal()
