"""AnswerView: one answer in the transcript: the reading card during the prefill, then text and footer.

While a person edits the answer, an editor with the Markdown source without thoughts takes the place of both.
⌘Return saves. Escape cancels, and asks first if the text was changed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, QPointF, QRect, Qt, QTimer
from PySide6.QtGui import QEnterEvent, QKeyEvent, QMouseEvent, QResizeEvent
from PySide6.QtWidgets import QApplication, QScrollArea, QWidget

from app.chat import stats_line, strings, tokens
from app.chat.answer_body import AnswerBody
from app.chat.answer_footer import AnswerFooter
from app.chat.entry import AnswerEntry
from app.chat.intents import Intent, SaveAnswer, SelectAnswer
from app.chat.origin_marks import facts_line, mark_facts
from app.chat.reading_card import ReadingCard
from app.chat.reading_map import dense_estimate, is_worth_showing
from app.chat.reading_state import now_s
from app.chat.sources import Source, sources_of
from app.chat.tokens import TokenFacts, facts_of, spoken
from app.controls.buttons import Button, on_click
from app.controls.keys import held
from app.controls.sheets import Question
from app.controls.text_fields import TextArea
from app.controls.text_label import TextLabel
from app.richtext.text_canvas import MARGIN_PX, announce
from app.richtext.tint_paint import TokenColors
from app.session.origins import distinct
from app.theme.zoom import px, px_rect
from core.events import Finished, Token

if TYPE_CHECKING:
    from app.chat.tools.card import CallCard

_EDITOR_GAP_PX = 8
_EDITOR_FONT_PX, _EDITOR_LINE_PX = 14.5, 22
_EDITOR_LINES = 20


class AnswerEditor(QWidget):
    """`save` gets the text, `cancel` is called when it is discarded, `resized` when the height changed.

    Extends `MARGIN_PX` beyond the text column on both sides.
    """

    def __init__(
        self,
        text: str,
        save: Callable[[str], object],
        cancel: Callable[[], object],
        resized: Callable[[], object],
        parent: QWidget,
    ) -> None:
        super().__init__(parent)
        self._cancel = cancel
        self.area = TextArea(self, font_px=_EDITOR_FONT_PX, line_px=_EDITOR_LINE_PX)
        self.area.setAccessibleName(strings.EDIT_ANSWER)
        self.area.setAccessibleDescription(strings.EDIT_ANSWER_SAYS)
        self.area.set_value(text)
        self._before = self.area.value  # a text field may change line ends
        self.area.value_changed.connect(self._on_changed)
        self.area.resized.connect(resized)
        self.cancel_button = Button(strings.CANCEL, small=True, parent=self)
        self.save_button = Button(strings.SAVE, "primary", True, self)
        self.save_button.setToolTip(strings.SAVE_KEYS)
        on_click((self.cancel_button, self.cancel), (self.save_button, lambda: save(self.area.value)))
        self.area.installEventFilter(self)
        self.setFocusProxy(self.area)

    @property
    def text(self) -> str:
        return self.area.value

    @property
    def is_changed(self) -> bool:
        """Whether discarding the text would lose something."""
        return self.area.value != self._before and bool(self.area.value.strip())

    def cancel(self) -> None:
        """Close without saving, after a question if the text was changed."""
        if not self.is_changed:
            self._cancel()
            return
        question = Question(
            strings.DISCARD_TITLE,
            strings.DISCARD_DETAIL,
            strings.KEEP_EDITING,
            [("discard", strings.DISCARD, "danger")],
            self.window(),
        )
        question.chosen.connect(lambda _: self._cancel())
        question.rejected.connect(self.setFocus)
        question.open()

    def height_for(self, width: int) -> int:
        """The height in screen pixels in a text column of that width."""
        return self._area_height(width) + px(_EDITOR_GAP_PX) + self.save_button.sizeHint().height()

    def resizeEvent(self, event: QResizeEvent) -> None:
        height = self._area_height(self.width() - 2 * MARGIN_PX)
        self.area.setGeometry(0, 0, self.width(), height)
        right = self.width()
        for button in (self.save_button, self.cancel_button):
            size = button.sizeHint()
            right -= size.width()
            button.setGeometry(right, height + px(_EDITOR_GAP_PX), size.width(), size.height())
            right -= px(_EDITOR_GAP_PX)

    def eventFilter(self, field: QObject, event: QEvent) -> bool:
        if not isinstance(event, QKeyEvent):
            return super().eventFilter(field, event)
        returns = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        saves = returns and bool(held(event) & Qt.KeyboardModifier.ControlModifier)
        if not saves and event.key() != Qt.Key.Key_Escape:
            return super().eventFilter(field, event)
        if event.type() is QEvent.Type.ShortcutOverride:  # else Escape stops the answer of another chat
            event.accept()
            return True
        if event.type() is QEvent.Type.KeyPress:
            if saves:
                self.save_button.click()
            else:
                self.cancel()
            return True
        return super().eventFilter(field, event)

    def _area_height(self, column: int) -> int:
        return self.area.height_for(column + 2 * MARGIN_PX, _EDITOR_LINES)

    def _on_changed(self, text: str) -> None:
        self.save_button.setEnabled(bool(text.strip()))


_STRIP_GAP_PX = 12
_CALL_GAP_PX = 10
_FOOTER_OUTDENT_PX = 6
# Figures that change 30 times a second cannot be read. The gauges use the same rate.
_STATS_EVERY_S = 0.25
# A wait that ends sooner is not named: the words would only flash.
_WAITS_SHOWN_AFTER_S = 0.5


class AnswerView(QWidget):
    """Extends `MARGIN_PX` beyond the text column on both sides.

    The transcript places it: it calls `height_for(width)`, and again after `resized`.
    """

    def __init__(
        self,
        entry: AnswerEntry,
        act: Callable[[Intent], object],
        resized: Callable[[], object],
        point: Callable[[QWidget, Callable[[], TokenFacts] | None, QRect], object],
        parent: QWidget | None = None,
    ) -> None:
        """Does not show `entry` until `prepare_step` has returned True.

        `act` gets the person's intents, `point` this widget, the facts of the token that is pointed at (None:
        none) and its rectangle here.
        """
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_StaticContents)
        self._entry = entry
        self._act = act
        self._resized = resized
        self._on_pointed = point
        self._drafter = entry.drafter
        self._ready = False
        self._sources: tuple[Source, ...] = ()
        self._copies_only = False
        self.card: ReadingCard | None = None  # during the prefill
        self.editor: AnswerEditor | None = None  # while a person edits the answer
        self.calls: dict[str, CallCard] = {}  # that wait for permission, by id, in order
        self._is_newest = False
        self._hovered = False
        self._finished = False
        self._stats_shown_s = 0.0
        self._limit_tokens = 0  # of the context; 0: unknown
        self.body = AnswerBody(self, entry.text, entry.unfolded, entry.turn_id, act, self._body_pointed)
        self.footer = AnswerFooter(entry, act, self._strip_pointed, self)
        self.footer.hide()
        self.waiting = TextLabel("", 13, 20, "text2", parent=self)  # what an answer without text waits for
        self.waiting.hide()
        self._waiting_timer = QTimer(self, singleShot=True)
        self._waiting_timer.timeout.connect(self.show_waiting)
        self.body.height_changed.connect(resized)
        self.body.on_mark = self._mark_pointed
        on_click((self.footer.nowhere_button, self._next_nowhere))

    # ---- preparation

    @property
    def is_ready(self) -> bool:
        """Whether the whole entry is shown."""
        return self._ready

    def prepare_step(self) -> bool:
        """Parse and lay out for a few milliseconds. Returns True once the whole entry is shown."""
        column = self.width() - 2 * MARGIN_PX
        if self._ready or not self._entry.parse_step():
            return self._ready
        if self._entry.over and not self.body.boxes:
            self._find_sources()
        if not self.body.lay_out_step(column):
            return self._ready
        self._ready = True
        entry = self._entry
        if tokens := self.body.table.tokens:
            self.footer.show()
            self.footer.strip.append(tokens)
            self._show_live()
        else:
            self.show_reading()
        self.body.set_origins(entry.origins)
        if entry.over:
            self.finish(entry.finished, entry.note)
        self.show_calls()
        self.show_waiting()
        return True

    # ---- content

    @property
    def text(self) -> str:
        """The answer's Markdown source."""
        return self.body.table.text

    def edit(self) -> None:
        """Edit the answer in its place."""
        if self.editor is None and self.is_editable:
            text = self._entry.text.answer_source
            self.editor = AnswerEditor(text, self._save, self.end_edit, self._resized, self)
            self.body.hide()
            self.footer.hide()
            self.editor.show()
            self._resized()
        if self.editor is not None:
            self.editor.setFocus()

    def save_edit(self) -> None:
        """Save the text of the editor as a version, if it was changed, and close the editor."""
        if self.editor is not None:
            self._save(self.editor.text if self.editor.is_changed else self._entry.text.answer_source)

    def end_edit(self) -> None:
        """Close the editor. Its text is discarded."""
        if self.editor is None:
            return
        focus = QApplication.focusWidget()
        self.body.show()
        self.footer.show()
        if focus is not None and self.editor.isAncestorOf(focus):
            self.body.setFocus()
        self.editor.hide()
        self.editor.deleteLater()
        self.editor = None
        self._resized()

    def _save(self, text: str) -> None:
        edits = self._entry.text.edits(text)
        self.end_edit()
        if edits:
            self._act(SaveAnswer(self._entry.turn_id, edits))

    def offer_copy_only(self) -> None:
        """Offer Copy only, for answers to API clients."""
        self._copies_only = True
        self.footer.offer_copy_only()

    @property
    def is_editable(self) -> bool:
        """Whether the answer is over and has a text that is not a thought."""
        return self._entry.over and not self._copies_only and bool(self._entry.text.answer_source.strip())

    def facts(self, token: int) -> TokenFacts:
        """The tooltip's content for that token."""
        return facts_of(self.body.table, token, self._drafter, self.body.link_of(token))

    def show_reading(self) -> None:
        """Show the prefill's progress and map, which the entry has. Ignored after the first token."""
        progress = self._entry.reading_state.progress
        if progress is None or len(self.body.table) or self._finished:
            return
        if self.card is not None:
            self._change_card(ReadingCard.refresh)
        elif is_worth_showing(progress):
            self._make_card()

    def show_waiting(self) -> None:
        """Show what the answer waits for, half a second after that began; a caret alone does not say it."""
        has_text = self.body.has_text
        words = self._entry.waits_for or ("" if has_text else strings.WRITES)
        shown = not self._finished and self.card is None and not self.calls and bool(words)
        left_s = self._entry.waits_since_s + _WAITS_SHOWN_AFTER_S - now_s()
        if shown and left_s > 0:
            self._waiting_timer.start(math.ceil(1000 * left_s))
            shown = False
        else:
            self._waiting_timer.stop()
        if (words if shown else "") == self.waiting.text():
            return
        self.waiting.setText(words if shown else "")
        self.waiting.setVisible(shown)
        self.body.setVisible((has_text or not shown) and self.card is None and self.editor is None)
        self._resized()

    def show_calls(self) -> None:
        """Show the calls of the entry as they are now: cards for those that wait, else lines in the text."""
        entry = self._entry
        if entry.calls:
            self.body.show_calls([view.record for view in entry.calls])
        waiting = {view.record.id: view for view in entry.waiting_calls}
        for call_id in self.calls.keys() - waiting.keys():
            card = self.calls.pop(call_id)
            card.hide()
            card.deleteLater()
        for call_id, view in waiting.items():
            if call_id in self.calls:
                self.calls[call_id].show_view(view)
            else:
                from app.chat.tools.card import CallCard  # with the first call

                card = CallCard(entry.turn_id, view, self._act, self._resized, self)
                self.calls[call_id] = card
                card.show()
                announce(self, card.accessibleName())
        if waiting:
            self._drop_card()
        self.show_waiting()
        self._resized()

    @property
    def has_edited_call(self) -> bool:
        """Whether the arguments of a call that waits were changed."""
        return any(card.is_edited for card in self.calls.values())

    def append(self, tokens: Sequence[Token]) -> None:
        if not tokens:
            return
        self._drop_card()
        self.footer.show()
        self.body.append(tokens)
        self.show_waiting()
        self.footer.strip.append(tokens)
        if now_s() - self._stats_shown_s >= _STATS_EVERY_S:
            self._stats_shown_s = now_s()
            self._show_live()

    def finish(self, finished: Finished | None, note: str) -> None:
        """Show the figures of a finished answer, or that it was cut off (None), and `note`."""
        self._drop_card()
        self._finished = True
        self.show_waiting()
        self.body.finish(finished.repeats_from if finished else None)  # completes the thoughts
        alone = self.body.figures
        notes = [note] if note else []
        if not self._entry.has_figures:
            parts = stats_line.edited_parts()
        elif finished:
            self._drafter = finished.effective.drafter
            parts = stats_line.finished_parts(finished, alone=alone, reading=self._entry.reading)
            notes = [stats_line.change_text(change) for change in finished.effective.changes] + notes
            if finished.effective.unmatched:
                notes.insert(0, strings.UNMATCHED)
        else:
            parts = stats_line.cut_off_parts(self.body.table, alone)
            if self._entry.imported:
                parts = stats_line.imported_parts() if self._entry.says_imported else ()
        if self._entry.has_figures:
            parts = (*parts, *stats_line.call_parts(self.body.table, self.body.call_tokens))
        self._find_sources()
        if self._entry.edited and self._entry.has_figures:
            parts = (*stats_line.edited_parts(), *parts)
        self.footer.finish(parts, notes, self._sources, editable=self.is_editable)
        self.body.can_edit = self.is_editable
        self.footer.show_version(self._entry.version_index, self._entry.versions)
        is_sparse = finished is not None and finished.effective.reading != "dense"
        if finished and is_sparse and self._entry.has_figures:
            stats, reading = finished.stats, self._entry.reading
            estimate = dense_estimate(stats.prompt_tokens, reading.dense_s if reading else None)
            self.footer.offer_everything(stats.prompt_tokens, stats.context_tokens, estimate)
        self._show_facts()
        self.footer.show()
        self.footer.strip.set_thoughts(self.body.thoughts)
        self._reveal()
        self._resized()
        if self._ready and self.isVisible():
            announce(self, f"{strings.ANSWER_DONE}. {self.footer.stats.figures}")

    def show_origins(self) -> None:
        """Show the origins that the entry has now."""
        self.body.set_origins(self._entry.origins)
        if self._finished:
            self._show_facts()
            self._resized()

    def _show_facts(self) -> None:
        """Show the facts below a finished answer. Similar passages are shown only where nothing is copied."""
        origins = self._entry.origins
        shown = origins.complete and self.body.mode != "off"
        skipped = [text for _, text in distinct(origins.skipped, self.text)] if shown else []
        self.footer.show_origins(
            facts_line(origins, self.text) if shown else "",
            strings.skipped_line(skipped) if skipped else "",
            () if origins.runs else self._sources,
            has_nowhere=shown and self.body.mode == "origins" and bool(origins.unfounded),
        )

    def _next_nowhere(self) -> None:
        """Point at the next fact without a source."""
        facts, pointed = self._entry.origins.unfounded, self.body.pointed_mark
        after = pointed.start if pointed is not None else -1
        fact = next((each for each in facts if each.start > after), facts[0] if facts else None)
        if fact is not None:
            self.body.go_to_mark(fact)

    def _mark_pointed(self, at: QPointF | None) -> None:
        """A mark of origins is pointed at: by the mouse, which is at a point of the body, or by the keys."""
        mark = self.body.pointed_mark
        rect = self.body.mark_rect(mark, at) if mark is not None else None
        if mark is None or rect is None:
            self._on_pointed(self, None, QRect())
            return
        facts = mark_facts(mark, self._entry.origins, self.body.mark_text(mark))
        self._on_pointed(self, lambda: facts, rect.toAlignedRect().translated(self.body.pos()))
        if at is None:
            self._show_in_view(rect.toAlignedRect().translated(self.body.pos()))
            announce(self, ". ".join(spoken(facts)))

    def _show_in_view(self, rect: QRect) -> None:
        """Scroll the transcript until `rect` is visible."""
        parent = self.parentWidget()
        while parent is not None and not isinstance(parent, QScrollArea):
            parent = parent.parentWidget()
        column = parent.widget() if parent is not None else None
        if parent is not None and column is not None:
            at = self.mapTo(column, rect.center())
            parent.ensureVisible(at.x(), at.y(), 0, rect.height())

    def _find_sources(self) -> None:
        """Find the sources."""
        entry, finished = self._entry, self._entry.finished
        # An unmatched answer shares words with a passage only by chance.
        if finished and not finished.effective.unmatched and not self._sources:
            self._sources = sources_of(finished.sources, self.text, entry.documents, entry.reading)

    def _show_live(self) -> None:
        """Show the figures of an unfinished answer."""
        self.footer.stats.set_parts(stats_line.live_parts(self.body.table, self.body.figures))
        self.footer.strip.set_thoughts(self.body.thoughts)

    def set_mode(self, mode: TokenColors) -> None:
        """Sets what the colors of the answer mean."""
        self.body.set_mode(mode)
        if self._finished:
            self._show_facts()
            self._resized()
        # One mark a token: the bar where the text has none. Imported tokens have no classes.
        shown = mode == "drafts" and not self._entry.imported
        if self.footer.strip.isHidden() is shown:
            self.footer.strip.setVisible(shown)
            self._resized()

    def set_newest(self, newest: bool) -> None:
        """Sets whether this is the newest finished answer, whose buttons are always visible."""
        self._is_newest = newest
        self._reveal()

    def _reveal(self) -> None:
        self.footer.set_revealed(self._is_newest or self._hovered)

    def set_context_limit(self, tokens: int) -> None:
        """Set what the next answer's context holds; 0 if that is unknown."""
        self._limit_tokens = tokens
        self.footer.set_context_limit(tokens)
        if self.card is not None:
            self.card.set_context_limit(tokens)

    def _make_card(self) -> None:
        card = self.card = ReadingCard(self._entry.turn_id, self._act, self, state=self._entry.reading_state)
        card.set_context_limit(self._limit_tokens)
        card.refresh()
        card.show()
        self.body.hide()
        self.show_waiting()
        self._resized()

    def _change_card(self, change: Callable[[ReadingCard], None]) -> None:
        assert self.card
        before_px = self.card.sizeHint().height()
        change(self.card)
        if self.card.sizeHint().height() != before_px:
            self._resized()

    def _drop_card(self) -> None:
        if self.card:
            self.card.hide()
            self.card.deleteLater()
            self.card = None
            self.body.show()

    # ---- layout

    def height_for(self, width: int) -> int:
        """The height in screen pixels in a text column of that width."""
        if self.card:
            return self.card.sizeHint().height()
        if self.editor:
            return self.editor.height_for(width)
        height = self._text_height(width) + self._calls_height(width)
        if not self.footer.isHidden():
            height += px(_STRIP_GAP_PX - tokens.STRIP_REACH_PX) + self.footer.height_for(
                width + 2 * px(_FOOTER_OUTDENT_PX)
            )
        return height

    def _calls_height(self, width: int) -> int:
        """The height of the cards of waiting calls, with the gap above each."""
        return sum(px(_CALL_GAP_PX) + card.height_for(width) for card in self.calls.values())

    def _text_height(self, width: int) -> int:
        """The height of the body and of the line below it, or in its place while it is empty."""
        height = self.body.height_for(width)
        if self.waiting.isHidden():
            return height
        return height * self.body.has_text + self.waiting.sizeHint().height()

    def resizeEvent(self, event: QResizeEvent) -> None:
        self.arrange()

    def arrange(self) -> None:
        """Lay the parts out. The transcript calls it after a change of height."""
        column = self.width() - 2 * MARGIN_PX
        if self.card:
            self.card.setGeometry(MARGIN_PX, 0, column, self.card.sizeHint().height())
            return
        if self.editor:
            self.editor.setGeometry(
                0,
                0,
                column + 2 * MARGIN_PX,
                self.editor.height_for(column),
            )
            return
        height = self._text_height(column)
        if not self.waiting.isHidden():
            waiting_px = self.waiting.sizeHint().height()
            self.waiting.setGeometry(MARGIN_PX, height - waiting_px, column, waiting_px)
        # 2 px more, because outlines reach below the last line.
        self.body.setGeometry(0, 0, column + 2 * MARGIN_PX, self.body.height_for(column) + 2)
        for card in self.calls.values():
            high = card.height_for(column)
            card.setGeometry(MARGIN_PX, height + px(_CALL_GAP_PX), column, high)
            height += px(_CALL_GAP_PX) + high
        top = height + px(_STRIP_GAP_PX - tokens.STRIP_REACH_PX)
        width = column + 2 * px(_FOOTER_OUTDENT_PX)
        left = MARGIN_PX - px(_FOOTER_OUTDENT_PX)
        self.footer.setGeometry(left, top, width, self.footer.height_for(width))

    # ---- pointing

    def _body_pointed(self, token: int) -> None:
        is_shown = token >= 0 and self.body.token_rect(token) is not None
        self._point(token if is_shown else -1, self.target_of(token) if is_shown else QRect())

    def target_of(self, token: int) -> QRect:
        """The rectangle of the token's text in this widget; empty if it is not visible."""
        rect = self.body.token_rect(token)
        return rect.toAlignedRect().translated(self.body.pos()) if rect else QRect()

    def _strip_pointed(self, token: int) -> None:
        shown = self.body.table.shown_by(token) if self.body.is_of_model(token) else None
        self.body.point_at(-1 if shown is None else shown)
        cell = px_rect(self.footer.strip.cell(token)).toAlignedRect()
        self._point(token, QRect(self.footer.strip.mapTo(self, cell.topLeft()), cell.size()))

    def _point(self, token: int, target: QRect) -> None:
        has_tip = self.body.is_of_model(token)
        self._on_pointed(self, partial(self.facts, token) if has_tip else None, target)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._act(SelectAnswer(self._entry.turn_id))
        super().mousePressEvent(event)

    def enterEvent(self, event: QEnterEvent) -> None:
        self._hovered = True
        self._reveal()

    def leaveEvent(self, event: QEvent) -> None:
        self._hovered = False
        self._reveal()
