"""Line: a TCP connection between leader and follower on which every message is authenticated.

Both prove that they know the secret before anything else is read (HMAC-SHA256 over both sides' nonces), and
derive a key for each direction. A frame is

    length   4 bytes, big-endian, of the payload; bounded
    mark     16 bytes: HMAC-SHA256(key, number ‖ payload), where the number counts the frames of a direction
    payload

so a message cannot be forged, altered, replayed, dropped or reordered. Nothing is encrypted: neither are the
tensors that MLX sends beside it. No MLX.
"""

from __future__ import annotations

import hmac
import os
import socket
import threading
from contextlib import suppress

from core.errors import ClusterError, ProtocolError

MOST_BYTES = 16 * 1024 * 1024
# Longer than any network of machines in one place; strangers that say nothing are hung up on after it.
GREETING_S = 5.0
_HELLO = b"draftlight-cluster-1"
_NONCE_BYTES = 32
_PROOF_BYTES = 32
_MARK_BYTES = 16


class LineEnd(Exception):
    """The other side has hung up, or the connection is lost."""


class Line:
    """`connection` after the greeting. Sending is for any thread, receiving for one."""

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
        """One message. Raises `LineEnd`."""
        if len(payload) > MOST_BYTES:
            raise ProtocolError(f"A message has {len(payload):,} bytes; {MOST_BYTES:,} are allowed.")
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
            raise ProtocolError(f"A message of {length:,} bytes came; {MOST_BYTES:,} are allowed.")
        payload = _read(self._socket, length)
        if not hmac.compare_digest(_mark(self._receive_key, self._received, payload), head[4:]):
            raise ProtocolError("A message came that the other side has not written.")
        self._received += 1
        return payload

    def close(self) -> None:
        """Hang up; whoever receives on it gets `LineEnd`."""
        with suppress(OSError):  # the other side was first
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


def greet_as_leader(connection: socket.socket, secret: bytes) -> tuple[bytes, bytes]:
    """The keys of a connection that was made to a follower. Raises `ClusterError`."""
    connection.settimeout(GREETING_S)
    try:
        hello = _read(connection, len(_HELLO) + _NONCE_BYTES)
        if not hello.startswith(_HELLO):
            raise ClusterError("It is no follower of this version of Draftlight.", "Update Draftlight there.")
        nonces = hello[len(_HELLO) :] + os.urandom(_NONCE_BYTES)
        connection.sendall(nonces[_NONCE_BYTES:] + _proof(secret, b"leader", nonces))
        proof = _read(connection, _PROOF_BYTES)
    except TimeoutError:
        raise ClusterError("It does not answer.", "See whether draftlight follow runs there.") from None
    except (LineEnd, OSError):
        raise ClusterError(
            "It hung up: its secret is another one, or it has too many visitors.",
            "Copy the secret's file of this machine to that one.",
        ) from None
    if not hmac.compare_digest(proof, _proof(secret, b"follower", nonces)):
        raise ClusterError("It does not know the secret.", "Copy the secret's file of this machine to it.")
    return _proof(secret, b"to follower", nonces), _proof(secret, b"to leader", nonces)


def greet_as_follower(connection: socket.socket, secret: bytes) -> tuple[bytes, bytes] | None:
    """The keys of a connection that came in; None if whoever made it does not know the secret."""
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
