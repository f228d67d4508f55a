"""UpdateCheck: checks for a newer version once a day if the person enabled it.

The time of the last check is stored, so that frequent starts do not check more often. Failures are logged and
retried another day. While disabled, it imports nothing.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from app.features.settings.controller import AppSettings
from app.store.preferences import PreferencesFile

if TYPE_CHECKING:  # they read the metadata of packages, a tenth of the start time
    from app.features.about.updates import Release, UpdateLook

_LOG = logging.getLogger("draftlight.window")
_EVERY_S = 24 * 3600.0


class UpdateCheck(QObject):
    """`address` lists the releases (None: the build's own); without an address the check cannot be
    enabled.
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
            from app.features.about.updates import releases_address

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

        from app.features.about.updates import UpdateLook

        look = UpdateLook(self.address, importlib.metadata.version("draftlight"), self)
        look.found.connect(self._take)
        look.failed.connect(lambda reason: _LOG.info("No newer version could be looked for: %s", reason))
        return look

    def _take(self, release: Release | None) -> None:
        if release is not None:
            self.found.emit(release)
