"""RequestKeeping: the server's requests of this run and the stored ones, as one list.

Stores a finished request if the setting says so, and deletes in both places. Lives on the window's thread;
the store reads and writes on its own, because another Draftlight may lock the file for seconds.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, Qt, Signal

from app.store.faults import StoreError
from app.store.requests import KeptRequest, KeptRequests
from core.events import Event
from core.serve.requests import ServedRequest, ServedRequests


class RequestKeeping(QObject):
    """`wanted` returns whether finished requests are stored."""

    changed = Signal()  # the list or `problem`
    loaded = Signal(str)  # the request's content, which `of` now returns
    _heard = Signal(object)  # StoreError | None, on any thread
    _listed = Signal(object)  # tuple[ServedRequest, ...] | StoreError, on the store's thread
    _content = Signal(str, object)  # KeptRequest | StoreError | None, on the store's thread

    def __init__(
        self,
        requests: ServedRequests,
        kept: KeptRequests,
        wanted: Callable[[], bool],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._requests = requests
        self._kept = kept
        self._wanted = wanted
        self._records: dict[str, ServedRequest] = {}
        # The content that was read last. Deleted with its request.
        self._last: KeptRequest | None = None
        self._loading = ""
        self._problem = ""
        for signal, slot in (
            (self._heard, self._take),
            (self._listed, self._take_records),
            (self._content, self._take_content),
        ):
            signal.connect(slot, Qt.ConnectionType.QueuedConnection)
        kept.listen(self._heard.emit)
        requests.listen(self)

    @property
    def problem(self) -> str:
        """Why requests cannot be stored or read; empty if they can."""
        return self._problem

    @property
    def is_wanted(self) -> bool:
        """Whether finished requests are stored."""
        return self._wanted()

    @property
    def kept_count(self) -> int:
        """The number of stored requests."""
        return len(self._records)

    @property
    def records(self) -> tuple[ServedRequest, ...]:
        """All requests, the oldest first; stored ones after `refresh`."""
        here = {record.id: record for record in self._requests.all}
        return (*(record for name, record in self._records.items() if name not in here), *here.values())

    def of(self, request: str) -> KeptRequest | None:
        """Returns a request, without its content if it was deleted or is being read; None for an unknown id.

        Reading ends with `loaded`.
        """
        record = self._requests.of(request)
        if record is not None and self._requests.asked(request) is not None:
            return KeptRequest(record, self._requests.asked(request), self._requests.events(request))
        if self._last is not None and self._last.record.id == request:
            return self._last
        record = record or self._records.get(request)
        if record is not None and record.is_over and self._loading != request:
            self._loading = request
            self._kept.fetch(request, lambda found: self._content.emit(request, found))
        return KeptRequest(record, None, ()) if record is not None else None

    def refresh(self) -> None:
        """Lists the stored requests again, soon."""
        self._kept.fetch_records(self._listed.emit)

    def is_loading(self, request: str) -> bool:
        """Whether the content of `request` is being read."""
        return self._loading == request

    def follow_settings(self) -> None:
        """Shows whether requests are stored after a change of the settings."""
        self.changed.emit()

    def delete(self, request: str) -> None:
        """Erases a finished request."""
        record = self._requests.of(request)
        if record is not None and not record.is_over:
            return
        self._requests.forget(request)
        self._records.pop(request, None)
        self._forget()
        self._kept.erase(request)
        self.changed.emit()

    def delete_all(self) -> None:
        """Erases all finished requests."""
        self._requests.clear()
        self._records.clear()
        self._forget()
        self._kept.erase_all()
        self.changed.emit()

    # ---- as `RequestListener`

    def request_changed(self, request: ServedRequest) -> None:
        """Stores a finished request."""
        if request.is_over and self._wanted():
            asked, events = self._requests.asked(request.id), self._requests.events(request.id)
            self._kept.add(KeptRequest(request, asked, events))
            self._records[request.id] = request

    def request_heard(self, request: str, event: Event) -> None:
        """Nothing to do: the finished request has all its events."""

    # ---- inside

    def _forget(self) -> None:
        self._last, self._loading = None, ""

    def _take_records(self, found: tuple[ServedRequest, ...] | StoreError) -> None:
        if isinstance(found, StoreError):
            self._take(found)
        else:
            self._records = {record.id: record for record in found}
        self.changed.emit()

    def _take_content(self, request: str, found: KeptRequest | StoreError | None) -> None:
        if request != self._loading:  # deleted, or another one was chosen
            return
        self._loading = ""
        if isinstance(found, StoreError):
            self._take(found)
        record = self._records.get(request) or self._requests.of(request)
        if isinstance(found, KeptRequest):
            self._last = found
        elif record is not None:
            self._last = KeptRequest(record, None, ())
        self.loaded.emit(request)

    def _take(self, error: StoreError | None) -> None:
        problem = str(error) if error is not None else ""
        if problem != self._problem:
            self._problem = problem
            self.changed.emit()
