"""The access policy of the window's server, made from its settings. Raises, never listens."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import urlsplit

from app.controllers.server import strings
from app.controllers.server.key import Key
from core.errors import RequestError
from core.serve.security import AccessPolicy
from core.settings.server import Server

_MB = 1024 * 1024
# As a Host header has it before its port.
_NAME = re.compile(r"[\w-]+(\.[\w-]+)*\.?", re.ASCII)


class ServerSettingError(RequestError):
    """A setting of the server that cannot be served by."""

    code = "bad-server-setting"


def doors_of(settings: Server, key: Key) -> AccessPolicy:
    """Raises `ServerSettingError`, `KeyFileError`."""
    return AccessPolicy(
        host=_address(settings.address),
        hosts=tuple(_name(each) for each in _listed(settings.hosts)),
        origins=tuple(_origin(each) for each in _listed(settings.origins)),
        key=key.get() if settings.ask_key else "",
        most_bytes=settings.max_body_mb * _MB,
    )


def _listed(given: str) -> list[str]:
    """One a line, or with commas between them."""
    return given.replace(",", " ").split()


def _name(given: str) -> str:
    if not _NAME.fullmatch(given):
        raise ServerSettingError(strings.bad_name(given), strings.BAD_NAME_HINT)
    return given.removesuffix(".")


def _address(given: str) -> str:
    """Figures only: a name would have to be looked up, which can take long."""
    address = given.strip().strip("[]")
    if address.lower() == "localhost":
        return "localhost"
    try:
        ipaddress.ip_address(address)
    except ValueError:
        raise ServerSettingError(strings.no_address(given), strings.NO_ADDRESS_HINT) from None
    return address


def _origin(given: str) -> str:
    try:
        parts = urlsplit(given)
        fine = (
            parts.scheme in ("http", "https") and parts.netloc and given == f"{parts.scheme}://{parts.netloc}"
        )
    except ValueError:
        fine = False
    if not fine:
        raise ServerSettingError(strings.bad_origin(given), strings.BAD_ORIGIN_HINT)
    return given
