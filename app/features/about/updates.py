"""Updates: asks for the newest version, only on request, at one address, without data about the person.

The address is `Releases` among the URLs of the project's metadata. It returns the newest release as JSON
(`tag_name`, `html_url`), as GitHub's "latest release" does. A build without the address has no button.
"""

from __future__ import annotations

import importlib.metadata
import re

import msgspec
from msgspec import Struct
from PySide6.QtCore import QObject, QUrl, Signal
from PySide6.QtNetwork import QNetworkAccessManager, QNetworkReply, QNetworkRequest

from core.errors import RequestError

TIMEOUT_MS = 10_000
_MOST_BYTES = 1_000_000


class Release(Struct, frozen=True):
    """The newest release; `html_url` is its download page."""

    tag_name: str
    html_url: str

    @property
    def version(self) -> str:
        """The tag without its `v`."""
        return self.tag_name.removeprefix("v")


def releases_address() -> str:
    """Returns the address; empty if this build has none."""
    urls = importlib.metadata.metadata("draftlight").get_all("Project-URL") or []
    pairs = [url.partition(",") for url in urls]
    return next((address.strip() for name, _, address in pairs if name.strip() == "Releases"), "")


def newer_release(current: str, content: bytes) -> Release | None:
    """Returns the release in `content` if it is newer than `current`. Raises `RequestError` if invalid."""
    try:
        release = msgspec.json.decode(content, type=Release)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise RequestError("The answer is not a release.") from None
    if not release.html_url.startswith("https://"):
        raise RequestError("The answer names no safe address.")
    return release if _parts(release.version) > _parts(current) else None


def _parts(version: str) -> tuple[int, ...]:
    """Returns `1.10.2` as (1, 10, 2), without trailing zeros. Raises `RequestError` if invalid."""
    if not re.fullmatch(r"\d+(\.\d+)*", version):
        raise RequestError(f"“{version[:40]}” is not a version.")
    parts = [int(part) for part in version.split(".")]
    while parts and parts[-1] == 0:
        parts.pop()
    return tuple(parts)


class UpdateLook(QObject):
    """Emits `found` with a Release or None, or `failed` with the reason. One request at a time."""

    found = Signal(object)  # Release | None
    failed = Signal(str)

    def __init__(self, address: str, current: str, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._address = address
        self._current = current
        self._network = QNetworkAccessManager(self)
        self._network.setTransferTimeout(TIMEOUT_MS)
        self._reply: QNetworkReply | None = None

    def start(self) -> None:
        """Sends the request, unless one is in progress."""
        if self._reply is not None:
            return
        request = QNetworkRequest(QUrl(self._address))
        request.setHeader(QNetworkRequest.KnownHeaders.UserAgentHeader, "Draftlight")
        self._reply = self._network.get(request)
        self._reply.finished.connect(self._finish)

    def _finish(self) -> None:
        reply, self._reply = self._reply, None
        if reply is None:
            return
        reply.deleteLater()
        if reply.error() != QNetworkReply.NetworkError.NoError:
            self.failed.emit(reply.errorString())
            return
        try:
            release = newer_release(self._current, bytes(reply.read(_MOST_BYTES).data()))
        except RequestError as error:
            self.failed.emit(error.message)
            return
        self.found.emit(release)
