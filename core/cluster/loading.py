"""ClusterSetup: connects to the machines of a cluster, checks them, and loads a model on them.

Everything is checked before any weight is read. Until then a failure changes nothing; afterwards any failure
ends the processes on all machines, including this one.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from core.cluster.leader import ENDED_STATUS, Follower, Leader, connect
from core.cluster.shard import choose
from core.cluster.this_machine import CONNECT_S, TENSOR_PORT, Probe, digest_of, folder_of, seen, words_of
from core.cluster.wire import (
    Connect,
    Connected,
    Joining,
    LineEnd,
    Listen,
    Listening,
    Load,
    Loaded,
    Loading,
    Look,
    Place,
    Seen,
    host_and_port,
)
from core.errors import ClusterError
from core.events import ClusterEnded, MachinesChecked, MachineSeen, MemoryNeed
from core.models.config import Machine as Room
from core.models.config import need_of
from core.models.folder import check, gigabytes
from core.models.loader import Progress
from core.models.places import display_name
from core.settings.cluster import FOLLOW_PORT, Cluster
from core.system.files import read_key
from core.system.paths import data_dir

if TYPE_CHECKING:  # importing it loads MLX, which must be prepared before
    from core.cluster.shard import ClusterModel


# Time limit for starting a follower process and importing MLX.
_LOOK_S = 60.0
# Time limit for reading a large model from a slow disk.
_LONG_S = 3600.0

OnEnd = Callable[[ClusterEnded], None]


def here() -> str:
    """Display name of this machine."""
    return socket.gethostname().partition(".")[0] or "this machine"


class ClusterSetup:
    """Connections to the machines of `cluster`, for `model`; empty checks the machines only.

    Problems of machines are reported by `checked`. Raises `KeyFileError` for an unreadable secret,
    `ModelError` if the model is incomplete on this machine. Call `load()`, which closes the connections if it
    fails before reading weights, or use it as a context manager.
    """

    def __init__(
        self,
        cluster: Cluster,
        model: str,
        on_end: OnEnd = lambda ended: None,
        status: int = ENDED_STATUS,
    ) -> None:
        self._cluster = cluster
        self._model = model
        self._name = here()
        self._folder = folder_of(model) if model else None
        file = (
            Path(cluster.secret_file).expanduser() if cluster.secret_file else data_dir() / "cluster-secret"
        )
        secret = read_key(file).encode()
        reached = connect(cluster, secret)
        self._followers = [one for one in reached.values() if isinstance(one, Follower)]
        self._leader = Leader(self._followers, cluster.deadline_s, on_end, status)
        self._wrong = {name: one for name, one in reached.items() if isinstance(one, ClusterError)}
        try:
            self._seen = self._ask()
            facts = self._facts() if self._folder else None
            self._digest = facts.digest if facts else ""
            self._plan = plan(cluster, self._name, self._seen, facts)
            if facts is not None and not self._wrong and not self._plan.text:
                self._plan.by_machine.update(self._unreached())
        except BaseException:
            self.close()
            raise

    def _ask(self) -> dict[str, Seen]:
        for follower in self._followers:
            follower.tell(Look(self._model, follower.machine.model))
        own = seen()
        if self._folder:
            own = replace(own, digest=digest_of(self._model))
        found = {self._name: own}
        for follower in self._followers:
            try:
                found[follower.name] = follower.wait(Seen, _LONG_S if self._model else _LOOK_S)
            except ClusterError as error:
                self._wrong[follower.name] = error
        return found

    def _unreached(self) -> dict[str, str]:
        names = (self._name, *(follower.name for follower in self._followers))
        addresses = tuple(place.tensors for place in self._places())
        return unreached(self._followers, names, addresses, self._plan.backend)

    def _facts(self) -> ModelFacts:
        assert self._folder is not None
        checked, own = check(self._folder), self._seen[self._name]
        room = Room(own.limit_bytes, own.expands)
        return ModelFacts(
            display_name(self._folder, checked.config),
            checked.config,
            own.digest,
            need_of(checked.config, checked.parameters, checked.stored_bytes, room),
        )

    def checked(self, request: str = "") -> MachinesChecked:
        """Result of the check, with this machine first."""
        addresses = {self._name: self._cluster.here}
        addresses |= {machine.name: machine.address for machine in self._cluster.machines}
        machines = tuple(self._machine(name, address) for name, address in addresses.items())
        runs = not self._plan.problems and not any(each.problem for each in machines)
        return MachinesChecked(
            request, machines, runs, self._plan.backend, self._plan.split, self._plan.problems
        )

    def _machine(self, name: str, address: str) -> MachineSeen:
        if name not in self._seen:
            error = self._wrong[name]
            return MachineSeen(name, address, error.message, error.hint)
        found = self._seen[name]
        return MachineSeen(
            name,
            address,
            self._plan.by_machine.get(name, ""),
            "",
            True,
            found.busy,
            found.chip,
            found.memory_bytes,
            found.limit_bytes,
            self._plan.need_bytes,
            found.version,
            found.mlx,
            found.mlx_lm,
            found.backends,
        )

    def close(self) -> None:
        """Closes the connections; the followers wait for another leader."""
        self._leader.close()

    def __enter__(self) -> ClusterSetup:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def load(
        self,
        progress: Progress = lambda stage, fraction: None,
        make_room: Callable[[int], None] = lambda size_bytes: None,
    ) -> ClusterModel:
        """Loads the model on all machines. Raises `ClusterError` if `checked` reports a problem.

        `make_room` is called with the bytes required on this machine before any weight is read.
        """
        try:
            self._check_runs()
            make_room(self._plan.need_bytes)
        except BaseException:
            self.close()
            raise
        try:
            return self._load(progress)
        except Exception as error:
            self._leader.report_error(error)  # from here on, other machines may wait for this one
            raise

    def _check_runs(self) -> None:
        from core.cluster.this_machine import check_free

        found = self.checked()
        if not found.runs or self._folder is None:
            wrong = [each for each in found.machines if each.problem]
            message = " ".join((*(each.problem for each in wrong), *found.problems))
            raise ClusterError(
                message, next((each.hint for each in wrong if each.hint), "See draftlight cluster check.")
            )
        check_free()

    def _load(self, progress: Progress) -> ClusterModel:
        from core.cluster.shard import ClusterModel, Shard, ShardedModel, split_model
        from core.cluster.this_machine import join
        from core.models.loader import check_sound, describe_part, load_part

        assert self._folder is not None
        places, split = self._places(), self._plan.split
        names = (self._name, *(follower.name for follower in self._followers))
        progress(f"Joining {len(names)} machines", 0.1)
        self._leader.work()
        for rank, follower in enumerate(self._followers, 1):
            follower.tell(
                Load(
                    self._model,
                    follower.machine.model,
                    self._digest,
                    rank,
                    places,
                    self._plan.backend,
                    split,
                    self._cluster.deadline_s,
                )
            )
        for follower in self._followers:
            follower.wait(Joining, _LONG_S)
        group = join(self._plan.backend, 0, places)
        progress("Reading the weights", 0.3)
        part = load_part(self._folder, lambda model: split_model(model, group, split))
        shard = Shard(part)
        tokenizer, info = describe_part(self._folder, self._model, part, names)
        for follower in self._followers:
            self._wait_for(follower, shard.kinds, progress)
        model = ShardedModel(shard, self._leader)
        check_sound(self._folder, model)
        progress("Almost ready", 0.95)
        return ClusterModel(model, tokenizer, info, self._leader)

    def _wait_for(self, follower: Follower, kinds: tuple[str, ...], progress: Progress) -> None:
        """Waits until the follower has loaded its part, and reports its progress."""
        until = time.monotonic() + _LONG_S
        while True:
            message = follower.wait(Loading | Loaded, until - time.monotonic())
            if isinstance(message, Loaded):
                break
            progress(f"{follower.name}: {message.stage}", 0.6)
        if message.kinds != kinds:
            # Rollback is decided on this machine, by the cache types of its layers.
            raise ClusterError(
                f"{follower.name} would hold layers with {', '.join(message.kinds)} caches, and this machine"
                f" with {', '.join(kinds)}.",
                "Use fewer machines, or a model whose layers are alike.",
            )

    def _places(self) -> tuple[Place, ...]:
        """Tensor addresses of all machines, by rank."""
        first = self._followers[0]
        own = self._cluster.here or f"{first.here}:{TENSOR_PORT}"
        host, port = host_and_port(own, TENSOR_PORT)
        places = [Place(f"{host}:{port}", self._cluster.rdma)]
        for follower in self._followers:
            control = host_and_port(follower.machine.address, FOLLOW_PORT)[1]
            given = follower.machine.tensors or f"{follower.there}:{control + 1}"
            host, port = host_and_port(given, TENSOR_PORT)
            places.append(Place(f"{host}:{port}", follower.machine.rdma))
        return tuple(places)


# ---- checks before anything is loaded (pure)


# Shortest useful context.
_CONTEXT_TOKENS = 2048


class Plan(Struct, frozen=True):
    """What prevents loading: problems of the cluster, and `by_machine`. Empty if nothing does."""

    backend: str
    split: str
    problems: tuple[str, ...]
    by_machine: dict[str, str]
    need_bytes: int = 0

    @property
    def text(self) -> str:
        """All problems as text."""
        return " ".join((*self.by_machine.values(), *self.problems))


class ModelFacts(Struct, frozen=True):
    """The leader's description of the model. `need`: memory of the entire model on one machine."""

    name: str
    config: dict[str, Any]
    digest: str
    need: MemoryNeed


def plan(cluster: Cluster, here: str, machines: Mapping[str, Seen], model: ModelFacts | None) -> Plan:
    """Checks the `machines` (by display name, with `here`) for `model`; unreached ones are missing."""
    own = machines[here]
    size = cluster.size
    problems: list[str] = []
    backend = _backend(cluster, own)
    split: str = cluster.split
    need_bytes = 0
    if not cluster.machines:
        problems.append("No other machine is named.")
    if model is not None:
        split, against = choose(cluster.split, model.config, size)
        if against:
            problems.append(f"{model.name} cannot run over {size} machines: {against}.")
        need_bytes = -(-model.need.total_at(_CONTEXT_TOKENS) // size)
    if backend == "jaccl" and any(len(each) != size for each in _rdma(cluster)):
        problems.append(f"jaccl needs {size} devices named for each of the {size} machines.")
    by_machine = {
        name: problem
        for name, seen in machines.items()
        if (problem := _problem(name, seen, here, own, backend, model, need_bytes))
    }
    return Plan(backend, split, tuple(problems), by_machine, need_bytes)


def _problem(
    name: str, seen: Seen, here: str, own: Seen, backend: str, model: ModelFacts | None, need_bytes: int
) -> str:
    if seen.busy:
        return f"{name} already belongs to a cluster."
    for what, its, ours in (
        ("Draftlight", seen.version, own.version),
        ("mlx", seen.mlx, own.mlx),
        ("mlx-lm", seen.mlx_lm, own.mlx_lm),
    ):
        if its != ours:
            return f"{name} has {what} {its}, and {here} has {what} {ours}: they must be the same."
    if backend not in seen.backends:
        return f"{name} has no {backend} in its MLX, only {', '.join(seen.backends) or 'nothing'}."
    if seen.expands != own.expands:
        gpu, cpu = (here, name) if seen.expands else (name, here)
        return f"{gpu} computes on its GPU and {cpu} on its CPU: their numbers would differ."
    if model is None:
        return ""
    if seen.problem:
        return f"{name}: {seen.problem}"
    if seen.digest != model.digest:
        return (
            f"The files of {model.name} on {name} are not those on {here}"
            f" (SHA-256 {seen.digest[:12]}… there, {model.digest[:12]}… here): copy the folder again."
        )
    if need_bytes > seen.limit_bytes:
        return (
            f"{name} would hold {gigabytes(need_bytes)} GB of {model.name}, and gives it"
            f" {gigabytes(seen.limit_bytes)} GB."
        )
    return ""


def _backend(cluster: Cluster, own: Seen) -> str:
    if cluster.backend != "auto":
        return cluster.backend
    named = all(_rdma(cluster))
    return "jaccl" if named and "jaccl" in own.backends else "ring"


def _rdma(cluster: Cluster) -> list[tuple[str, ...]]:
    return [cluster.rdma, *(machine.rdma for machine in cluster.machines)]


# ---- connections between the machines' tensor addresses


# Time limit of the connection test.
_REACH_S = 4 * CONNECT_S


def unreached(
    followers: Sequence[Follower], names: Sequence[str], addresses: Sequence[str], backend: str
) -> dict[str, str]:
    """Sentences about unreachable addresses, by the name of the reporting machine; empty if all connect.

    `names` and `addresses` (for tensors) are by rank, this machine's first. The test closes its sockets.
    """
    try:
        own = Probe(backend, 0, addresses)
    except (OSError, ClusterError) as error:
        return {names[0]: _cannot_listen(names[0], addresses[0], words_of(error))}
    found: dict[str, str] = {}
    try:
        for rank, follower in enumerate(followers, 1):
            follower.tell(Listen(backend, rank, tuple(addresses)))
            if problem := follower.wait(Listening, _REACH_S).problem:
                found[follower.name] = _cannot_listen(follower.name, addresses[rank], problem)
        if found:
            return found
        for follower in followers:
            follower.tell(Connect())
        connected: list[Connected] = [own.connect()]
        connected += [follower.wait(Connected, _REACH_S) for follower in followers]
    except (ClusterError, LineEnd) as error:
        return {names[0]: words_of(error)}
    finally:
        own.close()
    failed = {
        name: " ".join(
            f"{name} does not reach {names[rank]} at {addresses[rank]}: {why}."
            for rank, why in each.unreached
        )
        for name, each in zip(names, connected, strict=True)
        if each.unreached
    }
    return failed or {
        name: f"No machine reached {name} at {address}: another machine answers there."
        for name, address, each in zip(names, addresses, connected, strict=True)
        if each.missing
    }


def _cannot_listen(name: str, address: str, why: str) -> str:
    return f"{name} cannot listen at {address}, its address for tensors: {why}."
