"""Engine: composes models, kv, prefill, drafting and decoding into answers.

One request's way: render → reuse the longest prefix → read the rest in chunks → decode with
the drafter → one Finished. The engine owns the model and the conversation's ledger; it lives
on one thread (MLX streams are thread-local), the worker's main thread. It starts no thread,
knows no process and no wire.

After any end of an answer (stop token, length, cancel, error) the ledger holds a prefix of the
prompt and the shown tokens, so the next turn reuses it and gives what a cold start gives.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence

import mlx.core as mx
from msgspec.structs import replace

from core.decoding.detokenise import TokenTexts
from core.decoding.loop import DecodeLoop, Step
from core.decoding.sampling import Sampler
from core.decoding.tally import Tally
from core.drafting.drafter import Drafter
from core.drafting.registry import DrafterSpec, drafter_spec
from core.errors import EmptyPromptError, NoModelError, OutOfMemoryError, PromptTooLongError
from core.events import (
    Change,
    Effective,
    Event,
    Finished,
    FinishReason,
    Gauges,
    Generate,
    ModelInfo,
    Origin,
    PrefillProgress,
    Stats,
    Token,
)
from core.kv.ledger import Ledger
from core.models import memory
from core.models.loader import LoadedModel, Progress, load
from core.models.prompt import render
from core.prefill.dense import read_prompt
from core.settings import Settings, assign
from core.settings.declaration import check

_GAUGE_EVERY_S = 0.25


def never() -> bool:
    """The cancel check of a caller that never cancels."""
    return False


class Engine:
    """Load once, generate often. Every method belongs to the thread that made the engine."""

    def __init__(self) -> None:
        self._loaded: LoadedModel | None = None
        self._ledger: Ledger | None = None

    # ---- the model

    @property
    def is_loaded(self) -> bool:
        """Whether a model is loaded."""
        return self._loaded is not None

    @property
    def loaded(self) -> LoadedModel:
        """The loaded model. Raises `NoModelError`."""
        if self._loaded is None:
            raise NoModelError("No model is loaded.", "Load one first.")
        return self._loaded

    def load(self, reference: str, progress: Progress = lambda stage, fraction: None) -> ModelInfo:
        """Load `reference`; the model in use stays if that fails with `ModelError`."""
        self.use(load(reference, progress))
        return self.loaded.info

    def use(self, loaded: LoadedModel) -> None:
        """Take a model that is already in memory."""
        self._loaded = loaded
        self._ledger = Ledger(loaded.new_cache)
        mx.clear_cache()

    def unload(self) -> None:
        """Free the model and the cache."""
        self._loaded = self._ledger = None
        mx.clear_cache()

    def forget(self) -> None:
        """Drop the reusable prefix, so that the next answer starts cold."""
        if self._ledger is not None:
            self._ledger.clear()

    @property
    def ledger(self) -> Ledger:
        """The conversation's cache and the tokens it holds. Raises `NoModelError`."""
        if self._ledger is None:
            raise NoModelError("No model is loaded.", "Load one first.")
        return self._ledger

    def count_tokens(self, text: str) -> int:
        """Tokens of `text`, without any template. Raises `NoModelError`."""
        return len(self.loaded.tokenizer.encode(text, add_special_tokens=False))

    # ---- answers

    def generate(self, request: Generate, cancelled: Callable[[], bool] = never) -> Iterator[Event]:
        """The events of one answer, ending with Finished.

        Raises `RequestError` kinds before the first event, and `OutOfMemoryError`. `cancelled`
        is asked between steps and prefill chunks; an abandoned iterator counts as cancelled.
        """
        settings = request.settings
        check(settings)
        prompt = render(self.loaded.tokenizer, request.messages, settings.chat.system_prompt)
        yield from self.generate_ids(prompt, settings, cancelled, request=request.request)

    def generate_ids(
        self,
        prompt: Sequence[int],
        settings: Settings,
        cancelled: Callable[[], bool] = never,
        *,
        request: str = "",
    ) -> Iterator[Event]:
        """Like `generate`, from token ids instead of messages."""
        try:
            yield from _Answer(self.loaded, self.ledger, prompt, settings, cancelled, request).events()
        except (MemoryError, RuntimeError) as error:
            if _is_memory(error):
                self.ledger.clear()
                raise OutOfMemoryError(
                    f"There was not enough memory for this answer ({error}).",
                    "Use a shorter prompt or a smaller model.",
                ) from error
            raise


class _Answer:
    """One answer in the making."""

    def __init__(
        self,
        loaded: LoadedModel,
        ledger: Ledger,
        prompt: Sequence[int],
        settings: Settings,
        cancelled: Callable[[], bool],
        request: str,
    ) -> None:
        self._started = time.perf_counter()
        info = loaded.info
        limit = info.context_tokens - 1
        if not prompt:
            raise EmptyPromptError("There is nothing to answer: the prompt is empty.", "Type a question.")
        if len(prompt) > limit:
            raise PromptTooLongError(len(prompt), limit)
        self._loaded = loaded
        self._ledger = ledger
        self._prompt = list(prompt)
        self._cancelled = cancelled
        self._request = request
        self._changes: list[Change] = []
        self._settings = self._fit(settings)
        self._spec: DrafterSpec = drafter_spec(self._settings.drafting.drafter)
        self._drafter: Drafter = self._spec.build(self._settings, info.context_tokens)
        self._tally = Tally()
        self._shown: list[int] = []
        self._reused = 0
        self._read = 0
        self._prefill_s = 0.0

    def events(self) -> Iterator[Event]:
        """All events, Finished last. The ledger is truthful however this ends."""
        self._reused = self._ledger.reuse(self._prompt)
        try:
            cancelled = yield from self._read_prompt()
            reason: FinishReason = "cancelled" if cancelled else (yield from self._write())
        except Exception:
            # A forward that failed half-way has moved some layers' caches and not others.
            self._ledger.clear()
            raise
        finally:
            self._drop_unshown()
        yield Finished(self._request, reason, self._stats(), self._effective())

    def _fit(self, settings: Settings) -> Settings:
        """`settings` as they can be done, with a Change for each that cannot."""
        info = self._loaded.info
        room = info.context_tokens - len(self._prompt)
        wanted = settings.sampling.max_tokens
        if wanted > room:
            self._change("sampling.max_tokens", wanted, room, "the context is full after that")
            settings = assign(settings, "sampling.max_tokens", room)
        drafter = settings.drafting.drafter
        if drafter != "off" and not info.speculates:
            self._change("drafting.drafter", drafter, "off", f"{info.name} cannot speculate: {info.why_not}")
            settings = assign(settings, "drafting.drafter", "off")
        return settings

    def _change(self, setting: str, asked: object, used: object, reason: str) -> None:
        self._changes.append(Change(setting, str(asked), str(used), reason))

    def _read_prompt(self) -> Generator[Event, None, bool]:
        """Prefill. Returns whether it was cancelled."""
        for progress in read_prompt(
            self._loaded.model, self._ledger, self._prompt, chunk_tokens=self._settings.prefill.chunk_tokens
        ):
            self._read = progress.done_tokens - self._reused
            self._prefill_s = self._now()
            yield PrefillProgress(
                self._request,
                progress.done_tokens,
                progress.total_tokens,
                self._reused,
                progress.seconds_left,
            )
            if self._cancelled():
                return True
        return False

    def _write(self) -> Generator[Event, None, FinishReason]:
        """Decode. Returns why the answer ended."""
        loaded, settings = self._loaded, self._settings
        self._drafter.begin(self._prompt)
        self._read += 1  # the prompt's last token, read by the first step
        loop = DecodeLoop(
            loaded.model,
            self._ledger,
            self._prompt[-1],
            self._drafter,
            Sampler(settings.sampling),
            vocabulary=loaded.info.vocabulary,
            drafts=self._spec.drafts,
        )
        texts = TokenTexts(loaded.tokenizer)
        waiting: list[Token] = []
        reason: FinishReason = "length"
        gauge_due_s = 0.0
        for step in loop.steps(settings.sampling.max_tokens):
            now_s = self._now()
            shown, stopped = self._until_stop(step)
            self._tally.add(step, now_s, shown)
            for index in range(shown):
                token = step.tokens[index]
                waiting.append(self._token(step, index, shown, now_s))
                if stopped and index == shown - 1:
                    break
                self._shown.append(token)
                for text in texts.add(token):
                    yield replace(waiting.pop(0), text=text)
            if stopped:
                reason = "stop"
                break
            if self._cancelled():
                reason = "cancelled"
                break
            if now_s >= gauge_due_s:
                gauge_due_s = now_s + _GAUGE_EVERY_S
                yield self._gauges()
        for text in texts.finish():
            yield replace(waiting.pop(0), text=text)
        yield from waiting
        yield self._gauges()
        return reason

    def _until_stop(self, step: Step) -> tuple[int, bool]:
        """How many of the step's tokens count, and whether the last of them is a stop token."""
        for index, token in enumerate(step.tokens):
            if token in self._loaded.eos:
                return index + 1, True
        return len(step.tokens), False

    def _token(self, step: Step, index: int, shown: int, now_s: float) -> Token:
        origin: Origin = "accepted"
        if index == shown - 1:
            origin = "bonus" if step.drafted else "normal"
        drafted = origin == "accepted"
        return Token(
            self._request,
            step.tokens[index],
            "",
            origin,
            self._tally.steps,
            self._tally.tokens - shown + index,
            index + 1 if drafted else 0,
            step.drafted if drafted else 0,
            now_s,
        )

    def _gauges(self) -> Gauges:
        tally = self._tally
        return Gauges(
            self._request,
            tally.live_tokens_per_s,
            tally.first_s,
            tally.tokens,
            tally.accepted,
            tally.tested,
            tally.acceptance,
            tally.mean_per_step,
            tally.positions,
            self._drafter.occupancy(),
            memory.used_bytes(),
            len(self._prompt) + len(self._shown),
            self._loaded.info.context_tokens,
        )

    def _stats(self) -> Stats:
        tally = self._tally
        return Stats(
            prompt_tokens=len(self._prompt),
            reused_tokens=self._reused,
            read_tokens=self._read,
            tokens=tally.tokens,
            accepted=tally.accepted,
            bonus=tally.bonus,
            normal=tally.normal,
            steps=tally.steps,
            drafted=tally.drafted,
            tested=tally.tested,
            acceptance=tally.acceptance,
            mean_per_step=tally.mean_per_step,
            ttft_s=tally.first_s,
            prefill_s=self._prefill_s,
            decode_s=tally.last_s - tally.first_s,
            total_s=self._now(),
            tokens_per_s=tally.tokens_per_s,
            positions=tally.positions,
            occupancy=self._drafter.occupancy(),
            draft_us_median=tally.draft_us_median,
            draft_us_p99=tally.draft_us_p99,
            context_used_tokens=len(self._prompt) + len(self._shown),
            context_tokens=self._loaded.info.context_tokens,
            memory_bytes=memory.used_bytes(),
            memory_peak_bytes=int(mx.get_peak_memory()),
        )

    def _effective(self) -> Effective:
        info = self._loaded.info
        return Effective(info.name, info.dtype, self._spec.name, self._settings, tuple(self._changes))

    def _drop_unshown(self) -> None:
        """Leave nothing in the ledger that was not shown.

        A cache that cannot be trimmed was never speculated on; at most it also holds the stop
        token that ended the answer, and its ledger says so.
        """
        shown = len(self._prompt) + len(self._shown)
        if self._ledger.trimmable and len(self._ledger.tokens) > shown:
            self._ledger.truncate(shown)

    def _now(self) -> float:
        return time.perf_counter() - self._started


def _is_memory(error: Exception) -> bool:
    """Whether this is MLX or Python running out of memory; MLX says so only in its message."""
    text = str(error).lower()
    return isinstance(error, MemoryError) or "malloc" in text or "out of memory" in text
