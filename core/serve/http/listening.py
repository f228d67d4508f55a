"""Sockets that are listened at: on this machine alone both of its addresses, or the one that was chosen."""

from __future__ import annotations

import errno
import ipaddress
import socket

from core.errors import RequestError

LOOPBACK = "127.0.0.1"
_LOOPBACKS = (LOOPBACK, "::1", "localhost")
_BACKLOG = 128
# Where a machine has no IPv6, or has it switched off.
_NOT_HERE = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT)


class AddressError(RequestError):
    """An address cannot be listened at."""

    code = "bad-address"


def is_loopback(host: str) -> bool:
    """Whether nobody but this machine reaches it."""
    if host in _LOOPBACKS:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def listen(host: str, port: int) -> list[socket.socket]:
    """Sockets for `host`, which is an address or a name of this machine; port 0 is any that is free.

    For this machine alone there is one more at ::1, where it has that: some clients try it first, and
    nobody else must answer them. Raises `AddressError`.
    """
    first = _bound(LOOPBACK if host == "localhost" else host, port)
    if host not in (LOOPBACK, "localhost"):
        return [first]
    try:
        return [first, _bound("::1", first.getsockname()[1])]
    except AddressError as error:
        if getattr(error.__cause__, "errno", 0) in _NOT_HERE:
            return [first]
        first.close()
        raise


def _bound(host: str, port: int) -> socket.socket:
    made: socket.socket | None = None
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        made = socket.socket(family, kind, protocol)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.setblocking(False)
        made.bind(address)
        made.listen(_BACKLOG)
    except (OSError, UnicodeError) as error:
        if made is not None:
            made.close()
        reason = getattr(error, "strerror", None) or str(error)
        taken = getattr(error, "errno", 0) == errno.EADDRINUSE
        raise AddressError(
            f"Nothing can be served at {host}, port {port}: {reason}.",
            "Choose another port, or end what uses it." if taken else "Choose an address of this machine.",
        ) from error
    return made
