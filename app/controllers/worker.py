"""WorkerController: the worker's status, load progress, memory and counts, as the window shows them."""

from __future__ import annotations

from app.controllers import strings
from app.controllers.chat.context_meter import ContextMeter
from app.controllers.views import Views
from app.session.status import Status, recognised, status_of
from app.session.turn import effects as fx
from app.session.turn.link_state import Link, Phase
from core.events import Heartbeat, MachineFigures


class WorkerController:
    """Call `show()` whenever the link, the settings or the open chat changed."""

    def __init__(self, views: Views, meter: ContextMeter) -> None:
        self._views = views
        self._meter = meter
        self._shown: Status | None = None
        self._memory = (0, 0)

    def on_load_started(self, effect: fx.LoadStarted) -> None:
        """Show the progress of a load."""
        self._views.first_page.set_loading(effect.stage, effect.fraction)

    def on_model_ready(self, effect: fx.ModelReady) -> None:
        info = effect.info
        self._meter.set_model(info)
        self._views.first_page.set_model_name(info.name)
        self._views.first_page.set_ready()
        self._views.inspector.set_model(info)
        self._views.strip.set_family(recognised(info.family_name))
        self._views.strip.set_machines(())

    def on_model_gone(self, effect: fx.ModelGone) -> None:
        self._views.inspector.set_model(None)
        self._views.strip.set_machines(())

    def on_machines(self, figures: MachineFigures) -> None:
        """Show the part of each machine and its time per step."""
        self._views.strip.set_machines(figures.machines)

    def on_counted(self, effect: fx.Counted) -> None:
        """Store counts of the composer's texts."""
        self._meter.take_count(effect.request, effect.tokens, effect.dense_s)

    def on_heartbeat(self, heartbeat: Heartbeat) -> None:
        """Show the worker's memory."""
        self._memory = (heartbeat.memory_bytes, heartbeat.memory_limit_bytes)
        self._views.strip.set_memory(*self._memory)
        self._show_worker()

    def on_worker_gone(self, effect: fx.RestartWorker | fx.WorkerDied) -> None:
        """Clear the worker's pending counts and memory."""
        self._meter.forget()
        self._memory = (0, self._memory[1])

    def show(
        self, link: Link, answering_elsewhere: str, racing: bool = False, served_client: str = ""
    ) -> None:
        """Show the status; `served_client` is the client of the local server being answered."""
        self._meter.set_idle(link.phase is Phase.READY and not link.served)
        status = status_of(
            link,
            self._views.inspector.settings,
            answering_elsewhere=answering_elsewhere,
            racing=racing,
            served_client=served_client,
        )
        self._shown = status
        composer = self._views.composer
        if status.composer == "idle":
            composer.set_idle()
        elif status.composer == "busy":
            composer.set_busy()
        else:
            composer.set_blocked(status.reason)
        composer.think.show_choice(
            link.info is not None and link.info.thinks, self._views.inspector.settings.chat.thinking
        )
        self._views.show_hint(composer.blocked_reason or status.hint)
        self._views.transcript.set_regenerable(status.composer == "idle")
        self._views.header.set_subtitle(status.subtitle)
        self._views.strip.set_stale(status.stale)
        self._views.inspector.set_footer(strings.AFTER_RESTART if status.stale else strings.NEXT_ANSWER)
        self._show_worker()

    def _show_worker(self) -> None:
        if self._shown is None:
            return
        used_bytes, limit_bytes = self._memory
        detail = strings.worker_detail(self._shown.worker_state, used_bytes, limit_bytes)
        self._views.sidebar.set_worker(self._shown.worker_title, detail, self._shown.level)
