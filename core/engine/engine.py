"""Engine: combines models, KV caches, prefill, drafting and decoding into answers.

One request: render → plan → reuse the longest cached prefix → read the remaining prompt in chunks → decode
with the drafter → one Finished. The engine owns the model, the draft model, the cached sequences and the
tables that requests share. It has no knowledge of processes or the wire format. All methods belong to one
thread, the worker's main thread, because MLX streams are thread-local.

Invariant: after any end of an answer (stop token, length, cancellation, error) the sequence holds a prefix of
the prompt and the shown tokens, so the next turn reuses it and gives the same answer as a cold start.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, nullcontext
from functools import partial

import mlx.core as mx
from mlx_lm.tokenizer_utils import TokenizerWrapper
from msgspec import Struct
from msgspec.structs import replace

from core.answer_format import AnswerFormat, parse_answer
from core.decoding.answer import Answer, ImageRows, MemoryGuard
from core.decoding.loop import DecodeLoop
from core.encoder.store import BackgroundEmbedding, Embedder
from core.engine.ahead import ReadAhead
from core.engine.generation import Writing, sequence_kept_valid, shorten
from core.engine.model_session import ModelProposer, ModelSession
from core.engine.planning import branches, plan
from core.engine.prompts import (
    asks_with_images,
    cleaned,
    edited_ids,
    left_out_images,
    title_request,
    unread_page_changes,
    unseen_images,
    without_images,
    without_oldest_images,
)
from core.engine.saved_chats import SavedChats
from core.errors import BrokenLogitsError, GrammarError, ModelTooLargeError, NoModelError, PromptTooLongError
from core.events import (
    FIRST_IMAGE_ROW,
    TYPED,
    Change,
    DocumentEmbedded,
    Event,
    Finished,
    Generate,
    Image,
    Message,
    ModelInfo,
    ModelReleased,
    ReadAheadProgress,
    ReadingPace,
    SavedChatsListed,
    TableDone,
    Token,
)
from core.events.wire import well_formed
from core.folders.folder import gigabytes
from core.kv.cached_sequence import CachedSequence
from core.kv.saved_files import SavedFiles
from core.machine.exactness import Profile
from core.machine.faults import discard_faults, error_of, retried, surface
from core.machine.readings import ReadingTrial
from core.machine.trials import Verdict
from core.machine.width_cost import CONTEXTS, CostProfile
from core.models import memory
from core.models.loader import LoadedModel, Progress, load
from core.models.memory import limit_cache
from core.models.runtime import check_prepared
from core.prefill import passages
from core.prefill.reading import Reading
from core.prompt import (
    ImageText,
    Prompt,
    check_continuation,
    check_fits,
    count_tokens,
    format_of,
    may_merge,
    plain,
    plain_length,
    render,
    switches_thinking,
    unread_calls,
    with_answer_opened,
)
from core.settings import Settings
from core.settings.prefill import KvCache
from core.system.buffer_limits import use_limits_of
from core.system.macos import Working
from core.tables.memory import TableMemory

EngineEvent = DocumentEmbedded | SavedChatsListed | ReadAheadProgress | ModelReleased


def never() -> bool:
    """The cancel check of a caller that never cancels."""
    return False


# Limit of a text that is longer than the context, in contexts: it is tokenised and scored completely, at
# about a second per million characters.
_MOST_CONTEXTS = 64

# A day, because longer times overflow the timeout of a queue.
_LONGEST_IDLE_S = 86_400.0
# A piece of a measurement takes up to seconds on a CPU, and a program often asks again at once.
_MEASURES_AFTER_S = 1.0


class Released(Struct, frozen=True):
    """The remainder of a model unloaded while idle: enough to count tokens and to load it again."""

    tokenizer: TokenizerWrapper
    info: ModelInfo


class Engine:
    """Loads one model at a time and answers requests with it. All methods belong to the creating thread.

    `memory` stores what drafters learn; by default only for the engine's lifetime. `say` receives events of
    idle work. `clock` returns seconds. `saved_files`: the folder of saved chats; by default in the cache
    folder. `left_bytes` returns the memory that is left for models and answers. Raises `NotPreparedError` if
    MLX was imported before `core.models.runtime.prepare()` was called.
    """

    def __init__(
        self,
        memory: TableMemory | None = None,
        say: Callable[[EngineEvent], None] = lambda event: None,
        clock: Callable[[], float] = time.perf_counter,
        saved_files: SavedFiles | None = None,
        left_bytes: Callable[[], int] = memory.left_bytes,
    ) -> None:
        check_prepared()
        limit_cache()
        self._working = Working()
        self._left_bytes = left_bytes
        self._resident: ModelSession | None = None
        self._memory = memory or TableMemory()
        self._embedder = Embedder()
        self._embedding = BackgroundEmbedding(self._embedder, passages.cut, say)
        self._saved_chats = SavedChats(say, clock, saved_files)
        ids_of = lambda request: self._prompt(request)[0].ids  # noqa: E731
        self._ahead = ReadAhead(ids_of, self._sight, self._saved_chats, say)
        self._clock = clock
        self._say = say
        self._released: Released | None = None
        self._idle_s = 0.0
        self._used_at_s = clock()
        self._answered_at_s = -math.inf

    # ---- the model

    @property
    def is_loaded(self) -> bool:
        return self._resident is not None

    @property
    def _session(self) -> ModelSession:
        if self._resident is None:
            raise NoModelError("No model is loaded.", "Load one first.")
        return self._resident

    @property
    def loaded(self) -> LoadedModel:
        """The loaded model. Raises `NoModelError`."""
        return self._session.model

    @property
    def _described(self) -> LoadedModel | Released:
        """Tokenizer and description of the model, also of a released one. Raises `NoModelError`."""
        return self._released or self.loaded

    @property
    def sequence(self) -> CachedSequence:
        """The conversation's cache and the tokens it holds. Raises `NoModelError`."""
        return self._session.prefix_cache.current

    @property
    def proposer(self) -> ModelProposer | None:
        return self._resident.drafts.proposer if self._resident else None

    @property
    def model_folders(self) -> tuple[str, ...]:
        """Folders of the loaded or released model and of the draft model, if there is one."""
        if self._resident is None:
            return (self._released.info.path,) if self._released else ()
        return self._resident.folders

    @property
    def memory(self) -> TableMemory:
        return self._memory

    @property
    def embedding(self) -> BackgroundEmbedding:
        """The documents to embed in idle time, which does not need a model."""
        return self._embedding

    @property
    def saved_chats(self) -> SavedChats:
        return self._saved_chats

    def load(self, reference: str, progress: Progress = lambda stage, fraction: None) -> ModelInfo:
        """Load the model `reference`. Raises `ModelError`, and then keeps the current model; also
        `OutOfMemoryError` and `GpuFaultError`.

        If memory does not suffice for both, the current model is released before the new weights are read.
        """
        try:
            self.use(load(reference, progress, self.make_room))
        except Exception as error:
            if fault := error_of(error, "to load this model"):
                raise fault from error
            raise
        use_limits_of(self.loaded.info.architecture)
        return self.loaded.info

    def make_room(self, size_bytes: int, *, beside: bool = False) -> None:
        """Free the sentence encoder and release the model if `size_bytes` more exceed the memory left.

        `beside`: the model stays, and the caches of other chats are freed. Raises `ModelTooLargeError`, and
        then frees nothing, if they would not suffice.
        """
        left_bytes = self._left_bytes()
        if size_bytes <= left_bytes:
            return
        if session := self._resident:
            caches = session.prefix_cache
            left_bytes += caches.nbytes - caches.current.nbytes if beside else session.nbytes
        if size_bytes > left_bytes:
            needs, left = gigabytes(size_bytes), gigabytes(max(0, left_bytes))
            raise ModelTooLargeError(
                f"This model needs {needs} GB of memory, and {left} GB are left.",
                "Close other programs, or choose a smaller model or a version of it with fewer bits.",
            )
        self._embedder.unload()
        if session and beside:
            session.prefix_cache.fit(0)
        elif session and self._may_return(session.model.info):
            self._release()  # it is loaded again if the new one turns out to be damaged
        elif session:
            self.unload()

    def use(self, loaded: LoadedModel) -> None:
        self.unload()
        self._used_at_s = self._clock()
        self._resident = ModelSession(loaded, self._memory, partial(self.make_room, beside=True))
        self._saved_chats.use(self._resident)
        info = loaded.info
        self._memory.open(info.family, info.family_name, info.vocabulary)

    def close(self) -> None:
        """Free the model and save the tables."""
        self.unload()
        self._embedder.unload()
        self._memory.close()

    def _release_contexts(self, request: Generate) -> None:
        """Free what `request` does not need: caches of other chats, encoder, draft model, tower."""
        self._session.prefix_cache.fit(0)
        self._session.drafts.keep_for(request.settings)
        self._session.release_eyes(rows=not any(message.images for message in request.messages))
        self._embedder.unload()

    def unload(self) -> None:
        """Free the model, the draft model and their caches, which are saved where chats are."""
        self._ahead.stop()
        self._saved_chats.release()
        if self._resident:
            self._resident.model.close()
        self._resident = self._released = None
        mx.clear_cache()

    def unload_idle(self, after_s: float) -> None:
        """Release the model after `after_s` seconds without a request, at most a day; 0: never.

        The chats' caches are saved first. A model over several ranks is never released.
        """
        self._idle_s = min(max(0.0, after_s), _LONGEST_IDLE_S)

    @property
    def released(self) -> ModelInfo | None:
        """The model that was released while idle; a request needs it to be loaded again."""
        return self._released.info if self._released else None

    def _release_due_s(self) -> float | None:
        """Seconds until the model is released; None if it is not."""
        session = self._resident
        if session is None or not self._idle_s or not self._may_return(session.model.info):
            return None
        return max(0.0, self._used_at_s + self._idle_s - self._clock())

    def _release_if_due(self) -> None:
        if self._release_due_s() == 0.0:
            self._release()
            self._embedder.unload()

    @staticmethod
    def _may_return(info: ModelInfo) -> bool:
        """Whether the model can be loaded again by its reference alone."""
        return bool(info.reference) and not info.machines

    def _release(self) -> None:
        released = Released(self.loaded.tokenizer, self.loaded.info)
        self.unload()
        self._released = released
        self._say(ModelReleased())

    def forget(self, *, tables: bool = False) -> None:
        """Clear the prefix cache, so that the next answer starts cold.

        With `tables`, also discard what the shared tables learned since they were last saved.
        """
        if tables:
            self._memory.forget()
        if self._resident:
            self._resident.forget_contexts()

    def erase_learned(self, family: str) -> TableDone:
        """Erase all learned tables of the tokenizer family with this fingerprint, in memory and on disk.

        Raises `TableError`.
        """
        session = self._resident
        done = self._memory.reset(family)
        if session is not None and session.model.info.family == family:
            session.beforehand.forget()
        return done

    def count_tokens(self, text: str) -> tuple[int, bool]:
        """Number of tokens of `text` without a template, and whether it is exact. Raises `NoModelError`.

        Estimated for a long text.
        """
        described = self._described
        length = plain_length(described.tokenizer)
        return count_tokens(length, well_formed(text), described.info.context_tokens)

    def count_prompt(self, request: Generate) -> tuple[int, bool]:
        """Number of prompt tokens of `request`, and whether it is exact: it is estimated if far too long.

        Raises `RequestError`, `NoModelError`.
        """
        try:
            return len(self._prompt(request)[0].ids), True
        except PromptTooLongError as error:
            return error.tokens, False

    def count_image(self, image: Image) -> tuple[int, tuple[int, int]]:
        """Number of tokens that `image` adds to a prompt, and width and height that it is scaled to.

        Raises `RequestError` if the model cannot see, `NoModelError`.
        """
        from core.vision.eyes import image_tokens  # not without an image

        described = self._described
        tokens, scaled = image_tokens(image, described.info, plain_length(described.tokenizer))
        return tokens, (scaled.width, scaled.height)

    @property
    def pace(self) -> ReadingPace | None:
        """The pace of prefill; None if not measured, or without a model."""
        return self._resident.profile.pace if self._resident else None

    def exactness_profile(self, *, complete: bool = False) -> Profile:
        """How the model's logits depend on the block width on this machine.

        The first call compares widths for some seconds; with `complete`, until all widths of `exact` are
        measured, which takes minutes.
        """
        widths = self._session.profile.widths
        return widths.complete() if complete else widths.want()

    def measure_cost(self, contexts: Sequence[int] = CONTEXTS) -> CostProfile:
        """Measure T(w) at these context lengths, even if it was measured before. Takes some seconds."""
        return self._session.profile.costs_anew(contexts)

    def try_readings(self) -> ReadingTrial:
        """Try which way of reading a long text suits the model, even if that was tried before."""
        return self._session.profile.readings_anew()

    def try_out(self, kv: KvCache | None = None) -> Verdict:
        """Whether trees and drafts are exact for this model. The first test takes some seconds.

        `kv`: with caches quantised like that where the model supports it.
        """
        session = self._session
        return session.profile_of(session.quantisation(kv or KvCache())[0]).try_out()

    def idle_work(self) -> bool:
        """Do one piece of idle work. Returns whether there is more.

        In this order: load and save chats; embed documents (also without a model), because a question about
        them is likely; read ahead of it; a second after an answer and later, test drafts and trees, measure
        T(w) and the prefill pace, if missing, and compare widths for `exact`; release an idle model, if that
        is on.
        """
        session = self._resident
        if self._saved_chats.piece() or self._embedding.piece():
            return True
        if session is None:
            return False
        try:
            with self._working():
                if self._ahead.piece(session, self._guard):
                    self._used_at_s = self._clock()
                    return True
                if not self._measures_in_s() and session.measure_some():
                    return True
        except Exception as error:
            session.model.report_error(error)
            if memory.fault(error):
                self.forget()  # prefilled tokens may be undefined
            raise
        self._release_if_due()
        return False

    def read_ahead(self, question: Generate | None) -> None:
        """While idle, read what `question` begins with, as it would be asked now; None: nothing more."""
        self._ahead.want(question)

    def idle_due_s(self) -> float | None:
        """Seconds until scheduled idle work; None if none is scheduled."""
        due = [self._saved_chats.due_s(), self._release_due_s()]
        due.append(self._resident.measuring_due_s() if self._resident else None)
        due.append(self._measures_in_s() or None)
        return min((each for each in due if each is not None), default=None)

    def _measures_in_s(self) -> float:
        """Seconds until idle time is used to measure; 0: it is now."""
        return max(0.0, self._answered_at_s + _MEASURES_AFTER_S - self._clock())

    # ---- answers

    def generate(
        self, request: Generate, cancelled: Callable[[], bool] = never, requested_s: float | None = None
    ) -> Iterator[Event]:
        """The events of one answer, ending with Finished.

        Times are measured from `requested_s` of the engine's clock; None: from the first event. `cancelled()`
        is called between steps and prefill chunks; an abandoned iterator counts as cancelled. Raises
        `RequestError` before the first event, `NotEnoughMemoryError` before a token is read, and
        `OutOfMemoryError` and `GpuFaultError`.
        """
        return retried(lambda each: self._events(each, cancelled, requested_s), request)

    def generate_ids(
        self,
        prompt: Sequence[int],
        settings: Settings,
        cancelled: Callable[[], bool] = never,
        *,
        also: Generate | None = None,
    ) -> Iterator[Event]:
        """Like `generate`, from token ids instead of messages; the end of the ids counts as the question.

        `also`: a request with other options, such as a grammar or a prediction; its messages have the images
        whose rows are in `prompt`.
        """
        options = replace(also or Generate("", ()), settings=settings)
        return retried(lambda each: self._events(each, cancelled, None, Prompt([*prompt], "", ())), options)

    def _events(
        self,
        request: Generate,
        cancelled: Callable[[], bool],
        requested_s: float | None,
        prompt: Prompt | None = None,
    ) -> Generator[Event, None, None]:
        """All of an answer: render, plan, read, decode, finish. `prompt`: None to render the messages."""
        requested_s = self._clock() if requested_s is None else requested_s
        answer = self._rendered_answer(request, requested_s, prompt)
        session = self._session
        self._ahead.stop(request.chat or None)
        with ExitStack() as after:
            after.enter_context(self._errors_reported(session))
            plan(answer, session)
            guard = self._guard(request, quantised=answer.kv is not None)
            profile = session.profile_of(answer.kv)
            preference = session.profile.preference
            reading = Reading(answer, session.drafts, self._embedder, profile, guard, preference)
            after.callback(profile.keep_pace)
            after.callback(session.drafts.keep_pace)
            self._take_sequence(answer, reading, after)
            model, need = answer.model, answer.model.need
            cache_bytes = need.cache_at(answer.reach_tokens) if need else 0
            eyes_bytes = max(session.eyes_bytes, need.eyes if need and answer.sight is not None else 0)
            weights_bytes = model.info.size_bytes + session.drafts.nbytes + eyes_bytes
            after.enter_context(memory.wired(weights_bytes + cache_bytes))
            stopped = yield from _uncancelled(reading.plan(), cancelled)
            writing = Writing(answer)
            with sequence_kept_valid(answer):
                stopped = stopped or (yield from _uncancelled(reading.events(), cancelled))
                if stopped:
                    writing.reason = "cancelled"
                else:
                    shorten(answer, guard)
                    writing.begin()
                    sight = answer.sight
                    with nullcontext() if sight is None else sight.answering(answer.sequence):
                        yield from _written(answer, writing, cancelled)
                    yield from writing.rest()
                    yield writing.gauges()
                surface()
                if answer.sight is not None and not stopped and (why := answer.sight.why_unseen()):
                    answer.downgrade("images", "not seen", why, asked="seen")
                if answer.head is not None:
                    profile.count_head(answer.head.source, writing.head_tokens, answer.stats.steps)
            yield writing.finished(reading)

    def _rendered_answer(self, request: Generate, requested_s: float, prompt: Prompt | None) -> Answer:
        """The answer to `request`, with its prompt. Raises `RequestError`."""
        if prompt is not None:
            answer = Answer(request, self.loaded, prompt, self._clock, requested_s)
            answer.sight = self._sight(request.messages, prompt.ids)
            return answer
        prompt, format = self._prompt(request)
        answer = Answer(request, self.loaded, prompt, self._clock, requested_s)
        answer.format = format
        answer.sight = self._sight(request.messages, prompt.ids)
        check_continuation(request, self.loaded.info)
        continuation: Sequence[int] = request.continuation
        if TYPED in continuation:
            tokenizer, texts = self.loaded.tokenizer, request.continuation_texts
            continuation = edited_ids(tokenizer, prompt, format, continuation, texts)
        answer.ids += continuation
        answer.continued_tokens = len(continuation)
        return answer

    def _sight(self, messages: Sequence[Message], ids: Sequence[int]) -> ImageRows | None:
        """The images of `messages` for the model; None if `ids` have none. Raises `RequestError`."""
        if not any(message.images for message in messages) or max(ids, default=0) < FIRST_IMAGE_ROW:
            return None
        from core.vision.sight import Sight  # not without an image

        return Sight(self._session.eyes(), messages)

    def _image_text(self, messages: Sequence[Message]) -> ImageText | None:
        """How prompts of the model show images; None without images, and if the model cannot see and only
        earlier questions and results of tools have some. Raises `RequestError` if it cannot see those of the
        last question.
        """
        if not any(message.images for message in messages):
            return None
        if not self._described.info.sees and not asks_with_images(messages):
            return None
        from core.vision.eyes import family_of  # not without an image

        family = family_of(self._described.info)
        return ImageText(family.written, family.shown, family.token, family.rows_of)

    def _guard(self, request: Generate, *, quantised: bool) -> MemoryGuard:
        need = self.loaded.need
        if need is not None and quantised:
            need = need.with_cache(request.settings.kv)
        return MemoryGuard(need, self._left_bytes, partial(self._release_contexts, request))

    def _take_sequence(self, answer: Answer, reading: Reading, after: ExitStack) -> None:
        """The cached sequence that shares most with the prompt; `after` the answer it is kept and saved."""
        session, request, prefill = self._session, answer.request, answer.settings.prefill
        if request.isolated:
            answer.sequence = CachedSequence(answer.model.new_cache, answer.kv)
            if answer.proposer is not None:
                session.drafts.forget()
        else:
            chats, whole = self._saved_chats, reading.whole
            if why_not := chats.before(request.chat, answer.ids, prefill, whole=whole, kv=answer.kv):
                answer.downgrade("prefill.save", "on, but not saved", why_not, asked="on")
            answer.sequence = session.prefix_cache.take(answer.ids, whole=whole, kv=answer.kv)
            chats.taken(answer.sequence, request.chat, prefill)
            after.callback(chats.answered, request.chat, prefill)
            after.callback(session.prefix_cache.fit, prefill.memory_mib << 20)
            if answer.spec.learns:
                after.callback(self._memory.answer_finished, answer.settings)
                # Before that, and after the answer's end was reported: counting a long one takes a moment.
                after.callback(answer.drafter.end)
        sequence = answer.sequence
        shared = sequence.shared(answer.ids)
        why_not = session.profile_of(answer.kv).why_not_split(answer.reach_tokens) if shared else ""
        if why_not:  # reusing it might give other logits than a cold start
            sequence.clear()
            answer.downgrade("prefix cache", "none", why_not, asked=f"{shared:,} tokens")
        if not (sequence.keeps_all or request.isolated or request.raw) and answer.prompt.text:
            rendered = lambda chat: self._rendered(request, chat)[0].ids  # noqa: E731
            ids, merges = answer.prompt.ids, partial(may_merge, answer.model.tokenizer)
            answer.branches = branches(ids, request, rendered, merges)

    @contextmanager
    def _errors_reported(self, session: ModelSession) -> Iterator[None]:
        discard_faults()
        try:
            with self._working():
                yield
        except Exception as error:
            session.model.report_error(error)
            if (fault := error_of(error)) is None:
                raise
            self.forget()
            self._embedder.unload()
            raise fault from error
        finally:
            self._used_at_s = self._answered_at_s = self._clock()

    def _prompt(self, request: Generate) -> tuple[Prompt, AnswerFormat | None]:
        """The prompt, and the format of the answer, which is None for a raw prompt. Raises `RequestError`."""
        settings = request.settings
        tokenizer, info = self._described.tokenizer, self._described.info
        model_tokens = info.context_tokens
        context_tokens = settings.prefill.context_of(model_tokens)
        most_tokens = context_tokens * (_MOST_CONTEXTS if settings.prefill.reads_beyond else 1)
        check_fits(tokenizer, request.messages, most_tokens - 1, context_tokens < model_tokens)
        if request.raw:
            text = request.messages[-1].content if request.messages else ""
            return plain(tokenizer, text, info.vocabulary), None
        return self._rendered(request, request.messages)

    def _rendered(self, request: Generate, messages: Sequence[Message]) -> tuple[Prompt, AnswerFormat]:
        """The prompt of `messages` with the settings of `request`, and the format of the answer."""
        tokenizer, chat = self._described.tokenizer, request.settings.chat
        # An answer by a grammar starts without a thought.
        formed = request.grammar is not None and request.grammar.begins_at_once
        wanted = chat.thinking == "on" or (chat.thinking == "auto" and self._described.info.thinks_by_default)
        silent = formed and wanted and switches_thinking(tokenizer)
        rows = self._described.info.vocabulary
        thinking = "off" if silent else chat.thinking
        shown, image_text = messages, self._image_text(messages)
        if unseen := image_text is None and any(each.images for each in messages):
            shown = without_images(messages)
        limit_tokens = request.settings.prefill.context_of(self._described.info.context_tokens)
        while True:
            prompt = render(tokenizer, shown, chat.system_prompt, request.tools, thinking, rows, image_text)
            if image_text is None or len(prompt.ids) < limit_tokens:
                break
            fewer = without_oldest_images(shown, len(prompt.ids) - limit_tokens + 1, image_text.rows_of)
            if fewer == shown:
                break
            shown = fewer
        format = format_of(tokenizer, prompt.text, tools=bool(request.tools))
        if any(change.setting == "tools" for change in prompt.changes):
            format = format.with_described_calls()
        changes = prompt.changes
        if unseen:
            changes += (unseen_images(messages, self._described.info),)
        elif left := sum(len(each.images) for each in messages) - sum(len(each.images) for each in shown):
            changes += (left_out_images(messages, left),)
        if self._described.info.sees:
            changes += unread_page_changes(messages)
        if formed and wanted and (silent or format.begins == "thought"):
            changes += (Change("chat.thinking", "on", "off", "with a grammar, the model cannot think first"),)
        if formed:
            prompt, format = with_answer_opened(tokenizer, prompt, format)
        changes += unread_calls(format, request.tools)
        return replace(prompt, changes=changes), format

    def title(self, messages: Sequence[Message], cancelled: Callable[[], bool] = never) -> str | None:
        """A title for a chat that begins with `messages`; empty if the model wrote none; None if cancelled.

        Caches and tables are not changed. Raises like `generate`.
        """
        request = title_request(messages, self.loaded.info.context_tokens)
        if request is None:
            return ""
        words: list[str] = []
        format = AnswerFormat()
        cut = False
        for event in self.generate(request, cancelled):
            if isinstance(event, Token):
                format = event.format or format
                words.append(event.text)
            elif isinstance(event, Finished):
                if event.reason == "cancelled":
                    return None
                cut = event.reason == "length"
        return cleaned(parse_answer("".join(words), format.without_calls()).text, cut=cut)


def _written(answer: Answer, writing: Writing, cancelled: Callable[[], bool]) -> Iterator[Event]:
    """The tokens of `answer`, and gauges between them."""
    try:
        with closing(DecodeLoop(answer).steps(answer.settings.sampling.max_tokens)) as steps:
            for step in steps:
                yield from writing.add(step)
                if writing.reason:
                    break
                if cancelled():
                    writing.reason = "cancelled"
                    break
                yield from writing.due_gauges()
    except (BrokenLogitsError, GrammarError):
        yield from writing.rest()  # the tokens before it
        raise


def _uncancelled(
    events: Generator[Event, None, None], cancelled: Callable[[], bool]
) -> Generator[Event, None, bool]:
    """`events`, closed when `cancelled()`. Returns whether it was."""
    with closing(events):
        for event in events:
            yield event
            if cancelled():
                return True
    return False
