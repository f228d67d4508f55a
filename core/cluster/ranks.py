"""Runs each rank of `mlx.launch`: rank 0 loads a model over all ranks, the others run its operations.

Everything that can be checked is checked on every rank before a weight is read; such a problem is reported
and changes nothing. Later failures end the processes of all ranks.
"""

from __future__ import annotations

import gc
import hashlib
import os
import socket
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from core.cluster.group import (
    ENDED_STATUS,
    Check,
    Checked,
    Do,
    Done,
    End,
    Failed,
    Forward,
    Launch,
    Leader,
    Link,
    LinkEnd,
    Load,
    Loaded,
    Unload,
    accept,
    connect,
    deadline_s,
    join,
    launched,
    versions,
)
from core.errors import ClusterError, DraftlightError, ModelError, reason_of
from core.events import ClusterEnded
from core.folders.places import find
from core.folders.starter import STARTER, ensure_starter

if TYPE_CHECKING:  # importing it loads MLX, which must be prepared before
    from core.cluster.shard import ClusterModel, Replicas
    from core.models.loader import Progress

T = TypeVar("T")
_LOOK_S = 0.1
# MLX notices a lost rank by its own connections, at about the same time as this one is closed.
_WHICH_S = 0.5
# Shortest useful context.
_CONTEXT_TOKENS = 2048
_FILES = ("config.json", "model*.safetensors", "model.safetensors.index.json")


def load(
    model: str,
    progress: Progress,
    make_room: Callable[[int], None],
    on_end: Callable[[ClusterEnded], None],
) -> ClusterModel:
    """Rank 0: loads `model` over all ranks of the launch. Raises `ClusterError` or `ModelError`.

    `make_room` is called with the bytes required on this rank before any weight is read. `on_end` receives
    the reason, on any thread, before a failure of any rank ends this process. Main thread.
    """
    from core.cluster.shard import ClusterModel, Shard, ShardedModel, choose, split_model
    from core.folders.config import need_of
    from core.folders.folder import check
    from core.folders.places import display_name
    from core.models.loader import check_sound, describe_part, load_part
    from core.models.memory import machine

    launch = launched()
    if launch is None:
        raise ClusterError("This process has no other ranks.", "Start it with mlx.launch.")
    folder = _folder(model)
    checked = check(folder)
    split, against = choose(checked.config, launch.size)
    if against:
        name = display_name(folder, checked.config)
        raise ClusterError(
            f"{name} cannot run over {launch.size} ranks: {against}.", "Choose another number or model."
        )
    need = need_of(checked.config, checked.parameters, checked.stored_bytes, machine())
    need_bytes = -(-need.total_at(_CONTEXT_TOKENS) // launch.size)
    progress(f"Joining {launch.size} ranks", 0.1)
    leader = _leader(launch, on_end)
    for rank, reply in enumerate(leader.ask(Check(model, _digest(folder), need_bytes), Checked), 1):
        if reply.problem:
            raise ClusterError(f"Rank {rank}: {reply.problem}", reply.hint)
    make_room(need_bytes)
    try:
        progress("Reading the weights", 0.3)
        others = _in_background(lambda: leader.load(split))
        own = load_part(folder, lambda whole: split_model(whole, join(), split))
        shard = Shard(own)
        number, replies = others()
        for rank, loaded in enumerate(replies, 1):
            if loaded.kinds != shard.kinds:  # rank 0 decides how to roll back by the caches of its layers
                leader.end(
                    f"Rank {rank} would hold layers with {', '.join(loaded.kinds)} caches, and rank 0 with"
                    f" {', '.join(shard.kinds)}.",
                    "Use fewer ranks, or a model whose layers are alike.",
                )
        names = tuple(f"rank {rank} of {launch.size}" for rank in range(launch.size))
        tokenizer, info = describe_part(folder, model, own, names)
        sharded = ShardedModel(shard, leader)
        check_sound(folder, sharded)
    except Exception as error:
        leader.report_error(error)
    progress("Almost ready", 0.95)
    return ClusterModel(sharded, tokenizer, info, leader, number)


def _in_background(work: Callable[[], T]) -> Callable[[], T]:
    """Starts `work` on a thread; the returned function waits for its result."""
    found: list[T] = []
    thread = threading.Thread(target=lambda: found.append(work()), daemon=True)
    thread.start()

    def result() -> T:
        thread.join()
        return found[0]

    return result


@lru_cache(1)
def _leader(launch: Launch, on_end: Callable[[ClusterEnded], None]) -> Leader:
    """The connections of this process, which remain for all models that it loads."""
    join()
    return Leader(accept(launch), on_end)


def _folder(model: str) -> Path:
    """The folder of `model` on this machine. Raises `ModelError`."""
    if model == STARTER:
        return ensure_starter(lambda stage, fraction: None)
    if found := find(model):
        return found
    raise ModelError(
        f"{socket.gethostname()} has no model “{model}”.",
        f"Copy its folder to the same path there, or run: draftlight models download {model}",
    )


def _digest(folder: Path) -> str:
    """Digest of the config and of the names and sizes of the weights, and of the installed versions."""
    found = hashlib.sha256(versions().encode())
    try:
        for path in sorted({path for pattern in _FILES for path in folder.glob(pattern)}):
            text = path.read_bytes() if path.suffix == ".json" else b""
            found.update(f"{path.name} {path.stat().st_size} ".encode() + text)
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}.", "Download it again.") from error
    return found.hexdigest()


# ---- the other ranks


def follow(launch: Launch) -> int:
    """A rank other than 0: follows rank 0 until it ends. Returns the exit status. Main thread."""
    from core.models.runtime import prepare

    prepare()
    join()
    return _Follower(connect(launch)).run()


class _Follower:
    def __init__(self, link: Link) -> None:
        self._link = link
        self._folder = Path()
        self._replicas: Replicas | None = None
        self._number = 0
        self._due: float | None = None

    def run(self) -> int:
        threading.Thread(target=self._watch, name="cluster", daemon=True).start()
        try:
            while True:
                message = self._link.receive()
                if isinstance(message, End):
                    if message.why:
                        self._leave(message.why)
                    return 0
                self._do(message)
        except LinkEnd as error:
            self._leave(f"Rank 0 was lost: {reason_of(error)}.")
        except KeyboardInterrupt:  # Ctrl-C reaches all ranks
            return 130
        except Exception as error:  # boundary: rank 0 is informed, and this process ends
            self._fail(error)
        return ENDED_STATUS

    def _do(self, message: object) -> None:
        match message:
            case Check():
                self._check(message)
            case Load(split):
                self._load(split)
            case Do(number, actions):
                if self._replicas is None or number <= self._number:
                    raise ClusterError(f"Operation {number} arrived after {self._number}.")
                self._number = number
                tokens = sum(len(each.ids) for each in actions if isinstance(each, Forward))
                self._due = time.monotonic() + deadline_s(tokens)
                positions = self._replicas.do(actions)
                self._due = None
                self._link.send(Done(number, *positions))
            case Unload():
                self._unload()
            case _:
                raise ClusterError(f"Rank 0 sent {type(message).__name__}.")

    def _check(self, check: Check) -> None:
        from core.folders.folder import check as check_folder
        from core.folders.folder import gigabytes
        from core.models.memory import machine

        try:
            self._folder = _folder(check.model)
            check_folder(self._folder)
            if _digest(self._folder) != check.files:
                raise ModelError(
                    f"{self._folder} on {socket.gethostname()} has other files than on rank 0, or other"
                    f" versions are installed than there ({versions()} here).",
                    "Copy the folder again and install the same versions.",
                )
            if (limit := machine().limit_bytes) < check.need_bytes:
                raise ModelError(
                    f"{socket.gethostname()} needs {gigabytes(check.need_bytes)} GB for its part, and has"
                    f" {gigabytes(limit)} GB for models.",
                    "Use more machines or a smaller model.",
                )
        except DraftlightError as error:
            self._link.send(Checked(error.message, error.hint))
        else:
            self._link.send(Checked())

    def _load(self, split: str) -> None:
        from core.cluster.shard import Replicas, Shard, split_model
        from core.models.loader import load_part

        self._unload()
        part = load_part(self._folder, lambda whole: split_model(whole, join(), split))
        shard = Shard(part)
        self._replicas = Replicas(shard)
        self._link.send(Loaded(shard.kinds))

    def _unload(self) -> None:
        import mlx.core as mx

        self._replicas = None
        gc.collect()
        mx.clear_cache()

    def _fail(self, error: Exception) -> None:
        time.sleep(_WHICH_S)
        if self._link.is_lost:  # the error is only its consequence
            self._leave("Rank 0 was lost during an operation.")
        traceback.print_exc()
        given = reason_of(error), error.hint if isinstance(error, DraftlightError) else ""
        with suppress(LinkEnd):
            self._link.send(Failed(*given))
        self._leave(given[0])

    def _leave(self, why: str) -> None:
        """Exits at once, because MLX may wait for a lost rank."""
        with suppress(OSError):
            os.write(2, f"draftlight: {why}\n".encode())
        os._exit(ENDED_STATUS)

    # ---- the watch thread

    def _watch(self) -> None:
        while True:
            time.sleep(_LOOK_S)
            due = self._due
            if due is None:
                continue  # the main thread receives
            if self._link.is_lost:
                self._leave("Rank 0 was lost during an operation.")
            if time.monotonic() > due:
                self._leave(f"An operation took longer than its deadline of {deadline_s():.0f} s.")
