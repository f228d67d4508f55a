"""ContextMeter: shows in the composer how many tokens of the context the chat would use with the draft.

The used context is that of the last answer plus what will be read of the draft. The worker counts texts
while it is idle, 0.3 s after the last change; until then they are estimated. A refusal by the worker is shown
until the draft changes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from PySide6.QtCore import QObject, QTimer

from app.chat.attachment_chip import estimated_tokens
from app.chat.composer_tools import MessageSize
from app.controllers.link import WorkerLink
from app.controllers.views import Views
from core.events import CountTokens, ModelInfo, ReadingPace, TokenCount
from core.prefill.forecast import ReadingForecast, forecast
from core.settings import Settings
from core.worker.client import CommandError

_AFTER_MS = 300


class TokenMemory(Protocol):
    """A cache of token counts by tokenizer family."""

    def tokens_of(self, text: str, family: str) -> int | None:
        """The tokens of `text`; None if unknown."""
        ...

    def learn_tokens(self, text: str, family: str, tokens: int) -> bool:
        """Store a count. Returns True if it was stored and is new."""
        ...


class ContextMeter(QObject):
    """`worker` counts. The inspector shows what will be read of the draft, the transcript needs the limit."""

    def __init__(self, views: Views, worker: WorkerLink) -> None:
        super().__init__(views.composer)
        self._views = views
        self._composer = composer = views.composer
        self._worker = worker
        self._counts = TokenCounts()
        self._idle = False
        self._used_tokens = 0
        self._uncounted = ""
        self._settings = Settings()
        self._pace: ReadingPace | None = None
        self._model_tokens = 0
        self._refused_by_tokens = 0
        self._read = 0.0
        self._memory: TokenMemory | None = None
        self._family = ""
        self._timer = QTimer(self, interval=_AFTER_MS, singleShot=True)
        self._timer.timeout.connect(self._count)
        composer.draft_changed.connect(self._draft_changed)

    def set_model(self, info: ModelInfo) -> None:
        """Discard all counts for another tokenizer and limit."""
        self._counts = TokenCounts()
        self._family = info.family
        self._pace = None
        self._model_tokens = info.context_tokens
        self._views.transcript.set_context_limit(self.limit_tokens)
        self._show()

    @property
    def family(self) -> str:
        """The tokenizer family; empty while no model is loaded."""
        return self._family

    def set_memory(self, memory: TokenMemory) -> None:
        self._memory = memory

    def remember(self, text: str) -> None:
        """Store the count of a document that is kept, if the model has counted it."""
        if self._memory and (tokens := self._counts.of(text)):
            self._memory.learn_tokens(text, self._family, tokens)

    @property
    def limit_tokens(self) -> int:
        """The context limit of the next answer: the model's, or a lower setting."""
        return self._settings.prefill.context_of(self._model_tokens)

    def set_idle(self, idle: bool) -> None:
        if idle and not self._idle:
            self._timer.start()
        self._idle = idle

    def forget(self) -> None:
        """Discard pending counts after the worker exits."""
        self._counts = TokenCounts()

    def show_read(self, fraction: float | None) -> None:
        """The fraction of the attached documents that the worker has read before the question."""
        self._read = fraction or 0.0
        self._composer.chips.show_read(fraction)
        self._show()

    def show_refused(self, over_tokens: int) -> None:
        """Show that the worker refused the draft as too long by `over_tokens`."""
        self._refused_by_tokens = over_tokens
        self._show()

    def show_used(self, used_tokens: int, uncounted: str = "") -> None:
        """Show the context of the open chat, without the draft.

        `uncounted` is text of the next request that no answer has counted, such as an imported chat's.
        """
        if uncounted != self._uncounted:
            self._uncounted = uncounted
            self._timer.start()
        self._used_tokens = used_tokens
        self._show()

    def set_settings(self, settings: Settings) -> None:
        """The settings of the next answer."""
        if settings != self._settings:
            self._settings = settings
            self._views.transcript.set_context_limit(self.limit_tokens)
            self._show()

    async def _count_text(self, text: str) -> None:
        counts = self._counts
        try:
            count = await self._worker.ask(CountTokens("", text), TokenCount)
        except CommandError:
            counts.answer(text, None)
            return
        if counts is not self._counts:
            return  # another model is loaded
        self._pace = count.pace or self._pace
        counts.answer(text, count.tokens)
        self.remember(text)
        self._composer.chips.show_tokens(counts.of)
        self._show()

    def _draft_changed(self) -> None:
        if self._refused_by_tokens:
            self._refused_by_tokens = 0
            self._show()
        self._timer.start()

    def _recall(self) -> None:
        for text in self._texts():
            if not self._memory or self._counts.of(text) is not None:
                continue
            if (known := self._memory.tokens_of(text, self._family)) is not None:
                self._counts.know(text, known)

    def _count(self) -> None:
        self._recall()
        if self._idle:
            for text in self._counts.ask(self._texts()):
                self._worker.begin(self._count_text(text))
            self._composer.chips.show_tokens(self._counts.of)
            self._show()
        elif not any(self._texts()[1:]):  # the draft was sent
            self._views.inspector.show_estimate(ReadingForecast(0, 0))

    def _show(self) -> None:
        texts, prefill, limit_tokens = self._texts(), self._settings.prefill, self.limit_tokens
        uncounted, typed, *attached = (self._counts.of(text) for text in texts)
        # With sparse prefill beyond the context, only passages that fit are read, so there is no limit.
        fits_always = prefill.reads_beyond and not self._refused_by_tokens
        used_tokens = self._used_tokens + (uncounted or 0)
        written = MessageSize(used_tokens, typed, tuple(attached), 0 if fits_always else limit_tokens)
        counts = zip(texts[1:], (typed, *attached), strict=True)
        typed_tokens, *documents = (
            estimated_tokens(text) if count is None else count for text, count in counts
        )
        new_tokens, read_tokens = typed_tokens + sum(documents), round(self._read * sum(documents))
        will = forecast(
            new_tokens - read_tokens,
            used_tokens + read_tokens,
            limit_tokens,
            prefill,
            max_tokens=self._settings.sampling.max_tokens,
            pace=self._pace,
        )
        self._views.inspector.show_estimate(will)
        read_then = read_tokens + will.read_tokens if will.reads_some else new_tokens
        used_then = used_tokens + read_then
        self._composer.pill.show_context(used_then, limit_tokens)
        self._composer.show_fit(written, self._refused_by_tokens)

    def _texts(self) -> list[str]:
        composer = self._composer
        return [
            self._uncounted,
            composer.text.strip(),
            *(attachment.text for attachment in composer.attachments),
        ]


class TokenCounts:
    """Counts by one model's tokenizer."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}
        self._asked: set[str] = set()

    def of(self, text: str) -> int | None:
        """Returns the tokens of `text`, None if unknown. The empty text has none."""
        return self._known.get(text) if text else 0

    def know(self, text: str, tokens: int) -> None:
        self._known[text] = tokens

    def ask(self, texts: Iterable[str]) -> tuple[str, ...]:
        """Returns the texts to count. Forgets all texts but these."""
        wanted = {text for text in texts if text}
        self._known = {text: tokens for text, tokens in self._known.items() if text in wanted}
        unknown = tuple(text for text in sorted(wanted - self._asked) if self.of(text) is None)
        self._asked.update(unknown)
        return unknown

    def answer(self, text: str, tokens: int | None) -> None:
        """Store a result, None if the text could not be counted."""
        self._asked.discard(text)
        if tokens is not None:
            self._known[text] = tokens
