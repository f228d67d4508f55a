"""Authenticated TCP connections between leader and followers, and their messages.

Both sides prove that they have the secret before anything else is read (HMAC-SHA256 over both nonces), and
derive a key for each direction. A frame is

    length   4 bytes, big-endian, of the payload; bounded
    mark     16 bytes: HMAC-SHA256(key, number ‖ payload), where the number counts the frames of a direction
    payload

so a message cannot be forged, altered, replayed, dropped or reordered. Nothing is encrypted, like the tensors
that MLX sends. No MLX.
"""

from __future__ import annotations

import hmac
import os
import socket
import threading
from contextlib import suppress

import msgspec
from msgspec import Struct

from core.errors import ClusterError, ProtocolError
from core.kv.mirrored import Change

MOST_BYTES = 16 * 1024 * 1024
# Time limit of the greeting; clients that send nothing are disconnected.
GREETING_S = 5.0
_HELLO = b"draftlight-cluster-1"
_NONCE_BYTES = 32
_PROOF_BYTES = 32
_MARK_BYTES = 16


class LineEnd(Exception):
    """The connection was closed or lost."""


class Line:
    """An authenticated connection. Any thread may send; one thread receives."""

    def __init__(self, connection: socket.socket, keys: tuple[bytes, bytes]) -> None:
        self._socket = connection
        self._send_key, self._receive_key = keys
        self._sent = self._received = 0
        self._lock = threading.Lock()
        connection.settimeout(None)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    def fileno(self) -> int:
        """The connection's descriptor."""
        return self._socket.fileno()

    def send(self, payload: bytes) -> None:
        """Sends one message. Raises `LineEnd`."""
        if len(payload) > MOST_BYTES:
            raise ProtocolError(f"A message of {len(payload):,} bytes exceeds the limit of {MOST_BYTES:,}.")
        with self._lock:
            mark = _mark(self._send_key, self._sent, payload)
            self._sent += 1
            try:
                self._socket.sendall(len(payload).to_bytes(4, "big") + mark + payload)
            except OSError as error:
                raise LineEnd(str(error)) from error

    def receive(self) -> bytes:
        """The next message. Raises `LineEnd`, or `ProtocolError` for one that is forged or too long."""
        head = _read(self._socket, 4 + _MARK_BYTES)
        length = int.from_bytes(head[:4], "big")
        if length > MOST_BYTES:
            raise ProtocolError(f"A message of {length:,} bytes exceeds the limit of {MOST_BYTES:,}.")
        payload = _read(self._socket, length)
        if not hmac.compare_digest(_mark(self._receive_key, self._received, payload), head[4:]):
            raise ProtocolError("A message has an invalid authentication code.")
        self._received += 1
        return payload

    def close(self) -> None:
        """Closes the connection; a receiver gets `LineEnd`."""
        with suppress(OSError):  # already closed by the peer
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


def greet_as_leader(connection: socket.socket, secret: bytes) -> tuple[bytes, bytes]:
    """Greets a follower; returns the keys of the connection. Raises `ClusterError`."""
    connection.settimeout(GREETING_S)
    try:
        hello = _read(connection, len(_HELLO) + _NONCE_BYTES)
        if not hello.startswith(_HELLO):
            raise ClusterError(
                "It is not a follower of this version of Draftlight.", "Update Draftlight there."
            )
        nonces = hello[len(_HELLO) :] + os.urandom(_NONCE_BYTES)
        connection.sendall(nonces[_NONCE_BYTES:] + _proof(secret, b"leader", nonces))
        proof = _read(connection, _PROOF_BYTES)
    except TimeoutError:
        raise ClusterError("It does not answer.", "Check that draftlight follow runs there.") from None
    except (LineEnd, OSError):
        raise ClusterError(
            "Connection refused: wrong secret, or too many pending connections.",
            "Copy the secret's file of this machine to that one.",
        ) from None
    if not hmac.compare_digest(proof, _proof(secret, b"follower", nonces)):
        raise ClusterError("It has another secret.", "Copy the secret's file of this machine to it.")
    return _proof(secret, b"to follower", nonces), _proof(secret, b"to leader", nonces)


def greet_as_follower(connection: socket.socket, secret: bytes) -> tuple[bytes, bytes] | None:
    """Greets a leader; returns the keys, or None if it does not have the secret."""
    connection.settimeout(GREETING_S)
    mine = os.urandom(_NONCE_BYTES)
    try:
        connection.sendall(_HELLO + mine)
        answer = _read(connection, _NONCE_BYTES + _PROOF_BYTES)
        nonces = mine + answer[:_NONCE_BYTES]
        if not hmac.compare_digest(answer[_NONCE_BYTES:], _proof(secret, b"leader", nonces)):
            return None
        connection.sendall(_proof(secret, b"follower", nonces))
    except (LineEnd, OSError):
        return None
    return _proof(secret, b"to leader", nonces), _proof(secret, b"to follower", nonces)


def _proof(secret: bytes, role: bytes, nonces: bytes) -> bytes:
    return hmac.digest(secret, role + b"\0" + nonces, "sha256")


def _mark(key: bytes, number: int, payload: bytes) -> bytes:
    return hmac.digest(key, number.to_bytes(8, "big") + payload, "sha256")[:_MARK_BYTES]


def _read(connection: socket.socket, count: int) -> bytes:
    parts = bytearray()
    while len(parts) < count:
        try:
            piece = connection.recv(min(count - len(parts), 1 << 20))
        except TimeoutError:
            raise
        except OSError as error:
            raise LineEnd(str(error)) from error
        if not piece:
            raise LineEnd("hung up")
        parts += piece
    return bytes(parts)


def host_and_port(address: str, port: int) -> tuple[str, int]:
    """Host and port of `host`, `host:port` or `[host]:port`; `port` is the default. Raises `ClusterError`."""
    host, colon, given = address.rpartition(":")
    if not colon or "]" in given or (":" in host and not host.startswith("[")):
        host, given = address, str(port)
    host = host.removeprefix("[").removesuffix("]")
    if not host or not given.isdigit() or not 0 <= int(given) <= 65535:
        raise ClusterError(
            f"“{address}” is not a valid address.", f"Use a host or host:port, such as 10.0.0.2:{port}."
        )
    return host, int(given)


# ---- messages, as msgpack arrays
#
#     leader                              follower
#     Look                                Seen
#     Listen, Connect                     Listening, Connected
#     Load                                Joining, Loading*, Loaded
#     Do                                  Done
#     End                                 (exits)
#
# Both send `Beat` once a second. A follower that fails sends `Failed` and exits. `Do` holds all changes since
# the last forward pass and one forward pass, its last action, so a step is one message.


class _Message(Struct, frozen=True, tag=True, array_like=True):
    pass


class Look(_Message, frozen=True):
    """Requests a `Seen`: a description of the machine and of the model `model`, or of the one in `folder`."""

    model: str
    folder: str


class Seen(_Message, frozen=True):
    """Description of a machine. `digest`: of the model's files; `problem`: why it is missing.

    `expands`: weights become float32, as on MLX's CPU build. `busy`: it already belongs to a cluster.
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
    """Tensor address of a machine (host:port), and its devices for the connection to each other one."""

    tensors: str
    rdma: tuple[str, ...] = ()


class Listen(_Message, frozen=True):
    """Requests a `Listening`: listen on the tensor address for the other machines. `addresses`: of all, by
    rank.
    """

    backend: str
    rank: int
    addresses: tuple[str, ...]


class Listening(_Message, frozen=True):
    """The machine listens; otherwise `problem` is the reason."""

    problem: str = ""


class Connect(_Message, frozen=True):
    """Requests a `Connected`: all machines listen, so test the connections."""


class Connected(_Message, frozen=True):
    """Result of the test. `unreached`: ranks that could not be reached, and why. `missing`: number of
    expected connections that did not arrive.
    """

    unreached: tuple[tuple[int, str], ...] = ()
    missing: int = 0


class Load(_Message, frozen=True):
    """Requests a `Loaded`: join the group as `rank` and load this machine's part of the model."""

    model: str
    folder: str
    digest: str
    rank: int
    places: tuple[Place, ...]
    backend: str
    split: str
    deadline_s: float


class Loading(_Message, frozen=True):
    """Progress of loading."""

    stage: str


class Joining(_Message, frozen=True):
    """The files match, and the machine joins the group now."""


class Loaded(_Message, frozen=True):
    """The part is loaded. `kinds`: sorted cache types of its layers."""

    kinds: tuple[str, ...]


class Begin(_Message, frozen=True):
    """Creates an empty cache with this number."""

    cache: int


class Drop(_Message, frozen=True):
    """Releases the cache."""

    cache: int


class Changed(_Message, frozen=True):
    """Applies `change` to the cache."""

    cache: int
    change: Change


class Forward(_Message, frozen=True):
    """Runs the machine's part of the model on `ids` with this cache."""

    cache: int
    ids: tuple[int, ...]


Action = Begin | Drop | Changed | Forward


class Do(_Message, frozen=True):
    """Actions to apply in order. Numbers rise by one."""

    number: int
    actions: tuple[Action, ...]


class Done(_Message, frozen=True):
    """An operation was completed in `took_s`. `check`: checksum of all `Do` messages so far.

    `appending`, `window`: positions of these entries of the forward pass's cache; −1 if it has none.
    """

    number: int
    check: int
    appending: int
    window: int
    took_s: float


class Beat(_Message, frozen=True):
    """A heartbeat, with the memory used."""

    memory_bytes: int
    limit_bytes: int


class Failed(_Message, frozen=True):
    """Last message of a follower: why it exits."""

    message: str
    hint: str = ""


class End(_Message, frozen=True):
    """Last message of a leader: the follower exits."""

    why: str


LeaderMessage = Look | Listen | Connect | Load | Do | Beat | End
FollowerMessage = Seen | Listening | Connected | Joining | Loading | Loaded | Done | Beat | Failed

_encoder = msgspec.msgpack.Encoder()
_leader_decoder: msgspec.msgpack.Decoder[LeaderMessage] = msgspec.msgpack.Decoder(LeaderMessage)
_follower_decoder: msgspec.msgpack.Decoder[FollowerMessage] = msgspec.msgpack.Decoder(FollowerMessage)


def encode(message: LeaderMessage | FollowerMessage) -> bytes:
    """A message as bytes, without its frame."""
    return _encoder.encode(message)


def decode_leader_message(payload: bytes) -> LeaderMessage:
    """Decodes a message of the leader. Raises `ProtocolError`."""
    try:
        return _leader_decoder.decode(payload)
    except msgspec.DecodeError as error:
        raise ProtocolError(f"Invalid message from the leader ({error}).") from None


def decode_follower_message(payload: bytes) -> FollowerMessage:
    """Decodes a message of a follower. Raises `ProtocolError`."""
    try:
        return _follower_decoder.decode(payload)
    except msgspec.DecodeError as error:
        raise ProtocolError(f"Invalid message from a follower ({error}).") from None
