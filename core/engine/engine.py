"""Engine: composes models, kv, prefill, drafting and decoding into answers.

One request's way: render → plan → reuse the longest prefix → read the rest in chunks → decode
with the drafter → one Finished. The engine owns the model, the draft model, the conversation's
sequence and the tables that requests share; it lives on one thread (MLX streams are thread-local),
the worker's main thread. It knows no process and no wire.

After any end of an answer (stop token, length, cancel, error) the sequence holds a prefix of the
prompt and the shown tokens, so the next turn reuses it and gives what a cold start gives.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from functools import cache

import mlx.core as mx
from msgspec.structs import replace

from core.answer_format import AnswerFormat, parse_answer
from core.decoding.proposer import ModelProposer
from core.encoder.background import BackgroundEmbedding
from core.encoder.store import Embedder
from core.engine.asked import decoding_options
from core.engine.branches import branches
from core.engine.generation import Generation
from core.engine.model_session import ModelSession
from core.engine.planning import Planning, drafted_without_model
from core.engine.saved_chats import SavedChats
from core.engine.title import cleaned, title_request
from core.errors import ClusterError, EmptyPromptError, NoModelError, OutOfMemoryError, PromptTooLongError
from core.events import (
    Change,
    DocumentEmbedded,
    Event,
    Finished,
    Generate,
    MachineUse,
    Message,
    ModelInfo,
    Rehearsing,
    SavedChatsListed,
    Token,
)
from core.events.text import well_formed
from core.kv.cached_sequence import CachedSequence
from core.machine.exactness import Profile
from core.machine.trials import Verdict
from core.machine.width_cost import CONTEXTS, CostProfile
from core.models.chat_template import format_of, switches_thinking, unread_calls, with_answer_opened
from core.models.loader import LoadedModel, Progress, load
from core.models.prompt import Prompt, check_continuation, check_fits, count_tokens, offsets, plain, render
from core.models.runtime import memory
from core.models.runtime.blas import BlasThreads
from core.models.runtime.memory import is_exhausted
from core.models.runtime.runtime import check_prepared
from core.prefill import passages
from core.prefill.layout import Layout, layout, unknown_layout
from core.prefill.plan import dense_reason
from core.prefill.read import read_rest
from core.prefill.reading import PromptText, ReadingInputs
from core.rehearsal.idle import IdleRehearsal
from core.settings import Settings
from core.settings.declaration import check
from core.settings.request import drawn
from core.tables.memory import TableMemory, TableResult


def never() -> bool:
    """The cancel check of a caller that never cancels."""
    return False


# How many times longer than the context a text may be of which the passages that fit are read: it is
# tokenised and scored whole, at about a second for a million characters.
_MOST_CONTEXTS = 64


_COMPARES = "widths are compared"


class Engine:
    """Load once, generate often. Every method belongs to the thread that made the engine.

    `memory` keeps what drafters learn; without one it lasts as long as the engine. `say` hears how
    a rehearsal and the embedding of documents stand. `clock` gives the seconds that answers are timed by.
    `threads` may adapt to what else the machine does; without it all are used, so that figures can be
    compared.
    Raises `NotPreparedError` if MLX was imported before `core.models.runtime.runtime.prepare()` was called.
    """

    def __init__(
        self,
        memory: TableMemory | None = None,
        say: Callable[[Rehearsing | DocumentEmbedded | SavedChatsListed], None] = lambda event: None,
        clock: Callable[[], float] = time.perf_counter,
        threads: BlasThreads | None = None,
    ) -> None:
        check_prepared()
        self._threads = threads or BlasThreads("held still")
        self._resident: ModelSession | None = None
        self._memory = memory or TableMemory()
        self._rehearsal = IdleRehearsal(say)
        self._embedder = Embedder()
        self._embedding = BackgroundEmbedding(self._embedder, passages.cut, say)
        self._saved_chats = SavedChats(say, clock)
        self._clock = clock

    # ---- the model

    @property
    def is_loaded(self) -> bool:
        """Whether a model is loaded."""
        return self._resident is not None

    @property
    def _here(self) -> ModelSession:
        if self._resident is None:
            raise NoModelError("No model is loaded.", "Load one first.")
        return self._resident

    @property
    def loaded(self) -> LoadedModel:
        """The loaded model. Raises `NoModelError`."""
        return self._here.model

    @property
    def sequence(self) -> CachedSequence:
        """The conversation's cache and the tokens it holds. Raises `NoModelError`."""
        return self._here.prefix_cache.current

    @property
    def proposer(self) -> ModelProposer | None:
        """The draft model, if one was loaded."""
        return self._resident.drafts.proposer if self._resident else None

    @property
    def model_folders(self) -> tuple[str, ...]:
        """Of the loaded model and of the draft model, if one is held."""
        return self._resident.folders if self._resident else ()

    @property
    def machines_use(self) -> tuple[MachineUse, ...]:
        """The machines at work on the loaded model; none if it is here alone. Any thread."""
        here = self._resident
        return here.model.use if here else ()

    @property
    def memory(self) -> TableMemory:
        """The tables that requests share; they outlive models, and on disk the process."""
        return self._memory

    @property
    def embedding(self) -> BackgroundEmbedding:
        """The documents that are embedded while idle; they need no model."""
        return self._embedding

    @property
    def saved_chats(self) -> SavedChats:
        """The chats on disk."""
        return self._saved_chats

    def load(self, reference: str, progress: Progress = lambda stage, fraction: None) -> ModelInfo:
        """Load `reference`; the model in use stays if that fails with `ModelError`.

        It goes before the weights of the new one are read if there is no room for both.
        """
        self.use(load(reference, progress, self.make_room))
        return self.loaded.info

    def make_room(self, size_bytes: int) -> None:
        """Let the sentence encoder and the model in use go if there is no room for so much beside them."""
        if memory.used_bytes() + size_bytes > memory.limit_bytes():
            self._embedder.unload()
            if self._resident:
                self.unload()

    def use(self, loaded: LoadedModel) -> None:
        """Take a model that is already in memory."""
        self.unload()
        self._resident = ModelSession(loaded)
        self._saved_chats.use(self._resident)
        info = loaded.info
        self._memory.open(info.family, info.family_name, info.vocabulary, info.name)

    def close(self) -> None:
        """The end: free the model, save the tables."""
        self.unload()
        self._embedder.unload()
        self._memory.close()

    def unload(self) -> None:
        """Free the model, the draft model and their caches, which are saved where chats are."""
        self._rehearsal.forget_model()
        self._saved_chats.release()
        if self._resident:
            self._resident.model.close()
        self._resident = None
        mx.clear_cache()

    def forget(self, *, tables: bool = False) -> None:
        """Drop the reusable prefixes, so that the next answer starts cold.

        With `tables` what the shared tables learned since they were last saved goes, too.
        """
        if tables:
            self._memory.forget()
        if self._resident:
            self._resident.forget_contexts()

    def erase_learned(self, family: str) -> TableResult:
        """Erase all that was learned for `family`, a fingerprint; what is loaded of it is used no more.

        A rehearsal of a model of that family stops. Raises `TableError`.
        """
        here = self._resident
        of_this = here is not None and here.model.info.family == family
        if of_this:
            self._rehearsal.forget_model()
        done = self._memory.reset(family)
        if of_this and here is not None:
            here.beforehand.forget()
        return done

    def count_tokens(self, text: str) -> int:
        """Tokens of `text`, without any template. Raises `NoModelError`.

        About as many as it has, if it is far longer than the context.
        """
        loaded = self.loaded
        return count_tokens(loaded.tokenizer, well_formed(text), loaded.info.context_tokens)

    def count_prompt(self, request: Generate) -> int:
        """Tokens of the prompt of `request`; about as many as it has, if it is far too long.

        Raises `RequestError` kinds, `NoModelError`.
        """
        try:
            return len(self._prompt(request)[0].ids)
        except PromptTooLongError as error:
            return error.tokens

    def dense_s(self, tokens: int) -> float | None:
        """How long reading all of so many tokens takes here; None: not known. Raises `NoModelError`."""
        return self._here.profile.dense_s(tokens)

    def exactness_profile(self, *, complete: bool = False) -> Profile:
        """How this model's logits depend on the block's width on this machine.

        Compares widths for some seconds at first use; with `complete` until `exact` knows its widths, which
        takes minutes.
        """
        self._threads.begin(steady=_COMPARES)
        widths = self._here.profile.widths
        return widths.complete() if complete else widths.want()

    def measure_cost(self, contexts: Sequence[int] = CONTEXTS) -> CostProfile:
        """Measure T(w) now, again if it was measured before (some seconds), at these context lengths."""
        return self._here.profile.costs_anew(contexts)

    def try_out(self) -> Verdict:
        """Whether trees and drafts are exact for this model, tried now if it never was (some seconds)."""
        return self._here.profile.try_out()

    def idle_work(self) -> bool:
        """One piece of what is worth doing while nothing is asked; whether there is more.

        First chats are loaded and saved. Then documents are embedded, without a model, too: a question about
        them may come at any moment. Then what an answer skipped is read, if that was asked for; a new request
        ends it. Then drafts and trees are tried, T(w) and the pace of reading are measured, some forwards at
        a time, where that was never done, and widths are compared if `guarded` or `exact` was wanted; then
        rehearsal, if that is wanted and nobody types.
        """
        here = self._resident
        # Sums that other threads cut up differently have other bits.
        self._threads.idle(steady=_COMPARES if here and here.profile.widths.has_work else "")
        if self._saved_chats.piece() or self._embedding.piece():
            return True
        if here is None:
            return False
        try:
            if here.some_rest() or here.profile.some():
                return True
        except Exception as error:
            here.model.doubt(error)
            raise
        more = self._rehearsal.piece(here.model)
        if self._rehearsal.made_table:
            here.beforehand.forget()
        return more

    def rehearse(self, wanted: bool) -> None:
        """Whether the loaded model rehearses while idle; no other one will. Raises `NoModelError`.

        A model over several machines does not: `ClusterError`.
        """
        if wanted and self.loaded.info.machines:
            raise ClusterError(
                "A model that runs over several machines does not rehearse: it would answer several questions"
                " at once, and the other machines hold one text at a time.",
                "Rehearse with a model that runs here alone.",
            )
        self._rehearsal.want(self.loaded.info.name, wanted)

    def typing(self) -> None:
        """Somebody writes a question: rehearsal stands still for some seconds."""
        self._rehearsal.hold()

    def idle_due_s(self) -> float | None:
        """Seconds until there may be idle work again, None if time alone will not bring any."""
        due = [self._rehearsal.due_s() or None, self._saved_chats.due_s()]
        due.append(self._resident.profile.due_s() if self._resident else None)
        return min((each for each in due if each is not None), default=None)

    # ---- answers

    def generate(
        self, request: Generate, cancelled: Callable[[], bool] = never, asked_s: float | None = None
    ) -> Iterator[Event]:
        """The events of one answer, ending with Finished.

        Its times count from `asked_s`, by the engine's clock; None: from now. Raises `RequestError` kinds
        before the first event, and `OutOfMemoryError`. `cancelled` is asked between steps and prefill
        chunks; an abandoned iterator counts as cancelled.
        """
        asked_s = self._clock() if asked_s is None else asked_s
        request = replace(request, settings=drawn(request.settings))
        prompt, format = self._prompt(request)
        tokenizer = self.loaded.tokenizer
        continuation = request.continuation
        check_continuation(continuation, self.loaded.info)

        @cache
        def laid_out() -> Layout:
            return layout(prompt, offsets(tokenizer, prompt)).followed_by(len(continuation))

        def branching() -> tuple[int, ...]:
            return branches(prompt.ids, request, lambda chat: self._rendered(request, chat)[0].ids)

        text = PromptText(
            [*prompt.ids, *continuation],
            prompt.asked,
            laid_out,
            len(continuation),
            tuple if request.raw or request.isolated else cache(branching),
        )
        events = self._answer(text, request, cancelled, asked_s, prompt.changes)
        with closing(events):
            yield from _with_format(events, format)

    def _prompt(self, request: Generate) -> tuple[Prompt, AnswerFormat | None]:
        """The prompt, and the format of its answer unless it is raw. Raises `RequestError` kinds."""
        settings = request.settings
        tokenizer = self.loaded.tokenizer
        model_tokens = self.loaded.info.context_tokens
        context_tokens = settings.prefill.context_of(model_tokens)
        most_tokens = context_tokens * (_MOST_CONTEXTS if settings.prefill.reads_beyond else 1)
        check_fits(tokenizer, request.messages, most_tokens - 1, context_tokens < model_tokens)
        if request.raw:
            text = request.messages[-1].content if request.messages else ""
            return plain(tokenizer, text, self.loaded.info.vocabulary), None
        return self._rendered(request, request.messages)

    def _rendered(self, request: Generate, messages: Sequence[Message]) -> tuple[Prompt, AnswerFormat]:
        """The prompt of `messages`, with the settings of `request`, and the format of its answer."""
        tokenizer, chat = self.loaded.tokenizer, request.settings.chat
        # A grammar's answer begins at once.
        formed = request.grammar is not None and request.grammar.begins_at_once
        silent = formed and chat.thinking and switches_thinking(tokenizer)
        thinks = chat.thinking and not silent
        rows = self.loaded.info.vocabulary
        prompt = render(tokenizer, messages, chat.system_prompt, request.tools, thinks, rows)
        format = format_of(tokenizer, prompt.text, tools=bool(request.tools))
        if any(change.setting == "tools" for change in prompt.changes):
            format = format.with_told_calls()
        changes = prompt.changes
        if formed and chat.thinking and (silent or format.begins == "thought"):
            changes += (Change("chat.thinking", "on", "off", "an answer by a grammar begins at once"),)
        if formed:
            prompt, format = with_answer_opened(tokenizer, prompt, format)
        changes += unread_calls(format, request.tools)
        return replace(prompt, changes=changes), format

    def title(self, messages: Sequence[Message], cancelled: Callable[[], bool] = never) -> str | None:
        """A title for a chat that begins with `messages`, empty if the model has none; None if cancelled.

        Nothing is kept of it, and nothing that is cached is touched. Raises as `generate` does.
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

    def generate_ids(
        self,
        prompt: Sequence[int],
        settings: Settings,
        cancelled: Callable[[], bool] = never,
        *,
        request: str = "",
        also: Generate | None = None,
    ) -> Iterator[Event]:
        """Like `generate`, from token ids instead of messages; their end is taken for the question.

        `also` says what else is asked: of its logits, a grammar, and what the answer will probably be.
        """
        text = PromptText(list(prompt), "", lambda: unknown_layout(len(prompt)))
        asked = replace(also or Generate(request, ()), settings=settings)
        yield from self._answer(text, asked, cancelled, self._clock())

    def _answer(
        self,
        text: PromptText,
        request: Generate,
        cancelled: Callable[[], bool],
        asked_s: float,
        changes: Sequence[Change] = (),
    ) -> Generator[Event, None, None]:
        self._rehearsal.drop()
        model = self.loaded
        try:
            yield from self._answer_alone(text, request, cancelled, asked_s, changes)
        except Exception as error:
            model.doubt(error)
            raise
        finally:
            self._rehearsal.resume()

    def _answer_alone(
        self,
        text: PromptText,
        request: Generate,
        cancelled: Callable[[], bool],
        asked_s: float,
        changes: Sequence[Change],
    ) -> Iterator[Event]:
        prompt, here = text.ids, self._here
        settings, isolated = request.settings, request.isolated
        if not isolated:
            here.rest = None
        check(settings)
        begun = text.ids[len(text.ids) - text.continued_tokens :]
        options = decoding_options(request, here, begun)
        planning = Planning(here, self._memory)
        mode = settings.decoding.exactness
        self._threads.begin(steady="" if mode == "fast" else f"exactness is “{mode}”")
        model_tokens = here.model.info.context_tokens
        context_tokens = settings.prefill.context_of(model_tokens)
        if not prompt:
            raise EmptyPromptError("There is nothing to answer: the prompt is empty.", "Type a question.")
        here.model.check_ids(prompt)
        # Of a text that is longer than the context passages that leave room for an answer are read.
        most_tokens = context_tokens - min(settings.sampling.max_tokens, context_tokens // 4)
        beyond = settings.prefill.reads_beyond and bool(text.asked) and len(prompt) >= context_tokens
        if len(prompt) >= context_tokens and not beyond:
            raise PromptTooLongError(len(prompt), context_tokens - 1, context_tokens < model_tokens)
        held_tokens = most_tokens if beyond else len(prompt)
        try:
            settings, refused = drafted_without_model(settings) if beyond else (settings, ())
            plan = planning.plan(held_tokens, settings, isolated, options, begun)
            unsaved = () if isolated else self._memory.changes(settings)
            plan = replace(plan, changes=(*changes, *refused, *plan.changes, *unsaved))
            whole = bool(dense_reason(settings.prefill, text.asked))
            if isolated:
                sequence = CachedSequence(here.model.new_cache)
            else:
                unsaved = self._saved_chats.before(request.chat, text.ids, settings.prefill, whole=whole)
                plan = replace(plan, changes=(*plan.changes, *unsaved))
                sequence = here.prefix_cache.take(text.ids, whole=whole)
                self._saved_chats.taken(sequence, request.chat, settings.prefill)
            plan = planning.without_reuse(plan, sequence, text)
            inputs = ReadingInputs(
                lambda: planning.scoring(plan),
                here.profile.dense_s,
                here.profile.timed,
                self._clock,
                (context_tokens - held_tokens) // 2,
                most_tokens if beyond else None,
                context_tokens - 1,
                self._embedder,
            )
            if isolated and plan.proposer is not None:
                here.drafts.forget()
            answer = Generation(
                here.model,
                sequence,
                text,
                inputs,
                plan,
                cancelled,
                request,
                self._clock,
                asked_s,
                self._threads,
            )
            try:
                yield from answer.events()
            finally:
                here.profile.keep_pace()
                if not isolated:
                    self._memory.answer_finished(plan.settings)
                    here.prefix_cache.fit(settings.prefill.memory_mib << 20)
                    self._saved_chats.answered(request.chat, settings.prefill)
            if not isolated and sequence.skipped and settings.prefill.finish_reading:
                chunk = settings.prefill.chunk_tokens
                here.rest = read_rest(here.model.model, here.prefix_cache, sequence, chunk_tokens=chunk)
        except (MemoryError, RuntimeError) as error:
            if is_exhausted(error):
                self.forget()
                self._embedder.unload()
                raise OutOfMemoryError(
                    f"There was not enough memory for this answer ({error}).",
                    "Use a shorter prompt or a smaller model.",
                ) from error
            raise


def _with_format(events: Iterator[Event], format: AnswerFormat | None) -> Iterator[Event]:
    """`events` with the answer's format in its first token and in its end."""
    first = True
    for event in events:
        if format is not None and isinstance(event, Token) and first:
            event, first = replace(event, format=format), False
        elif format is not None and isinstance(event, Finished):
            event = replace(event, effective=replace(event.effective, format=format))
        yield event
