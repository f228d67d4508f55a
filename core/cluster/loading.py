"""Gathering: the machines of a cluster, reached and asked; a model can then be loaded over them.

Everything that can be checked is checked before a weight is read anywhere. Until then a refusal leaves
everything as it was; from then on whatever fails ends all machines, this process included.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from core.cluster.checks import ModelFacts, plan
from core.cluster.leader import ENDED_STATUS, Follower, Leader, connect
from core.cluster.machine.addresses import host_and_port
from core.cluster.machine.probe import TENSOR_PORT
from core.cluster.machine.this_machine import digest_of, folder_of, seen
from core.cluster.messages import Joining, Load, Loaded, Loading, Look, Place, Seen
from core.cluster.reach import unreached
from core.errors import ClusterError
from core.events import ClusterEnded, MachinesChecked, MachineSeen
from core.models.folder import check
from core.models.library.naming import display_name
from core.models.library.need import Machine as Room
from core.models.library.need import need_of
from core.models.loader import Progress
from core.settings.cluster import FOLLOW_PORT, Cluster
from core.system.key_file import read_key
from core.system.paths import data_dir

if TYPE_CHECKING:  # importing it loads MLX, which must be prepared before
    from core.cluster.sharded import ClusterModel

# Starting a follower's process and importing MLX.
_LOOK_S = 60.0
# Reading all files of a large model from a slow disk, and its weights.
_LONG_S = 3600.0

Said = Callable[[ClusterEnded], None]


def here() -> str:
    """What this machine is called."""
    return socket.gethostname().partition(".")[0] or "this machine"


class Gathering:
    """Of the machines of `cluster`, for `model`; empty: only the machines are looked at.

    Nothing that is wrong with a machine is raised: it is in `checked`. Raises `KeyFileError` for a secret
    that cannot be read, `ModelError` for a model that is not whole here. Call `load()`, which closes it if it
    raises before anything was read, or use it as a context manager.
    """

    def __init__(
        self,
        cluster: Cluster,
        model: str,
        said: Said = lambda ended: None,
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
        self._leader = Leader(self._followers, cluster.deadline_s, said, status)
        self._wrong = {name: one for name, one in reached.items() if isinstance(one, ClusterError)}
        try:
            self._seen = self._ask()
            facts = self._facts() if self._folder else None
            self._digest = facts.digest if facts else ""
            self._plan = plan(cluster, self._name, self._seen, facts)
            if facts is not None and not self._wrong and not self._plan.said:
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
        """What was found, in words; this machine first."""
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
        """End the connections; the followers wait for another leader."""
        self._leader.close()

    def __enter__(self) -> Gathering:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def load(
        self,
        progress: Progress = lambda stage, fraction: None,
        make_room: Callable[[int], None] = lambda size_bytes: None,
    ) -> ClusterModel:
        """The model over all machines. Raises `ClusterError` if `checked` says that it does not run.

        `make_room` is called with the bytes that are needed here, when nothing is read yet.
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
            self._leader.doubt(error)  # others may wait for this machine for ever: no way back
            raise

    def _check_runs(self) -> None:
        from core.cluster.machine.joining import check_free

        found = self.checked()
        if not found.runs or self._folder is None:
            wrong = [each for each in found.machines if each.problem]
            said = " ".join((*(each.problem for each in wrong), *found.problems))
            raise ClusterError(
                said, next((each.hint for each in wrong if each.hint), "See draftlight cluster check.")
            )
        check_free()

    def _load(self, progress: Progress) -> ClusterModel:
        from core.cluster.machine.joining import join
        from core.cluster.shard import Shard
        from core.cluster.sharded import ClusterModel, ShardedModel
        from core.cluster.splitting import split_model
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
        """Until it has its part in memory. What it says on the way is shown."""
        until = time.monotonic() + _LONG_S
        while True:
            message = follower.wait(Loading | Loaded, until - time.monotonic())
            if isinstance(message, Loaded):
                break
            progress(f"{follower.name}: {message.stage}", 0.6)
        if message.kinds != kinds:
            # What a block keeps is decided here, by the entries of this machine's layers.
            raise ClusterError(
                f"{follower.name} would hold layers with {', '.join(message.kinds)} caches, and this machine"
                f" with {', '.join(kinds)}.",
                "Use fewer machines, or a model whose layers are alike.",
            )

    def _places(self) -> tuple[Place, ...]:
        """Where each machine takes what layers exchange, by rank."""
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
