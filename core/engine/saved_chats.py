"""SavedChats: when the cached sequences of chats are written to disk, and when they are read back.

Saved:
- when a chat is left: another one is opened, or asks;
- 30 s after an answer, if at least 1,024 tokens are new since the chat was last saved;
- when the model is unloaded or the process ends, for at most 5 s.
A file is replaced only if at least a sixteenth of the chat is new: a shorter rest is read faster than the
disk is worn. Tokens prefilled before a question count like an answer; of a chat that was never asked nothing
stays that its question no longer begins with. Loaded when a chat is opened, while nothing else is to be
done, and at the latest when it asks or is read ahead.
A question whose prompt begins like another saved chat's, such as one about the same document, loads that
prefix: it becomes the asking chat's own, and the file stays the other chat's.

A chat is saved only with a request that names it (`Generate.chat`) and has `prefill.save`. A file that cannot
be used is removed, and the prompt is read again; the next answer's changes report a chat that cannot be
saved. Engine's thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
from msgspec import Struct

from core.engine.model_session import ModelSession
from core.errors import reason_of
from core.events import SavedChatsListed
from core.folders.folder import identity_of
from core.kv.cached_sequence import CachedSequence, shared_prefix
from core.kv.mlx_lm_caches import KvQuantisation
from core.kv.saved import SavedFile, SavedSequence, Stamp, UnusableFileError, begins_with, stamp_of
from core.kv.saved_files import SavedFiles
from core.settings import Prefill

_IDLE_S = 30.0
_IDLE_TOKENS = 1024
_LEFT_TOKENS = 128
# A file is replaced if one token in this many is new.
_NEW_SHARE = 16
_ENDING_S = 5.0
# Loading must spare at least this many tokens; from another chat's file as many more, and one in
# `_NEW_SHARE` of its tokens, because all of an array is read even if only its beginning is needed.
_LEAST_GAIN_TOKENS = 64
_LEAST_PREFIX_TOKENS = 256
MOST_DISK_BYTES = 4 << 30  # of all saved chats; those used least recently go first


class _Due(Struct, frozen=True):
    """A chat is saved at `at_s` if at least `least_tokens` are new."""

    at_s: float
    least_tokens: int


class _OnDisk(Struct, frozen=True):
    tokens: list[int]
    columns: int
    kv: KvQuantisation | None


Work = Generator[None, None, None]


class _Task(Struct, frozen=True):
    """Loading or saving of `chat` under way."""

    chat: str
    work: Work


class SavedChats:
    """`say` receives the state after each change; `clock` gives seconds."""

    def __init__(
        self,
        say: Callable[[SavedChatsListed], None] = lambda event: None,
        clock: Callable[[], float] = time.perf_counter,
        files: SavedFiles | None = None,
    ) -> None:
        self._say = say
        self._clock = clock
        self._files = files or SavedFiles()
        self._here: ModelSession | None = None
        self._stamp: Stamp | None = None
        self._why_not = ""
        self._prefill = Prefill()
        self._open = ""  # the chat that the window shows
        self._wanted = ""  # the chat to load
        self._latest = ""  # the chat that asked last
        self._due: dict[str, _Due] = {}
        self._on_disk: dict[str, _OnDisk] = {}
        self._problems: dict[str, str] = {}
        self._not_erased = ""
        self._loading: _Task | None = None
        self._saving: _Task | None = None

    # ---- the model

    def use(self, here: ModelSession) -> None:
        """Another model was loaded. The open chat is loaded for it while idle."""
        self._here, self._stamp, self._why_not = here, None, ""
        self._wanted = self._open

    def release(self) -> None:
        """Saves the model's chats, for a few seconds at most, and forgets the model. Does not raise."""
        self._stop()
        until_s = self._clock() + _ENDING_S
        sequences = reversed(self._here.prefix_cache.sequences) if self._here else ()
        for chat in dict.fromkeys(each.chat for each in sequences if each.chat):
            if self._clock() > until_s:
                break
            try:
                with closing(self._save(chat, _LEFT_TOKENS)) as saving:
                    for _ in saving:
                        if self._clock() > until_s:
                            break
            except (MemoryError, RuntimeError):  # MLX's; the chat is read again
                break
        self._here = None
        self._due.clear()
        self._on_disk.clear()
        self._problems.clear()

    # ---- commands

    def open(self, chat: str, prefill: Prefill) -> None:
        """The window shows `chat`, empty for one that is not kept: the previous one is left."""
        if chat == self._open:
            return
        for left in (self._open, self._latest):
            if left != chat:
                self._leave(left)
        self._open = self._wanted = chat
        self._prefill = prefill
        if self._loading is not None:
            self._loading.work.close()
            self._loading = None

    def erase(self, chats: Sequence[str], *, everything: bool = False) -> None:
        """Removes the files of `chats`, or all. Their sequences in memory are no longer saved."""
        self._stop(None if everything else chats)
        gone = set(self._on_disk) | set(self._due) if everything else set(chats)
        for sequence in self._here.prefix_cache.sequences if self._here else ():
            if everything or sequence.chat in gone:
                sequence.chat = ""
        for chat in gone:
            for held in (self._due, self._on_disk, self._problems):
                held.pop(chat, None)
        left = self._files.erase_all() if everything else self._files.erase(chats)
        self._not_erased = (
            f"Not erased: {left:,} {'file' if left == 1 else 'files'} in {self._files.folder}" if left else ""
        )
        self.report()

    def report(self) -> None:
        count, size_bytes = self._files.usage()
        not_saved = next(reversed(self._problems.values()), "")
        problem = self._not_erased or (f"Not saved: {not_saved}" if not_saved else "")
        self._say(SavedChatsListed(count, size_bytes, problem))

    # ---- while idle

    def piece(self) -> bool:
        """Writes or reads one tensor; returns whether there was one."""
        if self._here is None:
            return False
        now_s = self._clock()
        left = next((chat for chat, due in self._due.items() if due.at_s <= now_s), "")
        # A loaded chat must not push one out of memory that is still to be saved.
        if self._loading is None and self._wanted and not (left and self._is_tight(self._here)):
            self._loading, self._wanted = _Task(self._wanted, self._load_chat(self._wanted)), ""
        if self._loading is not None:
            loading, self._loading = self._loading, None  # not continued if it fails
            if next(loading.work, self) is not self:
                self._loading = loading
            return True
        if self._saving is None:
            if not left:
                return False
            self._saving = _Task(left, self._save(left, self._due.pop(left).least_tokens))
        saving, self._saving = self._saving, None
        if next(saving.work, self) is not self:
            self._saving = saving
        return True

    def due_s(self) -> float | None:
        """Seconds until a chat may be saved; None if none is waiting."""
        now_s = self._clock()
        return min((max(0.0, due.at_s - now_s) for due in self._due.values()), default=None)

    # ---- requests

    def before(
        self, chat: str, prompt: Sequence[int], prefill: Prefill, *, whole: bool, kv: KvQuantisation | None
    ) -> str:
        """A request of `chat`, empty for none, is about to take a sequence; returns why it is not saved.

        Its sequence, or a prefix of another chat's, is loaded if that spares reading with caches as in `kv`;
        if it is not to be saved, its file is removed. A running save ends without a file and is repeated.
        """
        if self._saving is not None:
            self._leave(self._saving.chat)
        if self._latest != chat:
            self._leave(self._latest)
        self._latest = chat
        if self._loading is not None and self._loading.chat == chat and prefill.save:
            for _ in self._loading.work:
                pass
        self._stop()
        for _ in self._load_for(chat, prompt, prefill, whole=whole, kv=kv):
            pass
        is_saved = bool(chat and prefill.save and self._here)
        return (self._why_not or self._problems.get(chat, "")) if is_saved else ""

    def load_for(
        self, chat: str, prompt: Sequence[int], prefill: Prefill, *, whole: bool, kv: KvQuantisation | None
    ) -> None:
        """Loads while idle what `before` would load for this request."""
        self._loading = _Task(chat, self._load_for(chat, prompt, prefill, whole=whole, kv=kv))

    def keep_only(self, chat: str, prompt: Sequence[int]) -> bool:
        """Erases the cache of `chat` unless `prompt` begins with it. Returns whether it was erased."""
        if self._here is None or not chat:
            return False
        held = [each.tokens for each in self._here.prefix_cache.sequences if each.chat == chat]
        held += [self._on_disk[chat].tokens] if chat in self._on_disk else []
        is_stale = any(shared_prefix(tokens, prompt) < len(tokens) for tokens in held)
        if is_stale:
            self.erase([chat])
        return is_stale

    def taken(self, sequence: CachedSequence, chat: str, prefill: Prefill) -> None:
        """The request's `sequence` belongs to `chat` from now on."""
        sequence.chat = chat if prefill.save else ""

    def answered(self, chat: str, prefill: Prefill) -> None:
        if chat and prefill.save:
            self._due[chat] = _Due(self._clock() + _IDLE_S, _IDLE_TOKENS)

    # ---- inside

    def _is_tight(self, here: ModelSession) -> bool:
        """Whether the chat to load exceeds the free budget of the prefix cache."""
        size_bytes = self._files.size_bytes(self._files.path(self._wanted, here.model.info.path))
        return here.prefix_cache.nbytes + size_bytes > self._prefill.memory_mib << 20

    def _leave(self, chat: str) -> None:
        if chat:
            self._due[chat] = _Due(self._clock(), _LEFT_TOKENS)

    def _stop(self, chats: Sequence[str] | None = None) -> None:
        """Ends loading and saving of `chats`; None: of all."""

        def left(task: _Task | None) -> _Task | None:
            if task is None or (chats is not None and task.chat not in chats):
                return task
            task.work.close()
            return None

        self._loading, self._saving = left(self._loading), left(self._saving)

    def _stamped(self) -> Stamp | None:
        """The stamp of the model, computed at first use; None and a reason if its caches cannot be saved."""
        here = self._here
        if here is None or self._stamp is not None or self._why_not:
            return self._stamp
        loaded = here.model
        identity = identity_of(Path(loaded.info.path)) if loaded.info.path else ""
        if loaded.info.machines:
            self._why_not = "the model runs on several machines"
        elif not identity:
            self._why_not = "the model's files cannot be read"
        else:
            self._stamp = stamp_of(loaded.model, loaded.new_cache, identity)
            if self._stamp is None:
                self._why_not = "the model's cache is of a kind that cannot be saved"
        self._files.clean(MOST_DISK_BYTES)
        return self._stamp

    def _load_for(
        self, chat: str, prompt: Sequence[int], prefill: Prefill, *, whole: bool, kv: KvQuantisation | None
    ) -> Work:
        """Adds the sequence of `chat`, and a prefix of another chat's, if that spares reading of `prompt`."""
        if chat and not prefill.save:
            self._due.pop(chat, None)
            self._files.erase([chat])
        if not chat or not prefill.save or self._here is None:
            return
        self._prefill = prefill

        def shared(each: CachedSequence | SavedFile) -> int:
            return each.shared_as(kv, prompt, whole=whole)

        cache = self._here.prefix_cache
        least = max(map(shared, cache.sequences)) + _LEAST_GAIN_TOKENS
        yield from self._load_chat(chat, lambda saved: len(saved.tokens) if shared(saved) >= least else 0)
        least = max(map(shared, cache.sequences)) + _LEAST_PREFIX_TOKENS
        yield from self._load_prefix(prompt, shared, least)

    def _load_chat(
        self, chat: str, length_of: Callable[[SavedFile], int] = lambda saved: len(saved.tokens)
    ) -> Work:
        """Adds the sequence of `chat`, unless it is in memory. `length_of` as in `_load`."""
        here = self._here
        if here is not None and not any(each.chat == chat for each in here.prefix_cache.sequences):
            yield from self._load(self._files.path(chat, here.model.info.path), chat, length_of)

    def _load_prefix(
        self, prompt: Sequence[int], shared: Callable[[SavedFile], int], least_tokens: int
    ) -> Work:
        """Adds the longest prefix of `prompt` that a chat's file has, if at least `least_tokens` long.

        Of other files the first `least_tokens` ids at most are read.
        """
        here = self._here
        if here is None or len(prompt) <= least_tokens:
            return

        def useful(saved: SavedFile) -> int:
            length = shared(saved)
            return length if length >= max(least_tokens, len(saved.tokens) // _NEW_SHARE) else 0

        beginning = np.asarray(prompt[:least_tokens], np.int32)
        best: tuple[int, Path] | None = None
        for path in self._files.of_model(here.model.info.path):
            with self._removing_damaged(path), path.open("rb") as file:
                if begins_with(file, beginning) and (stamp := self._stamped()) is not None:
                    length = useful(SavedFile(file, stamp, here.model.info.vocabulary))
                    if length > (best[0] if best else 0):
                        best = length, path
        if best is not None:
            yield from self._load(best[1], "", useful)

    def _load(self, path: Path, chat: str, length_of: Callable[[SavedFile], int]) -> Work:
        """Adds the first `length_of` tokens of the file at `path`, if there are any, as those of `chat`."""
        here = self._here
        # The stamp costs a forward pass, which a chat without a file is spared.
        if here is None or not path.is_file() or (stamp := self._stamped()) is None:
            return
        cache, budget_bytes = here.prefix_cache, self._prefill.memory_mib << 20
        file = self._files.open(path)
        if file is None:
            return
        with self._removing_damaged(path), file:
            saved = SavedFile(file, stamp, here.model.info.vocabulary)
            length = length_of(saved)
            held = any(
                shared_prefix(each.tokens, saved.tokens) == len(saved.tokens)
                and each.columns.count >= saved.columns.count
                and each.kv == saved.kv
                for each in cache.sequences
            )
            if not held and 0 < saved.nbytes_of(length) <= budget_bytes:
                sequence = yield from saved.read(here.model.new_cache, length)
                sequence.chat = chat
                cache.add(sequence)
                cache.fit(budget_bytes)
            if chat:
                self._on_disk[chat] = _OnDisk(saved.tokens, saved.columns.count, saved.kv)

    @contextmanager
    def _removing_damaged(self, path: Path) -> Iterator[None]:
        """Removes the file at `path` if the block finds it unusable; ends the block if it cannot be read."""
        try:
            yield
        except UnusableFileError:
            self._files.remove(path)
            self.report()
        except OSError:
            pass

    def _save(self, chat: str, least_tokens: int) -> Work:
        """Writes the newest sequence of `chat` if at least `least_tokens` are new."""
        here, stamp = self._here, self._stamped()
        if here is None or stamp is None:
            return
        sequences = here.prefix_cache.sequences
        sequence = next((each for each in reversed(sequences) if each.chat == chat), None)
        if sequence is None or self._new_tokens(sequence) < max(
            least_tokens, len(sequence.tokens) // _NEW_SHARE
        ):
            return
        path = self._files.path(chat, here.model.info.path)
        try:
            saving = SavedSequence(sequence, here.model.new_cache, stamp)
            problem = self._files.reserve(path, saving.nbytes, MOST_DISK_BYTES)
            if not problem:
                with self._files.writing(path) as file:
                    yield from saving.write(file)
                self._on_disk[chat] = _OnDisk(list(sequence.tokens), sequence.columns.count, sequence.kv)
        except (OSError, ValueError) as error:
            problem = reason_of(error)
        self._problems.pop(chat, None)
        if problem:
            self._problems[chat] = problem
        self.report()

    def _new_tokens(self, sequence: CachedSequence) -> int:
        """Number of tokens of `sequence` that its file does not have."""
        on_disk = self._on_disk.get(sequence.chat)
        if on_disk is None or on_disk.kv != sequence.kv:
            return len(sequence.tokens)
        shared = shared_prefix(sequence.tokens, on_disk.tokens)
        fuller = sequence.skipped < len(on_disk.tokens) - on_disk.columns
        return len(sequence.tokens) - (0 if fuller else shared)
