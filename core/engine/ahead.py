"""ReadAhead: reads the beginning of the next question while the model is idle.

The window sends the question as it would be asked now: the conversation, the attached documents and the text
typed up to now. The part that further typing cannot change is read, chunk by chunk, into the prefix cache,
where the question finds it like an earlier turn. So its answer starts at once, and equals that of a cold
start that reads the same tokens.

Images of the question are read as soon as they are known, each decoded and encoded by the tower in one step.

Any request stops the reading after the running chunk. Tokens that were read stay in the cache, and are
saved with the chat; the rest of the documents is read with the question, sparsely or densely. In automatic
mode nothing is read while the system saves energy.
Engine's thread.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence

from msgspec.structs import replace

from core.decoding.answer import ImageRows, MemoryGuard
from core.engine.model_session import ModelSession
from core.engine.saved_chats import SavedChats
from core.errors import DraftlightError
from core.events import FIRST_IMAGE_ROW, Generate, Message, ModelInfo, ReadAheadProgress
from core.kv.cached_sequence import shared_prefix
from core.models import memory
from core.models.loader import LoadedModel
from core.prefill.plan import Preference, dense_reason, may_skip
from core.prefill.read import read_prompt
from core.prompt import may_merge
from core.system.power import Energy

# Samples of text that may be typed next: a letter, a digit, a line, a sign, another script. Tokens that
# differ between these are not read, and neither is one that could merge with the next character.
_TYPED = ("A", "7", "\n\n-", " (", "你")
# A chunk delays a question that arrives meanwhile: it is halved, down to the second, while it takes longer.
_CHUNK_TOKENS = 256, 32
_CHUNK_S = 0.5
# Fewer new tokens are read as fast with the question.
_LEAST_TOKENS = 128


def why_not_ahead(request: Generate, info: ModelInfo, preference: Preference) -> str:
    """Why nothing is read ahead of `request` with this model; empty if it is."""
    prefill = request.settings.prefill
    if prefill.read_ahead == "off":
        return "reading ahead is off"
    if prefill.mode == "on":
        return "passages are chosen by the question"
    if info.machines:
        return "the model runs on several machines"
    # Nothing of a question with images alone could be left out.
    skips = may_skip(prefill) and not _has_images_alone(request.messages)
    if prefill.read_ahead == "auto" and skips and preference.passages:
        return f"the model answers better from chosen passages ({preference.reason})"
    return ""


def _has_images_alone(messages: Sequence[Message]) -> bool:
    """Whether the last message has images, and none has attachments."""
    images = bool(messages) and bool(messages[-1].images)
    return images and not any(message.attachments for message in messages)


class ReadAhead:
    """`ids_of` returns the ids of a request's prompt, `sight_of` the images of messages in a prompt of these
    ids; both raise `DraftlightError`.
    """

    def __init__(
        self,
        ids_of: Callable[[Generate], Sequence[int]],
        sight_of: Callable[[Sequence[Message], Sequence[int]], ImageRows | None],
        chats: SavedChats,
        say: Callable[[ReadAheadProgress], None],
    ) -> None:
        self._ids_of = ids_of
        self._sight_of = sight_of
        self._chats = chats
        self._say = say
        self._wanted: Generate | None = None
        self._work: Iterator[None] | None = None
        self._energy = Energy()

    def want(self, request: Generate | None) -> None:
        """Read ahead of `request` from now on, and of no other; None: of nothing."""
        self._wanted, self._work = request, None

    def stop(self, chat: str | None = None) -> None:
        """Another request needs the cache. The reading continues later, unless it was for `chat`."""
        self._work = None
        if self._wanted is not None and self._wanted.chat == chat:
            self._wanted = None

    def piece(self, session: ModelSession, guard: Callable[..., MemoryGuard]) -> bool:
        """Read one chunk; returns whether there is more."""
        request = self._wanted
        if request is None:
            return False
        if request.settings.prefill.read_ahead == "auto" and self._energy.why_save():
            return False  # until the next command
        if self._work is None:
            self._work = self._read(request, session, guard)
        try:
            with memory.wired(session.nbytes):
                if next(self._work, self) is not self:
                    return True
        except DraftlightError:  # the question itself will say so
            pass
        self.want(None)
        return False

    def _read(
        self, request: Generate, session: ModelSession, guard: Callable[..., MemoryGuard]
    ) -> Iterator[None]:
        settings, model, question = request.settings.prefill, session.model, request.messages[-1]
        is_new = len(request.messages) == 1
        if why_not_ahead(request, model.info, session.profile.preference):
            return
        ids = yield from self._fixed_ids(request, model)
        # `read_prompt` leaves out the last token.
        prompt, end = [*ids, 0], len(ids)
        sight = self._sight_of(request.messages, ids)
        kv = None if sight is not None else session.quantisation(request.settings.kv)[0]
        budget_bytes = settings.memory_mib << 20
        if end >= settings.context_of(model.info.context_tokens) or session.profile_of(kv).why_not_split(end):
            return
        whole = bool(dense_reason(settings, ""))
        self._chats.load_for(request.chat, prompt, settings, whole=whole, kv=kv)
        yield
        is_erased = is_new and self._chats.keep_only(request.chat, prompt)
        shared = max(each.shared_as(kv, prompt, whole=whole) for each in session.prefix_cache.sequences)
        if shared == end:
            self._say(ReadAheadProgress(request.chat, end, end))
        has_image = sight is not None and max(ids[shared:], default=0) >= FIRST_IMAGE_ROW
        if end - shared < _LEAST_TOKENS and not (is_erased or has_image):
            return
        if sight is not None:
            for _ in sight.rows_in(ids, shared):
                yield
        sequence = session.prefix_cache.take(prompt, whole=whole, kv=kv)
        sequence.reuse(prompt, whole=whole)
        # A new chat without a word may never be kept, and its file would never be erased.
        is_empty = not (question.content or question.attachments or question.images)
        chat = "" if is_new and is_empty else request.chat
        self._chats.taken(sequence, chat, settings)
        reused = sequence.columns.count
        fits = guard(request, quantised=kv is not None).chunk_tokens
        chunk, least = min(settings.chunk_tokens, _CHUNK_TOKENS[0]), _CHUNK_TOKENS[1]
        while chunk > least and (session.profile.dense_s(chunk, end) or 0.0) > _CHUNK_S:
            chunk //= 2
        chunk = fits(reused, end, chunk, sight.undivided_rows if sight is not None else 0)
        head = session.head_for(request.settings)
        # Where the last documents and images may be removed again.
        lengths = [end]
        for fewer in () if sequence.keeps_all else _with_fewer(question):
            other = replace(request, messages=(*request.messages[:-1], fewer))
            lengths.append(shared_prefix(ids, (yield from self._fixed_ids(other, model))))
        lengths.sort()
        steps = read_prompt(
            model.model, sequence, prompt, chunk_tokens=chunk, snapshots=lengths, states=head, sight=sight
        )
        try:
            for step in steps:
                sequence.ahead_columns = step.done_tokens - reused
                self._say(ReadAheadProgress(request.chat, step.done_tokens, step.total_tokens))
                yield
                if sequence is not session.prefix_cache.current or sequence.nbytes > budget_bytes:
                    return
        finally:
            if head is not None:
                head.end()
        session.prefix_cache.fit(budget_bytes)
        self._chats.answered(chat, settings)

    def _fixed_ids(self, request: Generate, model: LoadedModel) -> Generator[None, None, list[int]]:
        """The ids that the prompt of `request` begins with, whatever else is typed."""
        ids: Sequence[int] | None = None
        for typed in _TYPED:
            other = self._ids_of(_typed(request, typed))
            ids = other if ids is None else ids[: shared_prefix(ids, other)]
            yield
        assert ids is not None
        return list(ids[:-1] if len(ids) and may_merge(model.tokenizer, ids[-1]) else ids)


def _with_fewer(question: Message) -> Iterator[Message]:
    """`question` without its last attachments, and without its last images."""
    for count in range(1, len(question.attachments)):
        yield replace(question, attachments=question.attachments[:count])
    for count in range(len(question.images)):
        yield replace(question, images=question.images[:count])


def _typed(request: Generate, text: str) -> Generate:
    """`request` with `text` typed after the text of its question."""
    *before, question = request.messages
    return replace(request, messages=(*before, replace(question, content=question.content + text)))
