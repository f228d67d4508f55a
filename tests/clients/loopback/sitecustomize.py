"""In every client's process: no socket goes anywhere but to this machine. What tried to is written down.

Python imports this at its start, because the tests put this folder on its path. `CLIENTS_STRAYS` is the file.
"""

import os
import socket
import sys

_LOOPBACK = ("127.0.0.1", "::1", "localhost", "", None)


def _stray(host: object) -> bool:
    if isinstance(host, bytes):
        host = host.decode()
    if host in _LOOPBACK:
        return False
    with open(os.environ["CLIENTS_STRAYS"], "a") as file:
        file.write(f"{sys.argv[0]}: {host}\n")
    return True


def _guard() -> None:
    resolve, connect = socket.getaddrinfo, socket.socket.connect

    def getaddrinfo(host: object, *rest: object, **more: object) -> object:
        if _stray(host):
            raise socket.gaierror(socket.EAI_NONAME, "only this machine may be asked")
        return resolve(host, *rest, **more)  # type: ignore[arg-type]

    def guarded(self: socket.socket, address: object) -> None:
        if isinstance(address, tuple) and _stray(address[0]):
            raise ConnectionRefusedError("only this machine may be asked")
        connect(self, address)  # type: ignore[arg-type]

    socket.getaddrinfo = getaddrinfo  # type: ignore[assignment]
    socket.socket.connect = guarded  # type: ignore[method-assign]


if "CLIENTS_STRAYS" in os.environ:
    _guard()
