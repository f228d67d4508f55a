"""What leader and followers say to each other, as msgpack arrays. No MLX.

The leader asks a follower what it is (`Look`, `Seen`) and whom it reaches (`Listen`, `Listening`, `Connect`,
`Connected`), has it load its part (`Load`, `Joining`, `Loading`*, `Loaded`), then tells it what to do (`Do`,
`Done`) until it says `End`. Both say `Beat` once a second. A follower that fails says `Failed` and exits.

`Do` holds everything since the last forward and one forward, its last action: so a step is one message, and
its `Done` needs nobody's waiting.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from core.errors import ProtocolError
from core.kv.told import Change


class _Said(Struct, frozen=True, tag=True, array_like=True):
    pass


class Look(_Said, frozen=True):
    """Say what you are and, of the model called so (or in that folder there), whether you have it."""

    model: str
    folder: str


class Seen(_Said, frozen=True):
    """What a machine is. `digest` is of the model's files; `problem` says why there is none.

    `expands`: weights become float32 there, as on MLX's CPU build. `busy`: it follows somebody already.
    """

    version: str
    mlx: str
    mlx_lm: str
    chip: str
    memory_bytes: int
    limit_bytes: int
    backends: tuple[str, ...]
    expands: bool
    busy: bool
    digest: str = ""
    problem: str = ""


class Place(Struct, frozen=True, array_like=True):
    """Where one machine takes what layers exchange: host:port, and its devices towards each other one."""

    tensors: str
    rdma: tuple[str, ...] = ()


class Listen(_Said, frozen=True):
    """Be ready for the others' connections at your address for tensors. `addresses` are all, by rank."""

    backend: str
    rank: int
    addresses: tuple[str, ...]


class Listening(_Said, frozen=True):
    """It is, or `problem` says why not."""

    problem: str = ""


class Connect(_Said, frozen=True):
    """All listen: see whom you reach."""


class Connected(_Said, frozen=True):
    """`unreached`: each rank that was not, and why. `missing`: how many that should have come did not."""

    unreached: tuple[tuple[int, str], ...] = ()
    missing: int = 0


class Load(_Said, frozen=True):
    """Join the others as `rank` and load your part of the model."""

    model: str
    folder: str
    digest: str
    rank: int
    places: tuple[Place, ...]
    backend: str
    split: str
    deadline_s: float


class Loading(_Said, frozen=True):
    """How far it is, for showing."""

    stage: str


class Joining(_Said, frozen=True):
    """The files are those that they should be, and it joins the others now."""


class Loaded(_Said, frozen=True):
    """Its part is in memory. `kinds`: of cache entries that its layers have, sorted."""

    kinds: tuple[str, ...]


class Begin(_Said, frozen=True):
    """A new, empty cache of that number."""

    cache: int


class Drop(_Said, frozen=True):
    """Nobody needs that cache any more."""

    cache: int


class Changed(_Said, frozen=True):
    """`change` is done to that cache."""

    cache: int
    change: Change


class Forward(_Said, frozen=True):
    """Run your part over `ids` with that cache."""

    cache: int
    ids: tuple[int, ...]


Action = Begin | Drop | Changed | Forward


class Do(_Said, frozen=True):
    """Do these in their order. Numbers rise by one."""

    number: int
    actions: tuple[Action, ...]


class Done(_Said, frozen=True):
    """It was done, in `took_s`. `check` is the checksum of all `Do` messages so far.

    `appending` and `window` are where such entries of the forward's cache stand now; −1: it has none.
    """

    number: int
    check: int
    appending: int
    window: int
    took_s: float


class Beat(_Said, frozen=True):
    """A sign of life, and what memory is used."""

    memory_bytes: int
    limit_bytes: int


class Failed(_Said, frozen=True):
    """A follower's last word: why it exits."""

    message: str
    hint: str = ""


class End(_Said, frozen=True):
    """A leader's last word: exit."""

    why: str


Told = Look | Listen | Connect | Load | Do | Beat | End
Heard = Seen | Listening | Connected | Joining | Loading | Loaded | Done | Beat | Failed

_encoder = msgspec.msgpack.Encoder()
_told: msgspec.msgpack.Decoder[Told] = msgspec.msgpack.Decoder(Told)
_heard: msgspec.msgpack.Decoder[Heard] = msgspec.msgpack.Decoder(Heard)


def encode(message: Told | Heard) -> bytes:
    """One message, without its frame."""
    return _encoder.encode(message)


def decode_told(payload: bytes) -> Told:
    """What a leader said. Raises `ProtocolError`."""
    try:
        return _told.decode(payload)
    except msgspec.DecodeError as error:
        raise ProtocolError(f"The leader said something that is no message ({error}).") from None


def decode_heard(payload: bytes) -> Heard:
    """What a follower said. Raises `ProtocolError`."""
    try:
        return _heard.decode(payload)
    except msgspec.DecodeError as error:
        raise ProtocolError(f"A follower said something that is no message ({error}).") from None
