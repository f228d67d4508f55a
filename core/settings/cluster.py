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
_MOST_BYTES = 1 << 20

_Address = Annotated[str, Meta(max_length=256)]


class Machine(Struct, frozen=True, forbid_unknown_fields=True):
    """One machine that follows."""

    name: Annotated[
        str,
        Meta(min_length=1, max_length=64, title="Name", description="What the machine is called here."),
    ]
    address: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=256,
            title="Address",
            description="Where its draftlight follow listens: a host, or host:port.",
        ),
    ]
    tensors: Annotated[
        str,
        Meta(
            max_length=256,
            title="Address for tensors",
            description="Where it takes what layers exchange. Empty: the same host, the next port.",
        ),
    ] = ""
    model: Annotated[
        str,
        Meta(
            max_length=4096,
            title="Model there",
            description="The model's folder on that machine. Empty: found there by the same name.",
        ),
    ] = ""
    rdma: Annotated[
        tuple[str, ...],
        Meta(
            max_length=16,
            title="Thunderbolt devices",
            description="For jaccl: its device towards each machine, this one first; empty towards itself.",
        ),
    ] = ()


class Cluster(Struct, frozen=True, forbid_unknown_fields=True):
    """The machines beside this one, in the order of their ranks, and how they work together."""

    machines: Annotated[tuple[Machine, ...], Meta(max_length=15)] = ()
    secret_file: Annotated[
        str,
        Meta(
            max_length=4096,
            title="Secret",
            description="A file with the secret that all machines share. Empty: Draftlight's own.",
        ),
    ] = ""
    here: Annotated[
        str,
        Meta(
            max_length=256,
            title="Address of this machine",
            description="Where this one takes what layers exchange, host:port. Empty: the address from which"
            " it reaches the first of the others.",
        ),
    ] = ""
    rdma: Annotated[
        tuple[str, ...],
        Meta(
            max_length=16,
            title="Thunderbolt devices",
            description="For jaccl: this machine's device towards each machine; empty towards itself.",
        ),
    ] = ()
    backend: Annotated[
        Backend,
        Meta(
            title="Connection",
            description="Thunderbolt's jaccl where devices are named and MLX has it, else TCP's ring.",
        ),
    ] = "auto"
    split: Annotated[
        Split,
        Meta(
            title="Split",
            description="Each layer over all machines (tensor), or some layers on each (pipeline)."
            " auto is tensor where the model has it.",
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
            extra={"unit": "s"},
        ),
    ] = 30.0

    @property
    def size(self) -> int:
        """How many machines there are, this one included."""
        return len(self.machines) + 1


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
    names = [machine.name for machine in found.machines]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise SettingError(f"{name} has two machines called “{twice}”.", "Give each a name of its own.")
    return found
