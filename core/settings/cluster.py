"""Settings of a cluster: the machines that run one model together, and their connection.

The command line reads one from a JSON file (`draftlight cluster --help`), the window keeps its own, and
`LoadModel` carries one. This machine always has rank 0 and is not listed.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from core.errors import SettingError
from core.settings.fields import about, choice, number, text

Backend = Literal["auto", "ring", "jaccl"]
Split = Literal["auto", "tensor", "pipeline"]
# Default port of `draftlight follow`. Tensors use the next port by default.
FOLLOW_PORT = 8318
# Without this machine; MLX's limit is 16.
MOST_MACHINES = 15
_MOST_BYTES = 1 << 20


class Machine(Struct, frozen=True, forbid_unknown_fields=True):
    """One follower."""

    name: Annotated[
        str, text(64, least=1, lines=1, empty="such as studio"), about("Name", "Display name of the machine.")
    ]
    address: Annotated[
        str,
        text(256, least=1, lines=1, empty=f"10.0.0.2, or 10.0.0.2:{FOLLOW_PORT}"),
        about("Address", "Host or host:port of its draftlight follow."),
    ]
    tensors: Annotated[
        str,
        text(256, lines=1, empty="the same host, the next port"),
        about(
            "Address for tensors",
            "Address on which it receives tensors. Empty uses the same host and the next port.",
        ),
    ] = ""
    model: Annotated[
        str,
        text(4096, lines=1, empty="found by the same name"),
        about("Model there", "The model’s folder on that machine. Empty searches for the same name."),
    ] = ""
    rdma: Annotated[
        tuple[str, ...],
        text(16, lines=1, empty="for jaccl: rdma_en2, "),
        about(
            "Thunderbolt devices", "For jaccl: its device for each machine, this one first; empty for itself."
        ),
    ] = ()


class Cluster(Struct, frozen=True, forbid_unknown_fields=True):
    """The followers in the order of their ranks, and how all machines work together."""

    machines: Annotated[tuple[Machine, ...], Meta(max_length=MOST_MACHINES, extra={"listed": True})] = ()
    secret_file: Annotated[
        str,
        text(4096, lines=1, names="file", empty="Draftlight’s own"),
        about("Secret", "A file with the secret of all machines. Empty uses Draftlight’s own."),
    ] = ""
    here: Annotated[
        str,
        text(256, lines=1, empty="as the others reach it"),
        about(
            "Address of this machine",
            "Address on which this machine receives tensors, host:port. Empty uses the address that reaches"
            " the first follower.",
        ),
    ] = ""
    rdma: Annotated[
        tuple[str, ...],
        text(16, lines=1, empty="for jaccl: , rdma_en2"),
        about("Thunderbolt devices", "For jaccl: this machine’s device for each machine; empty for itself."),
    ] = ()
    backend: Annotated[
        Backend,
        choice({"auto": "Automatic", "ring": "TCP (ring)", "jaccl": "Thunderbolt (jaccl)"}),
        about(
            "Connection",
            "Automatic uses Thunderbolt (jaccl) if devices are given and MLX supports it, else TCP (ring).",
        ),
    ] = "auto"
    split: Annotated[
        Split,
        choice({"auto": "Automatic", "tensor": "Each layer", "pipeline": "Some layers on each"}),
        about(
            "Split",
            "Splits each layer over all machines (tensor), or puts some layers on each (pipeline). Automatic"
            " uses tensor if the model supports it.",
        ),
    ] = "auto"
    deadline_s: Annotated[
        float,
        number(1.0, 600.0, unit="s", step=1.0),
        about(
            "Deadline",
            "Maximum time of one operation. A machine that takes longer counts as lost, and the cluster ends."
            " Chunks of a long prompt get more.",
        ),
    ] = 30.0

    @property
    def size(self) -> int:
        """Number of machines with this one."""
        return len(self.machines) + 1


class ClusterForm(Struct, frozen=True):
    """The window's form as groups of settings: one machine, and the cluster."""

    machine: Machine
    cluster: Cluster = Cluster()


def check_names(cluster: Cluster, whose: str) -> None:
    """Raises `SettingError` unless all names differ. `whose`: the list, for the message."""
    names = [machine.name for machine in cluster.machines]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise SettingError(
            f"{whose} has two machines called “{twice}”.", "Give each machine a different name."
        )


def cluster_of(text: bytes, name: str) -> Cluster:
    """The cluster in the JSON `text`. Raises `SettingError`; `name`: the source, for the message."""
    try:
        if len(text) > _MOST_BYTES:
            raise msgspec.ValidationError(f"it has {len(text):,} bytes, and a list of machines is short")
        found = msgspec.json.decode(text, type=Cluster)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SettingError(
            f"{name} is not a list of machines: {error}.",
            'Use {"machines": [{"name": "studio", "address": "10.0.0.2"}], "secret_file": …}.',
        ) from None
    check_names(found, name)
    return found
