"""Updates: looks for a newer version at one address, without data about the person.

Nothing is sent unless the person enabled the daily check or clicks *Check for Updates*. The address is
`Releases` among the URLs of the project's metadata. It returns the newest release as JSON (`tag_name`,
`html_url`), as GitHub's "latest release" does. A build without the address has no button.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable

import msgspec
from msgspec import Struct
from PySide6.QtCore import QObject, QUrl, Signal
from PySide6.QtNetwork import QNetworkAccessManager, QNetworkReply, QNetworkRequest

from app.features.settings.controller import AppSettings
from app.store.preferences import PreferencesFile
from core.errors import RequestError

NO_ADDRESS = "This build names no page for updates, so it never checks."
TIMEOUT_MS = 10_000
_MOST_BYTES = 1_000_000
_EVERY_S = 24 * 3600.0
_LOG = logging.getLogger("draftlight.window")


def get_version(number: str) -> str:
    return f"Get version {number}…"


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
    import importlib.metadata  # reading it is a tenth of the start time

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


class UpdateCheck(QObject):
    """The daily check. The time of the last one is stored, so that frequent starts do not check more often.

    Failures are logged and retried another day. `address` lists the releases (None: the build's own); without
    an address the check cannot be enabled.
    """

    found = Signal(object)  # Release, newer than this one

    def __init__(
        self,
        settings: AppSettings,
        preferences: PreferencesFile,
        parent: QObject | None = None,
        *,
        address: str | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(parent)
        self._settings = settings
        self._preferences = preferences
        self._clock = clock
        self._address = address
        self._look: UpdateLook | None = None
        settings.changed.connect(lambda now: self.look_if_due())

    @property
    def address(self) -> str:
        """The address of the releases; empty if this build has none."""
        if self._address is None:
            self._address = releases_address()
        return self._address

    @property
    def is_on(self) -> bool:
        """Whether the check is enabled and has an address."""
        return self._settings.now.updates.check and bool(self.address)

    def look_if_due(self) -> None:
        """Check for a newer version if it is enabled and a day has passed."""
        now_s = self._clock()
        # A clock that was set back must not prevent the check forever.
        passed = not 0 <= now_s - self._preferences.now.looked_for_update_s < _EVERY_S
        if self.is_on and passed:
            self._preferences.change(looked_for_update_s=now_s)
            self._look = self._look or self._make_look()
            self._look.start()

    def _make_look(self) -> UpdateLook:
        import importlib.metadata

        look = UpdateLook(self.address, importlib.metadata.version("draftlight"), self)
        look.found.connect(self._take)
        look.failed.connect(lambda reason: _LOG.info("No newer version could be looked for: %s", reason))
        return look

    def _take(self, release: Release | None) -> None:
        if release is not None:
            self.found.emit(release)
