"""Home: where one window keeps its chats, its server's requests and preferences: a folder, or nowhere."""

from __future__ import annotations

from pathlib import Path

from app.session.chats.archive import ChatArchive, MemoryArchive
from app.session.library.document_archive import DocumentArchive, MemoryDocuments
from app.store.library import Library
from app.store.preferences import PreferencesFile
from app.store.requests.kept_requests import KeptRequests


class Home:
    """Without a `folder` everything lasts for this run only: smoke tests and pictures leave no trace."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder
        self.library = Library(folder) if folder else None
        self.archive: ChatArchive = self.library or MemoryArchive()
        self.documents: DocumentArchive = self.library.documents if self.library else MemoryDocuments()
        self.requests = KeptRequests(folder)
        self.preferences = PreferencesFile(folder)

    def close(self) -> bool:
        """Save what waits. False if something could not be saved."""
        requests = self.requests.close()
        return (self.library.close() if self.library else True) and requests
