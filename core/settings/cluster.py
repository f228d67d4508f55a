"""Settings of a cluster: the machines that run one model together, and how they are joined.

A file of the command line holds one as JSON (`draftlight cluster --help`), the window keeps its own, and
`LoadModel` carries one. This machine is always the first one, rank 0, and is not listed.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from core.errors import SettingError

Backend = Literal["auto", "ring", "jaccl"]
Split = Literal["auto", "tensor", "pipeline"]
# Where `draftlight follow` listens. What layers exchange goes by the next port, if nothing else is said.
FOLLOW_PORT = 8318
# Beside this one: what MLX joins in one place.
MOST_MACHINES = 15
_MOST_BYTES = 1 << 20

_Address = Annotated[str, Meta(max_length=256)]


class Machine(Struct, frozen=True, forbid_unknown_fields=True):
    """One machine that follows."""

    name: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=64,
            title="Name",
            description="What the machine is called here.",
            extra={"lines": 1, "empty": "such as studio"},
        ),
    ]
    address: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=256,
            title="Address",
            description="Where its draftlight follow listens: a host, or host:port.",
            extra={"lines": 1, "empty": f"10.0.0.2, or 10.0.0.2:{FOLLOW_PORT}"},
        ),
    ]
    tensors: Annotated[
        str,
        Meta(
            max_length=256,
            title="Address for tensors",
            description="Where it takes what layers exchange. Empty: the same host, the next port.",
            extra={"lines": 1, "empty": "the same host, the next port"},
        ),
    ] = ""
    model: Annotated[
        str,
        Meta(
            max_length=4096,
            title="Model there",
            description="The model's folder on that machine. Empty: found there by the same name.",
            extra={"lines": 1, "empty": "found by the same name"},
        ),
    ] = ""
    rdma: Annotated[
        tuple[str, ...],
        Meta(
            max_length=16,
            title="Thunderbolt devices",
            description="For jaccl: its device towards each machine, this one first; empty towards itself.",
            extra={"lines": 1, "empty": "for jaccl: rdma_en2, "},
        ),
    ] = ()


class Cluster(Struct, frozen=True, forbid_unknown_fields=True):
    """The machines beside this one, in the order of their ranks, and how they work together."""

    machines: Annotated[tuple[Machine, ...], Meta(max_length=MOST_MACHINES, extra={"listed": True})] = ()
    secret_file: Annotated[
        str,
        Meta(
            max_length=4096,
            title="Secret",
            description="A file with the secret that all machines share. Empty: Draftlight's own.",
            extra={"lines": 1, "names": "file", "empty": "Draftlight’s own"},
        ),
    ] = ""
    here: Annotated[
        str,
        Meta(
            max_length=256,
            title="Address of this machine",
            description="Where this one takes what layers exchange, host:port. Empty: the address from which"
            " it reaches the first of the others.",
            extra={"lines": 1, "empty": "as the others reach it"},
        ),
    ] = ""
    rdma: Annotated[
        tuple[str, ...],
        Meta(
            max_length=16,
            title="Thunderbolt devices",
            description="For jaccl: this machine's device towards each machine; empty towards itself.",
            extra={"lines": 1, "empty": "for jaccl: , rdma_en2"},
        ),
    ] = ()
    backend: Annotated[
        Backend,
        Meta(
            title="Connection",
            description="Thunderbolt's jaccl where devices are named and MLX has it, else TCP's ring.",
            extra={"labels": {"auto": "Automatic", "ring": "TCP (ring)", "jaccl": "Thunderbolt (jaccl)"}},
        ),
    ] = "auto"
    split: Annotated[
        Split,
        Meta(
            title="Split",
            description="Each layer over all machines (tensor), or some layers on each (pipeline)."
            " auto is tensor where the model has it.",
            extra={
                "labels": {"auto": "Automatic", "tensor": "Each layer", "pipeline": "Some layers on each"}
            },
        ),
    ] = "auto"
    deadline_s: Annotated[
        float,
        Meta(
            ge=1.0,
            le=600.0,
            title="Deadline",
            description="A machine that takes longer for one operation is taken for lost, and the cluster"
            " ends. A long prompt's chunks get more.",
            extra={"unit": "s", "step": 1.0},
        ),
    ] = 30.0

    @property
    def size(self) -> int:
        """How many machines there are, this one included."""
        return len(self.machines) + 1


class ClusterForm(Struct, frozen=True):
    """What a person fills in, as groups of settings: one of the machines, and how all work together."""

    machine: Machine
    cluster: Cluster = Cluster()


def check_names(cluster: Cluster, whose: str) -> None:
    """Machines are told apart by their names. Raises `SettingError`; `whose` list it is."""
    names = [machine.name for machine in cluster.machines]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise SettingError(f"{whose} has two machines called “{twice}”.", "Give each a name of its own.")


def cluster_of(text: bytes, name: str) -> Cluster:
    """A cluster from JSON. Raises `SettingError`; `name` is whose text it is."""
    try:
        if len(text) > _MOST_BYTES:
            raise msgspec.ValidationError(f"it has {len(text):,} bytes, and a list of machines is short")
        found = msgspec.json.decode(text, type=Cluster)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SettingError(
            f"{name} is no list of machines: {error}.",
            'It takes {"machines": [{"name": "studio", "address": "10.0.0.2"}], "secret_file": …}.',
        ) from None
    check_names(found, name)
    return found
