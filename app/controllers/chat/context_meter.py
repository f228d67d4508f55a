"""ContextMeter: keeps the composer's ring, chips and notice at the tokens that a message would use.

Used context is what the chat's last answer left plus what is being written. Texts are counted
by the worker, typed ones a moment after the last key, and only while it is idle: `set_idle()`
says when. A refusal by the worker is shown until something is written or removed. Knows the
composer; asks by the callback it is given.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from PySide6.QtCore import QObject, QTimer, Signal

from app.chat.composer import Composer
from app.chat.composer_fit import Written, will_skip
from app.session.chats.counting import TokenCounts
from app.session.turn.intents import Count
from core.events import ModelInfo
from core.settings.prefill import Prefill

_AFTER_MS = 300


class TokenMemory(Protocol):
    """Who remembers what was counted, by the tokenizer's family."""

    def tokens_of(self, text: str, family: str) -> int | None:
        """None if that is not known."""
        ...

    def learn_tokens(self, text: str, family: str, tokens: int) -> bool:
        """It was counted. Whether that is remembered and new."""
        ...


class ContextMeter(QObject):
    """`ask` gets what is to be counted; results come back by `take_count()`."""

    estimated = Signal(int, int, object)  # new tokens, of them about to be skipped, s to read all (or None)

    def __init__(
        self, composer: Composer, ask: Callable[[tuple[Count, ...]], None], parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._composer = composer
        self._ask = ask
        self._counts = TokenCounts()
        self._idle = False
        self._used_tokens = 0
        self._skipped_tokens = 0
        self._uncounted = ""
        self._prefill = Prefill()
        self._token_s: float | None = None  # what reading a token takes, by the newest count
        self._model_tokens = 0
        self._refused_by_tokens = 0
        self._memory: TokenMemory | None = None
        self._family = ""
        self._weighing: dict[str, Callable[[int], None]] = {}
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(_AFTER_MS)
        self._timer.timeout.connect(self._count)
        composer.draft_changed.connect(self._draft_changed)
        composer.set_weigh(self.weigh)

    def set_model(self, info: ModelInfo) -> None:
        """Another tokenizer and another limit: nothing is counted yet."""
        self._counts.forget()
        self._family = info.family
        self._token_s = None
        self._model_tokens = info.context_tokens
        self._show()

    @property
    def family(self) -> str:
        """The tokenizer that counts; empty while there is none."""
        return self._family

    def set_memory(self, memory: TokenMemory) -> None:
        """Who is asked before the worker is, and told what it counted."""
        self._memory = memory

    @property
    def limit_tokens(self) -> int:
        """How long the next answer's context may become: as the model takes, or as was chosen."""
        return self._prefill.context_of(self._model_tokens)

    def set_idle(self, idle: bool) -> None:
        """Whether the worker can count now."""
        if idle and not self._idle:
            self._timer.start()
        self._idle = idle

    def forget(self) -> None:
        """The worker that was asked is gone."""
        self._counts.forget()
        self._weighing.clear()

    def weigh(self, text: str, done: Callable[[int], None]) -> bool:
        """Have `text` counted at once, for `done`. False if the worker cannot now."""
        if not self._idle:
            return False
        known = self._counts.of(text)
        if known is not None:
            done(known)
            return True
        self._weighing[text] = done
        self._ask(self._counts.ask_also(text))
        return True

    def show_refused(self, over_tokens: int) -> None:
        """The worker found what is written too long by that much."""
        self._refused_by_tokens = over_tokens
        self._show()

    def show_used(self, used_tokens: int, skipped_tokens: int = 0, uncounted: str = "") -> None:
        """What the open chat has in the context, without what is being written.

        `skipped_tokens` of them were not read. `uncounted` are words that the model has not seen yet and that
        the next question takes along, as those of an imported chat: the worker counts them.
        """
        if uncounted != self._uncounted:
            self._uncounted = uncounted
            self._timer.start()
        self._used_tokens, self._skipped_tokens = used_tokens, skipped_tokens
        self._show()

    def set_reading(self, prefill: Prefill) -> None:
        """How the next prompt will be read."""
        if prefill != self._prefill:
            self._prefill = prefill
            self._show()

    def take_count(self, request: str, tokens: int | None, dense_s: float | None = None) -> None:
        """A result, or None if there is none; `dense_s` is how long reading all of it takes, if known."""
        if tokens and dense_s is not None:
            self._token_s = dense_s / tokens
        text = self._counts.asked(request)
        if self._counts.answer(request, tokens):
            if self._memory and tokens:
                self._memory.learn_tokens(text, self._family, tokens)
            for text in [text for text in self._weighing if self._counts.of(text) is not None]:
                self._weighing.pop(text)(self._counts.of(text) or 0)
            self._composer.show_tokens(self._counts.of)
            self._show()

    def _draft_changed(self) -> None:
        if self._refused_by_tokens:
            self._refused_by_tokens = 0
            self._show()
        self._timer.start()

    def _recall(self) -> None:
        for text in self._texts():
            if self._memory and self._counts.of(text) is None:
                known = self._memory.tokens_of(text, self._family)
                if known is not None:
                    self._counts.know(text, known)

    def _count(self) -> None:
        self._recall()
        if self._idle:
            self._ask(self._counts.ask(self._texts()))
            self._composer.show_tokens(self._counts.of)
            self._show()

    def _show(self) -> None:
        uncounted, typed, *attached = (self._counts.of(text) for text in self._texts())
        # Of a text that is too long the passages that fit are read, so that nothing is too long for that.
        fits_always = self._prefill.reads_beyond and not self._refused_by_tokens
        limit_tokens = 0 if fits_always else self.limit_tokens
        used_tokens = self._used_tokens + (uncounted or 0)
        written = Written(used_tokens, typed, tuple(attached), limit_tokens)
        dense_s = None if self._token_s is None else self._token_s * written.new_tokens
        will = will_skip(written.new_tokens, dense_s, self._prefill)
        skipped = self._skipped_tokens + will
        self.estimated.emit(written.new_tokens, will, dense_s)
        self._composer.pill.show_context(used_tokens + written.new_tokens, self.limit_tokens, skipped)
        self._composer.show_fit(written, self._refused_by_tokens)

    def _texts(self) -> list[str]:
        composer = self._composer
        return [
            self._uncounted,
            composer.text.strip(),
            *(attachment.text for attachment in composer.attachments),
        ]
