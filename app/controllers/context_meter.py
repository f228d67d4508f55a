"""ContextMeter: shows in the composer how many tokens of the context the chat and the draft use.

The sum is that of the chat (`app.session.context`), the attached documents and images and the
typed text, whatever the worker is doing. The worker counts them while it answers, 0.3 s after the last
change; until then they are estimated, which is shown, and nothing is decided by an estimate. A refusal by the
worker is shown until the draft changes.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Protocol

from PySide6.QtCore import QObject, QTimer

from app.chat.attachment_chip import estimated_tokens
from app.chat.composer_tools import ContextUse, MessageSize
from app.chat.image_chip import ImageRows
from app.controllers.link import WorkerLink
from app.controllers.views import Views
from app.session.chats.conversation import message_text
from app.session.context import Held
from core.events import CountTokens, Generate, Image, Message, ModelInfo, ReadingPace, TokenCount, Tool
from core.prefill.forecast import forecast
from core.settings.request import Chat, Settings
from core.worker.client import CommandError

_AFTER_MS = 300
_ROWS = 260  # of an image that is not counted; families take 64 to 4,096, most of them about this
_PROMPTS = 8  # kept, so that a chat without answers that is opened again is not counted again
_Prompt = tuple[tuple[Message, ...], Chat, tuple[Tool, ...]]


class TokenMemory(Protocol):
    """A cache of token counts by tokenizer family."""

    def tokens_of(self, text: str, family: str) -> int | None:
        """The tokens of `text`; None if unknown."""
        ...

    def learn_tokens(self, text: str, family: str, tokens: int) -> bool:
        """Store a count. Returns True if it was stored and is new."""
        ...


class ContextMeter(QObject):
    """`worker` counts. The inspector shows the forecast for the draft, the transcript needs the limit."""

    def __init__(self, views: Views, worker: WorkerLink) -> None:
        super().__init__(views.composer)
        self._views = views
        self._composer = composer = views.composer
        self._worker = worker
        self._counts = TokenCounts()
        self._can_count = self._idle = False
        self._held = Held()
        # The prompts counted last and their tokens, without the probe.
        self._prompts: deque[tuple[_Prompt, int]] = deque(maxlen=_PROMPTS)
        self._prompt_task: asyncio.Task[None] | None = None
        self._settings = Settings()
        self._tools: tuple[Tool, ...] = ()
        self._pace: ReadingPace | None = None
        self._model_tokens = 0
        self._refused_by_tokens = 0
        self._attached: tuple[object, ...] = ()  # texts and images
        self._sees = False
        self._rows: dict[str, ImageRows | None] = {}  # by hash; None: requested
        self._read = 0.0
        self._memory: TokenMemory | None = None
        self._family = ""
        self._timer = QTimer(self, interval=_AFTER_MS, singleShot=True)
        self._timer.timeout.connect(self._count)
        composer.draft_changed.connect(self._draft_changed)

    def set_model(self, info: ModelInfo) -> None:
        """Discard all counts for another tokenizer and limit."""
        self.forget()
        self._family = info.family
        self._sees = info.sees
        self._pace = None
        self._model_tokens = info.context_tokens
        self._views.transcript.set_context_limit(self.limit_tokens)
        self._timer.start()
        self._show()

    @property
    def family(self) -> str:
        """The tokenizer family; empty while no model is loaded."""
        return self._family

    def set_tools(self, tools: tuple[Tool, ...]) -> None:
        """The tools that the open chat offers to the model, which are a part of its prompt."""
        if tools != self._tools:
            self._tools = tools
            self._timer.start()

    def set_memory(self, memory: TokenMemory) -> None:
        self._memory = memory

    def remember(self, text: str) -> None:
        """Store the count of a document that is kept, if the model has counted it."""
        tokens = self._counts.of(text)
        if self._memory and tokens and self._counts.is_exact(text):
            self._memory.learn_tokens(text, self._family, tokens)

    @property
    def limit_tokens(self) -> int:
        """The context limit of the next answer: the model's, or a lower setting."""
        return self._settings.prefill.context_of(self._model_tokens)

    def set_worker(self, *, has_model: bool, idle: bool) -> None:
        """Whether a worker has a model, so that it counts texts, and is idle, so that it counts prompts."""
        if (has_model and not self._can_count) or (idle and not self._idle):
            self._timer.start()
        self._can_count, self._idle = has_model, idle

    def forget(self) -> None:
        """Discard all counts, and those that are pending."""
        self._counts = TokenCounts()
        self._rows = {}
        self._composer.chips.show_rows(self._rows_of)
        self._prompts.clear()
        self._end_prompt_count()

    def show_read(self, fraction: float | None) -> None:
        """The fraction of the attached documents that the worker has read before the question."""
        self._read = fraction or 0.0
        self._composer.chips.show_read(fraction)
        self._show()

    def show_refused(self, over_tokens: int) -> None:
        """Show that the worker refused the draft as too long by `over_tokens`."""
        self._refused_by_tokens = over_tokens
        self._show()

    def show_held(self, held: Held) -> None:
        """Show what the open chat holds, without the draft."""
        if held == self._held:
            return
        new = (held.uncounted, held.images) != (self._held.uncounted, self._held.images)
        if new or not held.counted_tokens:
            self._timer.start()
        self._held = held
        self._show()

    def set_settings(self, settings: Settings) -> None:
        """The settings of the next answer."""
        if settings != self._settings:
            self._settings = settings
            self._timer.start()
            self._views.transcript.set_context_limit(self.limit_tokens)
            self._show()

    async def _count_text(self, text: str) -> None:
        counts = self._counts
        try:
            count = await self._worker.ask(CountTokens("", text), TokenCount)
        except CommandError:
            counts.answer(text, None)
            self._show()
            return
        if counts is not self._counts:
            return  # another model is loaded
        self._pace = count.pace or self._pace
        counts.answer(text, count.tokens, exact=not count.estimated)
        self.remember(text)
        self._composer.chips.show_tokens(counts.of)
        self._show()

    async def _count_image(self, image: Image) -> None:
        rows = self._rows
        try:
            count = await self._worker.ask(CountTokens("", image=image), TokenCount)
        except CommandError:
            return  # the answer is refused, too, and says why
        if rows is self._rows and count.scaled_px:
            rows[image.hash] = ImageRows(count.tokens, *count.scaled_px)
            self._composer.chips.show_rows(self._rows_of)
            self._show()

    def _rows_of(self, image: Image) -> ImageRows | None:
        return self._rows.get(image.hash)

    async def _count_prompt(self, prompt: _Prompt) -> None:
        """Count a prompt that no answer has counted: system prompt and template included."""
        counts, (messages, chat, tools) = self._counts, prompt
        asked = Generate("", messages, Settings(chat=chat), tools=tools)
        try:
            count = await self._worker.ask(CountTokens("", prompt=asked), TokenCount)
        except CommandError:
            return  # the texts are counted as well
        if counts is self._counts and not count.estimated:
            self._prompts.append((prompt, max(0, count.tokens - 1)))
            self._show()

    def _end_prompt_count(self) -> None:
        if self._prompt_task is not None:
            self._prompt_task.cancel()
            self._prompt_task = None

    def _draft_changed(self) -> None:
        attached = (*self._draft_texts()[1:], *self._composer.images)
        if self._refused_by_tokens or attached != self._attached:
            self._refused_by_tokens, self._attached = 0, attached
            self._composer.chips.show_rows(self._rows_of)
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
        asked = self._counts.ask(self._texts()) if self._can_count else ()
        for text in asked:
            self._worker.begin(self._count_text(text))
        if self._can_count and self._sees:
            for image in (*self._held.images, *self._composer.images):
                if image.hash not in self._rows:
                    self._rows[image.hash] = None
                    self._worker.begin(self._count_image(image))
        prompt = self._held.messages, self._settings.chat, self._tools
        if self._idle and not self._held.counted_tokens and self._prompt_tokens is None:
            self._end_prompt_count()
            self._prompt_task = self._worker.begin(self._count_prompt(prompt))
        self._composer.chips.show_tokens(self._counts.of)
        if asked != (message_text(self._composer.text),):  # else its figure would flicker at each word
            self._show()

    @property
    def _prompt_tokens(self) -> int | None:
        """The tokens of the next prompt without the draft, if they were counted."""
        wanted = self._held.messages, self._settings.chat, self._tools
        return next((tokens for prompt, tokens in reversed(self._prompts) if prompt == wanted), None)

    def _size(self, texts: Iterable[str]) -> tuple[int, int, bool]:
        """The tokens of `texts`, those of them that are counted, and whether that is all of them."""
        tokens, counted, exact = 0, 0, True
        for text in texts:
            known = self._counts.of(text)
            tokens += estimated_tokens(text) if known is None else known
            counted += known or 0
            exact = exact and known is not None and self._counts.is_exact(text)
        return tokens, counted, exact

    def _show(self) -> None:
        held, prefill, limit_tokens = self._held, self._settings.prefill, self.limit_tokens
        typed, *attached = self._draft_texts()
        rows = [self._rows_of(image) for image in self._composer.images]
        image_tokens = sum(each.rows if each else _ROWS for each in rows) if self._sees else 0
        images_exact = None not in rows or not self._sees
        chat_tokens, chat_counted, chat_exact = self._size(held.uncounted)
        for image in held.images if self._sees else ():
            known = self._rows_of(image)
            chat_tokens, chat_exact = (
                chat_tokens + (known.rows if known else _ROWS),
                chat_exact and bool(known),
            )
            chat_counted += known.rows if known else 0
        if held.counted_tokens:
            chat_tokens, chat_counted = (each + held.counted_tokens for each in (chat_tokens, chat_counted))
        elif (prompt_tokens := self._prompt_tokens) is not None:
            chat_tokens, chat_counted, chat_exact = prompt_tokens, prompt_tokens, True
        else:
            chat_exact = False  # system prompt and template are missing
        document_tokens, _, documents_exact = self._size(attached)
        typed_tokens, _, typed_exact = self._size([typed])
        # With sparse prefill beyond the context, only passages that fit are read, so nothing limits it.
        fits_always = prefill.reads_beyond and not self._refused_by_tokens
        written = MessageSize(
            chat_counted,
            self._counts.of(typed),
            tuple(self._counts.of(text) for text in attached),
            0 if fits_always else limit_tokens,
            exact=chat_exact and documents_exact and images_exact and typed_exact,
            is_new=not held.counted_tokens and len(held.messages) == 1,
            image_tokens=tuple(each.rows if each else None for each in rows),
        )
        new_tokens = typed_tokens + document_tokens + image_tokens
        read_tokens = round(self._read * document_tokens)
        will = forecast(
            new_tokens - read_tokens,
            chat_tokens + read_tokens,
            limit_tokens,
            prefill,
            max_tokens=self._settings.sampling.max_tokens,
            pace=self._pace,
        )
        self._views.inspector.show_estimate(will, exact=documents_exact and images_exact and typed_exact)
        use = ContextUse(
            chat_tokens,
            document_tokens,
            typed_tokens,
            limit_tokens,
            chat_exact=chat_exact,
            documents_exact=documents_exact,
            typed_exact=typed_exact,
            image_tokens=image_tokens,
            images_exact=images_exact,
        )
        self._composer.pill.show_context(use)
        self._composer.show_fit(written, self._refused_by_tokens)

    def _draft_texts(self) -> list[str]:
        """The typed text and the attached ones."""
        composer = self._composer
        return [message_text(composer.text), *(attachment.text for attachment in composer.attachments)]

    def _texts(self) -> list[str]:
        return [*self._held.uncounted, *self._draft_texts()]


class TokenCounts:
    """Counts by one model's tokenizer."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}
        self._asked: set[str] = set()
        self._inexact: set[str] = set()

    def of(self, text: str) -> int | None:
        """Returns the tokens of `text`, None if unknown. The empty text has none."""
        return self._known.get(text) if text else 0

    def is_exact(self, text: str) -> bool:
        """Whether a known count is exact, not estimated, as for a text far longer than the context."""
        return text not in self._inexact

    def know(self, text: str, tokens: int) -> None:
        self._known[text] = tokens

    def ask(self, texts: Iterable[str]) -> tuple[str, ...]:
        """Returns the texts to count. Forgets all texts but these."""
        wanted = {text for text in texts if text}
        self._known = {text: tokens for text, tokens in self._known.items() if text in wanted}
        self._inexact &= wanted
        unknown = tuple(text for text in sorted(wanted - self._asked) if self.of(text) is None)
        self._asked.update(unknown)
        return unknown

    def answer(self, text: str, tokens: int | None, *, exact: bool = True) -> None:
        """Store a result, None if the text could not be counted."""
        self._asked.discard(text)
        if tokens is not None:
            self._known[text] = tokens
            if not exact:
                self._inexact.add(text)
