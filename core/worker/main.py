"""The worker process: the engine on its main thread, the protocol on its pipes.

Five threads:

    main     runs commands in the order of `CommandQueue`; the only thread that uses MLX
    reader   decodes commands; cancels an answer that waits at once, the running one for its next step
    models   commands about models on the disk, which do not wait for the end of an answer
    counting tokens of texts, also during an answer
    heart    a heartbeat once per second with the time of the main thread's current operation; ticks the clock

The process ends on request, or when one of its pipes is closed because the window has ended.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from core.cluster.group import launched
from core.errors import DraftlightError, OutOfMemoryError, ProtocolError, RequestError
from core.events import (
    PROTOCOL,
    Activity,
    Cancel,
    Command,
    CountTokens,
    Effective,
    EmbedDocument,
    EmbedTexts,
    EraseChats,
    EraseVectors,
    Event,
    ExportTable,
    FindSimilar,
    Finished,
    Generate,
    Heartbeat,
    Hello,
    ImportTable,
    ListSavedChats,
    ListTables,
    LoadModel,
    LoadProgress,
    LoadTables,
    ModelInfo,
    ModelLoaded,
    ModelUnloaded,
    OpenChat,
    PrefillProgress,
    Queued,
    ReadAhead,
    ResetTable,
    SaveTables,
    Shutdown,
    StandStill,
    Stats,
    SuggestTitle,
    TableDone,
    TakeTurn,
    TitleSuggested,
    Token,
    TokenCount,
    TurnTaken,
    UnloadIdle,
    UnloadModel,
    decode_command,
    encode,
    failure,
)
from core.events.codec import HEAD_BYTES, LINE_LIMIT_BYTES, TOO_LONG, head_of
from core.system.clock import TICK_S, Clock
from core.system.paths import tables_dir
from core.worker.model_service import FoldersInUse, ModelService
from core.worker.queue import CommandQueue, Entry

_TICKS_A_BEAT = round(1.0 / TICK_S)
# After the window ended, a long forward pass is aborted, but the tables are saved.
_ORPHAN_GRACE_S = 10.0
_SAVING_GRACE_S = 120.0
_LOOK_S = 0.05
_CANCELLED = "The request was cancelled while it waited."
_PIECE_BYTES = 1024 * 1024


class Channel:
    """The pipes: commands from fd 0, events to a private copy of fd 1. Create it before other code can print.

    fd 1 is duplicated and then redirected to stderr, so that no library's print corrupts the protocol. Writes
    are locked (the main thread and the heartbeat write); one thread reads.
    """

    def __init__(self) -> None:
        self._out = os.fdopen(os.dup(1), "wb", buffering=0)
        os.dup2(2, 1)
        self._in = os.fdopen(os.dup(0), "rb")
        devnull = os.open(os.devnull, os.O_RDONLY)
        os.dup2(devnull, 0)
        os.close(devnull)
        sys.stdout = sys.stderr
        self._lock = threading.Lock()
        self._at_end: Callable[[], None] = lambda: os._exit(0)

    def at_end(self, leave: Callable[[], None]) -> None:
        """Sets the handler of a closed pipe, called from any thread for each event that is not sent."""
        self._at_end = leave

    def send(self, event: Event) -> None:
        """Writes one event. Any thread. If the pipe is closed, the process exits or calls `at_end`."""
        line = encode(event)
        try:
            with self._lock:
                view = memoryview(line)
                while view:
                    view = view[self._out.write(view) or 0 :]
        except OSError:
            self._at_end()

    def commands(self) -> Iterator[Command]:
        """Yields commands until the pipe is closed.

        An invalid line, or one that does not fit into memory, is answered with `failed` and skipped.
        """
        while line := self._in.readline(HEAD_BYTES):
            try:
                if not line.endswith(b"\n"):
                    line += self._rest(LINE_LIMIT_BYTES - len(line))
                if line.strip():
                    yield decode_command(line)
            except DraftlightError as error:
                head = head_of(line)
                self.send(failure(error, command=head.type, request=head.request))
            except MemoryError:
                head = head_of(line[:HEAD_BYTES])
                self.send(failure(_no_memory(), command=head.type, request=head.request))

    def _rest(self, most_bytes: int) -> bytes:
        """The remaining line. Raises `ProtocolError` above the limit, and skips the unread part."""
        whole = False
        try:
            rest = self._in.readline(most_bytes)
            if not (whole := len(rest) < most_bytes or rest.endswith(b"\n")):
                raise ProtocolError(TOO_LONG)
            return rest
        finally:
            while not whole:
                piece = self._in.readline(_PIECE_BYTES)
                whole = not piece or piece.endswith(b"\n")


def _no_memory() -> OutOfMemoryError:
    return OutOfMemoryError(
        "There was not enough memory to read a command.", "Close other programs, or send a shorter text."
    )


def main() -> int:
    """Runs the worker until the window closes its stdin; returns the exit status."""
    channel = Channel()
    from core.models.runtime import prepare

    try:
        blas = prepare()
    except DraftlightError as error:
        channel.send(failure(error, command="start"))
        return 1
    # MLX is imported after the BLAS, because it links the one that is loaded.
    return _Worker(channel, blas).run()


def _wanted_models(command: Command) -> tuple[str, ...]:
    """References of the models that `command` may load."""
    match command:
        case LoadModel(model) | TakeTurn(_, model):
            return (model,)
        case Generate():
            return tuple(each for each in (command.model, command.settings.draft_model.model) if each)
        case _:
            return ()


class RequestCancelledError(RequestError):
    """The request was cancelled before its answer began."""

    code = "cancelled"


class _Worker:
    def __init__(self, channel: Channel, blas: str) -> None:
        from core.engine.engine import Engine
        from core.models.memory import machine
        from core.tables.files import TableFolder
        from core.tables.memory import TableMemory
        from core.worker.counting import TokenCounter

        self._channel = channel
        self._blas = blas
        self._clock = Clock()
        # Called by the main thread and by the saving thread; the channel is thread-safe.
        memory = TableMemory(TableFolder(tables_dir()), channel.send)
        self._engine = Engine(memory, channel.send, self._clock)
        self._in_use = FoldersInUse()
        self._models = ModelService(channel.send, machine(), self._in_use)
        self._counter = TokenCounter(channel.send)
        self._queue = CommandQueue(channel.send)
        # Also in the queue, to wake the main thread; a running answer takes them from here.
        self._texts: deque[EmbedTexts] = deque()
        self._texts_after_s = 0.0
        self._info: ModelInfo | None = None  # of the model that was loaded last
        self._closing = threading.Event()
        self._leaving = threading.Event()
        self._alone = threading.Event()
        self._ended = threading.Event()
        self._still = False
        self._activity: Activity = "empty"
        self._moved_at = self._clock()

    def run(self) -> int:
        self._channel.at_end(self._leave)
        self._channel.send(self._hello())
        threading.Thread(target=self._read, name="reader", daemon=True).start()
        heart = threading.Thread(target=self._beat, name="heart", daemon=True)
        heart.start()
        while not self._closing.is_set():
            entry = self._next_command()
            if isinstance(entry.command, Shutdown):
                break
            self._run(entry)
        self._closing.set()
        self._leaving.set()
        try:
            self._models.close()
            self._counter.close()
            self._saves()
            self._engine.close()
        finally:
            self._ended.set()
        heart.join()
        return 0

    # ---- main thread

    def _run(self, entry: Entry) -> None:
        command, request = entry.command, entry.request
        name = str(type(command).__struct_config__.tag)
        try:
            match command:
                case LoadModel(model):
                    self._load(model)
                case TakeTurn(_, model):
                    self._switch(request, model)
                    if not self._queue.hold(request):
                        raise RequestCancelledError(_CANCELLED)
                    self._channel.send(TurnTaken(request, self._engine.loaded.info))
                case UnloadModel():
                    self._engine.unload()
                    self._counter.use(None, None)
                    self._channel.send(ModelUnloaded())
                case Generate():
                    self._generate(command, entry.arrived_s)
                case CountTokens(_, _, _, image) if image is not None:
                    tokens, scaled_px = self._engine.count_image(image)
                    self._channel.send(TokenCount(request, tokens, self._engine.pace, scaled_px=scaled_px))
                case CountTokens(_, text, prompt):
                    engine = self._engine
                    counted = engine.count_tokens(text) if prompt is None else engine.count_prompt(prompt)
                    tokens, exact = counted
                    self._channel.send(TokenCount(request, tokens, engine.pace, estimated=not exact))
                case ListTables():
                    self._list_tables(request)
                case SaveTables():
                    self._saves()
                    self._done(request, self._engine.memory.save())
                case LoadTables(_, previous):
                    self._done(request, self._engine.memory.load(previous=previous))
                case ResetTable(_, family):
                    self._done(request, self._engine.erase_learned(family))
                case ExportTable(_, family, n, slots, path, overwrite):
                    self._saves()
                    done = self._engine.memory.export(family, n, slots, Path(path), replace=overwrite)
                    self._done(request, done)
                case ImportTable(_, path):
                    self._saves()
                    self._done(request, self._engine.memory.import_(Path(path)))
                case SuggestTitle():
                    self._suggest_title(command)
                case EmbedDocument(_, text):
                    self._engine.embedding.add(request, text)
                case Cancel():
                    self._engine.embedding.stop(request)
                case EraseVectors(digests, everything):
                    if everything:
                        self._engine.embedding.erase_all()
                    else:
                        self._engine.embedding.erase(digests)
                case EmbedTexts():
                    self._embed_texts()
                case FindSimilar():
                    self._channel.send(self._engine.embedding.find(command))
                case OpenChat(chat, prefill):
                    self._engine.saved_chats.open(chat, prefill)
                case ReadAhead(question):
                    self._engine.read_ahead(question)
                case EraseChats(chats, everything):
                    self._engine.saved_chats.erase(chats, everything=everything)
                case ListSavedChats():
                    self._engine.saved_chats.report()
                case StandStill(wanted):
                    self._still = wanted
                case UnloadIdle(after_s):
                    self._engine.unload_idle(after_s)
                case _:
                    pass
        except Exception as error:  # boundary: every error is reported to the window
            if not isinstance(error, DraftlightError) or error.kind == "internal":
                traceback.print_exc()
            self._channel.send(failure(error, command=name, request=request))
        finally:
            if self._queue.done(entry) and isinstance(command, EmbedDocument):
                self._engine.embedding.stop(request)
            self._in_use.settled(self._engine.model_folders, *_wanted_models(command))
            self._set(self._resting())

    def _next_command(self) -> Entry:
        """Returns the next command; until it arrives, runs the engine's idle work step by step.

        Due tables are saved between steps. Idle work pauses after `stand_still` and while a turn is reserved.
        """
        while True:
            try:
                while self._queue.is_empty and not self._still and self._engine.idle_work():
                    self._save_if_due()
            except Exception:  # without the measurement, the engine estimates
                traceback.print_exc()
            idles = not (self._still or self._queue.is_held)
            waits = (self._engine.memory.due_s(), self._engine.idle_due_s() if idles else None)
            entry = self._queue.next(min((wait for wait in waits if wait is not None), default=None))
            if entry is not None:
                return entry
            self._save_if_due()

    def _save_if_due(self) -> None:
        due_s = self._engine.memory.due_s()
        if due_s is not None and due_s <= 0:
            self._engine.memory.save_soon()

    def _load(self, model: str) -> None:
        self._set("loading")
        self._in_use.loading()
        progress = partial(self._load_progress, model)
        if launched() is None:
            info = self._engine.load(model, progress)
        else:
            from core.cluster.ranks import load

            self._engine.use(load(model, progress, self._engine.make_room, self._channel.send))
            info = self._engine.loaded.info
        self._info = info
        self._channel.send(ModelLoaded(info))
        self._counter.use(self._engine.loaded.tokenizer, info)
        self._counter.pace = self._engine.pace

    def _load_progress(self, model: str, stage: str, fraction: float | None) -> None:
        self._moved_at = self._clock()
        self._channel.send(LoadProgress(model, stage, fraction))

    def _switch(self, request: str, model: str) -> None:
        """Loads `model` for a request, if it is not loaded; the loaded one if that was released while idle.

        Raises `ModelError`.
        """
        released = self._engine.released
        loaded = self._engine.loaded.info.reference if self._engine.is_loaded and not released else ""
        model = model or (released.reference if released else loaded)
        if model != loaded:
            self._channel.send(Queued(request, 0, loads=True))
            self._load(model)

    def _generate(self, command: Generate, arrived_s: float) -> None:
        # Time spent waiting for idle work to end counts; for the previous command, it does not.
        requested_s = max(arrived_s, self._moved_at)
        self._switch(command.request, command.model)
        self._set("prefilling")
        self._in_use.loading()
        cancelled = partial(self._is_cancelled, command.request)
        for event in self._engine.generate(command, cancelled, requested_s):
            if isinstance(event, Token):
                self._activity = "decoding"
            if isinstance(event, Token | PrefillProgress):
                self._moved_at = self._clock()
            self._channel.send(event)
            if self._texts and self._clock() >= self._texts_after_s:
                self._embed_texts()
        self._counter.pace = self._engine.pace

    def _embed_texts(self) -> None:
        """Embeds the oldest waiting texts. A running answer keeps three quarters of the time."""
        if not self._texts:
            return  # done during an answer
        command = self._texts.popleft()
        begun_s = self._clock()
        try:
            self._channel.send(self._engine.embedding.texts(command))
        except Exception as error:  # must not end the running answer
            if not isinstance(error, DraftlightError):
                traceback.print_exc()
            self._channel.send(failure(error, command="embed_texts", request=command.request))
        self._texts_after_s = self._clock() + 3 * (self._clock() - begun_s)

    def _suggest_title(self, command: SuggestTitle) -> None:
        """Writes a title in idle time; other commands go first, and errors are ignored."""
        title: str | None = None
        try:
            if not self._still and self._engine.released is None:
                title = self._engine.title(
                    command.messages, lambda: self._has_more_to_do() or self._is_cancelled(command.request)
                )
        except Exception:
            traceback.print_exc()
            title = ""
        self._channel.send(TitleSuggested(command.request, title or "", title is None))

    def _has_more_to_do(self) -> bool:
        return self._queue.is_urgent or self._closing.is_set()

    def _list_tables(self, request: str) -> None:
        from core.tables.memory import table_list

        self._channel.send(table_list(self._engine.memory, request))

    def _done(self, request: str, done: TableDone) -> None:
        self._channel.send(replace(done, request=request))

    def _is_cancelled(self, request: str) -> bool:
        return self._queue.is_cancelled(request) or self._closing.is_set()

    def _resting(self) -> Activity:
        return "ready" if self._engine.is_loaded else "empty"

    def _set(self, activity: Activity) -> None:
        self._activity = activity
        self._moved_at = self._clock()

    def _saves(self) -> None:
        """Reports saving immediately, so that the parent does not kill this process meanwhile."""
        self._set("saving")
        self._channel.send(self._heartbeat())

    def _is_saving(self) -> bool:
        return self._activity == "saving" or self._engine.memory.is_writing()

    # ---- reader thread

    def _read(self) -> None:
        try:
            for command in self._channel.commands():
                try:
                    self._take(command)
                except Exception as error:  # the other commands must still be read
                    traceback.print_exc()
                    name, request = str(type(command).__struct_config__.tag), getattr(command, "request", "")
                    self._channel.send(failure(error, command=name, request=request))
        finally:
            self._leave()

    def _take(self, command: Command) -> None:
        request = getattr(command, "request", "")
        if isinstance(command, Cancel) and self._cancel(request):
            return
        if not self._models.take(command) and not self._counter.take(command):
            if isinstance(command, Shutdown):
                self._closing.set()
            self._in_use.coming(*_wanted_models(command))
            if isinstance(command, EmbedTexts):
                self._texts.append(command)
            self._queue.put(command, self._clock())

    def _cancel(self, request: str) -> bool:
        """Cancels a request that waits or runs; others are finished, or are embedded in idle time."""
        found = self._queue.cancel(request)
        if not isinstance(found, Entry):
            return found
        command = found.command
        self._in_use.dropped(*_wanted_models(command))
        if isinstance(command, Generate):
            name, dtype = (self._info.name, self._info.dtype) if self._info else ("", "")
            effective = Effective(name, dtype, command.settings.drafting.drafter, command.settings)
            self._channel.send(Finished(request, "cancelled", Stats(), effective))
        else:
            error = RequestCancelledError(_CANCELLED)
            self._channel.send(failure(error, command="take_turn", request=request))
        return True

    # ---- any thread

    def _leave(self) -> None:
        """Ends the process after the window closed a pipe; a running save is completed."""
        if self._alone.is_set():
            return
        self._alone.set()
        self._closing.set()
        self._queue.put(Shutdown(), self._clock())
        threading.Thread(target=self._end_by_force, name="grace", daemon=True).start()

    # ---- grace thread

    def _end_by_force(self) -> None:
        time.sleep(_ORPHAN_GRACE_S)
        waited_s = _ORPHAN_GRACE_S
        while (self._leaving.is_set() or self._is_saving()) and waited_s < _SAVING_GRACE_S:
            time.sleep(_LOOK_S)
            waited_s += _LOOK_S
        os._exit(0)

    # ---- heart thread

    def _beat(self) -> None:
        ticks = 0
        while not self._ended.wait(TICK_S):
            self._clock.tick()
            ticks += 1
            if ticks % _TICKS_A_BEAT == 0:
                self._channel.send(self._heartbeat())

    def _heartbeat(self) -> Event:
        from core.models import memory

        activity = "saving" if self._closing.is_set() and self._is_saving() else self._activity
        busy = activity in ("loading", "prefilling", "decoding")
        stalled_s = self._clock() - self._moved_at if busy else 0.0
        return Heartbeat(activity, stalled_s, memory.used_bytes(), memory.limit_bytes())

    def _hello(self) -> Hello:
        import importlib.metadata

        import mlx.core as mx

        return Hello(
            os.getpid(),
            PROTOCOL,
            importlib.metadata.version("draftlight"),
            importlib.metadata.version("mlx"),
            importlib.metadata.version("mlx-lm"),
            "Metal" if mx.default_device() == mx.gpu else "CPU",
            self._blas,
        )
