"""Home: the chats, documents, server requests and preferences of one window: in a folder, or in memory."""

from __future__ import annotations

from pathlib import Path

from app.store.library import Library
from app.store.preferences import PreferencesFile
from app.store.requests import KeptRequests


class Home:
    """Without a `folder` everything lasts for this run only: smoke tests and screenshots leave no files."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder
        self.library = Library(folder)
        self.requests = KeptRequests(folder)
        self.preferences = PreferencesFile(folder)

    def close(self) -> bool:
        """Saves what waits. False if something could not be saved."""
        return all([self.requests.close(), self.library.close(), self.preferences.flush()])
