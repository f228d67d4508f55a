"""Access control, checked before anything is read: Host, Origin, key, content type, size; in this order.

A page on the web reaches a server on this machine in two ways. It may send a request directly; then the
browser states the page's origin in Origin. Or its own name may resolve to this machine (DNS rebinding);
then a GET has no Origin, but Host is the page's name. So both are checked, on every request, and before the
key, so that a page cannot learn whether one is required. No origin is allowed unless it was listed, and
only then is there any CORS header. Nothing that is checked is logged.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
from collections.abc import Callable

from msgspec import Struct
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from core.errors import RequestError
from core.serve.http import ApiError, refuse, too_large

# Names of this machine for itself and for its containers (Docker, Podman). `.internal` is reserved.
_LOOPBACK = ("127.0.0.1", "::1", "localhost", "host.docker.internal", "host.containers.internal")
_WILDCARDS = ("0.0.0.0", "::")
_PREFLIGHT_S = "600"
_HEADERS = "authorization, content-type, x-api-key"
_HEADER_LIST = re.compile(r"[\w-]+(, ?[\w-]+)*", re.ASCII)
_MOST_HEADERS = 100
_HOST = re.compile(r"[\w.:-]+", re.ASCII)
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://(\[[0-9a-f:]+\]|[\w.-]+)(:\d{1,5})?", re.ASCII)
_MOST_HEAD_BYTES = 32 * 1024


class AccessPolicy(Struct, frozen=True):
    """Access rules of the server.

    `host` is the address to listen on; `hosts` are further names of this machine that clients may use.
    `origins` are complete (`http://localhost:3000`). Without a `key` none is required.
    """

    host: str = "127.0.0.1"
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    key: str = ""
    most_bytes: int = 16 * 1024 * 1024

    def knows(self, name: str) -> bool:
        """Whether `name`, from a Host header without its port, is one of this server's names."""
        name = name.lower().removesuffix(".")
        if name in _LOOPBACK or name == self.host.lower() or name in (one.lower() for one in self.hosts):
            return True
        # A wildcard address has many addresses. A web page's name is never an address.
        return self.host in _WILDCARDS and _is_address(name)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def host_name(header: str) -> str:
    """The name or address in a Host header, without port and brackets; empty if it is invalid."""
    if header.startswith("["):
        name, bracket, rest = header[1:].partition("]")
        return name if bracket and (not rest or rest.startswith(":")) else ""
    name, _, port = header.partition(":")
    return name if not port or port.isdigit() else ""


class BadNameError(RequestError):
    """A host name or an origin that no request can have."""

    code = "bad-name"


def allowed_host(given: str) -> str:
    """The name in `given`, which may have a port. Raises `BadNameError`."""
    name = host_name(given.strip())
    if not name or _HOST.fullmatch(name) is None:
        raise BadNameError(f"“{given}” is not a host name.", "Use only a name, like mac.local.")
    return name


def allowed_origin(given: str) -> str:
    """`given` as browsers send it, without a slash at its end. Raises `BadNameError`."""
    if given.strip() == "*":
        raise BadNameError(
            "“*” would let every page on the web use the model.",
            "Give the pages one by one, like http://localhost:3000.",
        )
    origin = given.strip().lower().rstrip("/")
    if not _ORIGIN.fullmatch(origin):
        raise BadNameError(
            f"“{given}” is not an origin: a scheme, a host name and an optional port, without a path.",
            "Copy it from the browser's address bar, like http://localhost:3000.",
        )
    return origin


class Guard:
    """The outermost ASGI middleware. `refused` is called for each request that it refuses."""

    def __init__(self, app: ASGIApp, doors: AccessPolicy, refused: Callable[[Scope, ApiError], None]) -> None:
        self._app = app
        self._refused = refused
        self._doors = doors
        self._origins = {origin.lower() for origin in doors.origins}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check one request."""
        if scope["type"] != "http":
            return
        headers = Headers(scope=scope)
        origin = headers.get("origin")
        try:
            self._check_head(headers)
            self._check_host(headers)
            self._check_origin(origin)
            if scope["method"] == "OPTIONS" and origin is not None:
                await self._preflight(origin, headers, send)
                return
            self._check_key(headers)
            if scope["method"] == "POST":
                self._check_type(headers)
            self._check_size(headers)
        except ApiError as error:
            self._refused(scope, error)
            await refuse(error, send, scope["path"])
            return
        await self._app(scope, receive, self._named(origin, send) if origin is not None else send)

    def _check_head(self, headers: Headers) -> None:
        """h11 bounds a head only while it is incomplete."""
        size = sum(len(name) + len(value) for name, value in headers.raw)
        if len(headers.raw) > _MOST_HEADERS or size > _MOST_HEAD_BYTES:
            raise ApiError(
                431,
                f"A request has at most {_MOST_HEADERS} headers of {_MOST_HEAD_BYTES:,} bytes together.",
                code="headers_too_large",
            )

    def _check_host(self, headers: Headers) -> None:
        named = headers.getlist("host")
        name = host_name(named[0]) if len(named) == 1 else ""
        if not self._doors.knows(name):
            raise ApiError(
                403,
                f"The name “{name[:100]}” in the Host header is not allowed. Use the address that the server"
                " shows, or allow the name: “draftlight serve --allow-host NAME”, or “Allowed names” in the"
                " settings of the window's server.",
                code="host_not_allowed",
            )

    def _check_origin(self, origin: str | None) -> None:
        if origin is not None and origin.lower() not in self._origins:
            raise ApiError(
                403,
                f"Pages from the origin “{origin[:100]}” may not use this server. Allow it:"
                " “draftlight serve --allow-origin ORIGIN”, or “Allowed origins” in the settings of the"
                " window's server.",
                code="origin_not_allowed",
            )

    def _check_key(self, headers: Headers) -> None:
        key = self._doors.key.encode()
        if not key:
            return
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        given = [headers.get("x-api-key", "")]
        if scheme.lower() == "bearer":
            given.append(bearer.strip())
        # Both are always compared, so that the time does not depend on the first.
        matches = [hmac.compare_digest(one.encode("latin-1"), key) for one in given]
        if not any(matches):
            raise ApiError(
                401,
                "Missing or invalid API key. Send the server's key as “Authorization: Bearer …” or"
                " “x-api-key: …”.",
                code="invalid_api_key",
                headers={"www-authenticate": "Bearer"},
            )

    def _check_type(self, headers: Headers) -> None:
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise ApiError(
                415, "Send JSON, with “Content-Type: application/json”.", code="unsupported_content_type"
            )

    def _check_size(self, headers: Headers) -> None:
        told = headers.get("content-length", "0")
        if not told.isdigit() or int(told[:20]) > self._doors.most_bytes:
            raise too_large(self._doors.most_bytes)

    async def _preflight(self, origin: str, asked: Headers, send: Send) -> None:
        """A listed origin may send any header: only the key grants access."""
        headers = MutableHeaders({"content-length": "0"})
        _allow(headers, origin)
        headers["access-control-allow-methods"] = "GET, HEAD, POST, DELETE"
        wanted = asked.get("access-control-request-headers", "")
        headers["access-control-allow-headers"] = wanted if _HEADER_LIST.fullmatch(wanted) else _HEADERS
        headers["access-control-max-age"] = _PREFLIGHT_S
        if "access-control-request-private-network" in asked:
            headers["access-control-allow-private-network"] = "true"
        await send({"type": "http.response.start", "status": 204, "headers": headers.raw})
        await send({"type": "http.response.body", "body": b""})

    def _named(self, origin: str, send: Send) -> Send:
        async def named(message: Message) -> None:
            if message["type"] == "http.response.start":
                _allow(MutableHeaders(scope=message), origin)
            await send(message)

        return named


def _allow(headers: MutableHeaders, origin: str) -> None:
    headers["access-control-allow-origin"] = origin
    headers["access-control-expose-headers"] = "x-request-id, retry-after"
    headers.add_vary_header("Origin")
