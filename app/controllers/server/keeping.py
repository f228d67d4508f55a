"""RequestKeeping: the server's requests as the window has them: those of this run, and those that are kept.

One that is over is kept if that is wanted then. Lists are filled from here, and what is deleted is deleted in
both places. Lives on the window's thread; what the store says on another one is heard there.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, Signal

from app.store.recovery.faults import StoreError
from app.store.requests.kept_request import KeptRequest
from app.store.requests.kept_requests import KeptRequests
from core.events import Event
from core.serve.requests import ServedRequest, ServedRequests


class RequestKeeping(QObject):
    """`wanted`: whether requests are kept now."""

    changed = Signal()  # others are kept, or `problem` is another one
    _heard = Signal(object)  # StoreError | None, from any thread

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
        self._problem = ""
        self._heard.connect(self._take)
        kept.listen(self._heard.emit)
        requests.listen(self)

    @property
    def problem(self) -> str:
        """What is wrong with keeping them; empty if nothing is."""
        return self._problem

    @property
    def is_wanted(self) -> bool:
        """Whether requests are kept now."""
        return self._wanted()

    @property
    def kept_count(self) -> int:
        """How many are in the file."""
        return len(self._records)

    @property
    def records(self) -> tuple[ServedRequest, ...]:
        """Of all requests, the oldest first; kept ones once `refresh` was called."""
        here = {record.id: record for record in self._requests.all}
        return (*(record for name, record in self._records.items() if name not in here), *here.values())

    def of(self, request: str) -> KeptRequest | None:
        """`request` as far as it is; its record alone where its words are gone; None if there is none."""
        record = self._requests.of(request)
        if record is not None and self._requests.asked(request) is not None:
            return KeptRequest(record, self._requests.asked(request), self._requests.events(request))
        try:
            return self._kept.load(request)
        except KeyError:
            pass
        except StoreError as error:
            self._take(error)
        record = record or self._records.get(request)
        return KeptRequest(record, None, ()) if record is not None else None

    def refresh(self) -> None:
        """See which are kept."""
        try:
            self._records = {record.id: record for record in self._kept.records()}
        except StoreError as error:
            self._take(error)
        self.changed.emit()

    def follow_settings(self) -> None:
        """Whether requests are kept may be otherwise now."""
        self.changed.emit()

    def delete(self, request: str) -> None:
        """Nothing of it is left. One that is not over stays."""
        record = self._requests.of(request)
        if record is not None and not record.is_over:
            return
        self._requests.forget(request)
        self._records.pop(request, None)
        self._kept.erase(request)
        self.changed.emit()

    def delete_all(self) -> None:
        """The same for all."""
        self._requests.clear()
        self._records.clear()
        self._kept.erase_all()
        self.changed.emit()

    # ---- as `RequestListener`

    def request_changed(self, request: ServedRequest) -> None:
        """Keep it once it is over."""
        if request.is_over and self._wanted():
            asked, events = self._requests.asked(request.id), self._requests.events(request.id)
            self._kept.add(KeptRequest(request, asked, events))
            self._records[request.id] = request

    def request_heard(self, request: str, event: Event) -> None:
        """It is kept as a whole."""

    # ---- inside

    def _take(self, error: StoreError | None) -> None:
        problem = str(error) if error is not None else ""
        if problem != self._problem:
            self._problem = problem
            self.changed.emit()
