"""App: what the controllers of one window share."""

from __future__ import annotations

from collections.abc import Callable

from app.controllers.context_meter import ContextMeter
from app.controllers.link import WorkerLink
from app.controllers.views import Views
from app.controllers.worker import TroubleController
from app.session.chats.chats import Chats
from app.session.turn.link_state import Link
from app.session.turn.turn import Input
from app.store.library import Home
from app.store.preferences import PreferencesFile
from core.errors import RequestError


class App:
    """The widgets, the stored data and the worker of one window.

    `link` is the worker's state after the last step of the state machine, which `handle` steps.
    """

    chats: Chats  # set once the controllers that erase with them exist

    def __init__(
        self, views: Views, home: Home, worker: WorkerLink, link: Link, handle: Callable[[Input], None]
    ) -> None:
        self.views = views
        self.home = home
        self.worker = worker
        self.link = link
        self.handle = handle
        self.meter = ContextMeter(views, worker)
        self.trouble = TroubleController(views.banner, self.meter)

    def report(self, error: RequestError) -> None:
        """Show why a request about the chats cannot be fulfilled."""
        self.trouble.show_request_error(error, "chats")

    @property
    def preferences(self) -> PreferencesFile:
        return self.home.preferences
