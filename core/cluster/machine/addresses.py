"""Addresses as people write them."""

from __future__ import annotations

from core.errors import ClusterError


def host_and_port(address: str, port: int) -> tuple[str, int]:
    """Of `host`, `host:port` or `[host]:port`; `port` where none is given. Raises `ClusterError`."""
    host, colon, given = address.rpartition(":")
    if not colon or "]" in given or (":" in host and not host.startswith("[")):
        host, given = address, str(port)
    host = host.removeprefix("[").removesuffix("]")
    if not host or not given.isdigit() or not 0 <= int(given) <= 65535:
        raise ClusterError(f"“{address}” is no address.", f"Give a host, or host:port, as 10.0.0.2:{port}.")
    return host, int(given)
