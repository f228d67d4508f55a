"""The worker's status, load progress, memory and counts in the window, and failures in banner and log."""

from __future__ import annotations

import logging

from msgspec.structs import replace

from app.chat import strings as texts
from app.chat.bars import Banner
from app.chat.first_page import Lead
from app.controllers import strings
from app.controllers.context_meter import ContextMeter
from app.controllers.views import Views
from app.session.status import Status, recognised, status_of
from app.session.strings import LOADS_AGAIN, model_name
from app.session.trouble import (
    Trouble,
    Troubles,
    Until,
    of_death,
    of_failed_load,
    of_failure,
    of_silence,
    of_tables,
    of_unreadable,
)
from app.session.turn import effects as fx
from app.session.turn.link_state import Link, Phase
from core.errors import RequestError
from core.events import Failed, Heartbeat, TableStatus, Token, failure
from core.settings import Settings


class WorkerController:
    """Call `show()` whenever the link, the settings or the open chat changed."""

    def __init__(self, views: Views, meter: ContextMeter) -> None:
        self._views = views
        self._meter = meter
        self._shown: Status | None = None
        self._memory = (0, 0)
        self._load: tuple[str, float | None] = ("", None)  # stage and fraction

    def on_load_started(self, effect: fx.LoadStarted) -> None:
        self._load = (effect.stage, effect.fraction)
        self._views.first_page.show_state(self._loading(effect.model))  # the link may be the same

    def on_model_ready(self, effect: fx.ModelReady) -> None:
        info = effect.info
        self._meter.set_model(info)
        self._views.inspector.set_model(info)
        self._views.strip.set_family(recognised(info.family_name))

    def on_model_gone(self, effect: fx.ModelGone) -> None:
        self._views.inspector.set_model(None)

    def on_heartbeat(self, heartbeat: Heartbeat) -> None:
        self._memory = (heartbeat.memory_bytes, heartbeat.memory_limit_bytes)
        self._views.strip.set_memory(*self._memory)
        self._show_worker()

    def on_worker_gone(self, effect: fx.RestartWorker | fx.WorkerDied) -> None:
        self._meter.forget()
        self._memory = (0, self._memory[1])
        self._load = ("", None)

    def show(
        self,
        link: Link,
        answering_elsewhere: str,
        racing: bool = False,
        served_client: str = "",
        running: Settings | None = None,
    ) -> Status:
        """Show the status and return it; `served_client` is the client of the local server being answered,
        `running` the settings of the running answer of the open chat.
        """
        idle = link.phase is Phase.READY and not link.serving
        self._meter.set_worker(has_model=link.connected and link.info is not None, idle=idle)
        status = status_of(
            link,
            running or self._views.inspector.settings,
            answering_elsewhere=answering_elsewhere,
            racing=racing,
            served_client=served_client,
        )
        self._shown = status
        composer = self._views.composer
        composer.set_state(status.composer, status.reason)
        mode, info = self._views.inspector.settings.chat.thinking, link.info
        thinks = mode == "on" or (mode == "auto" and info is not None and info.thinks_by_default)
        composer.think.show_choice(info is not None and info.thinks, thinks)
        self._views.show_hint(composer.blocked_reason or status.hint)
        self._views.header.set_subtitle(status.subtitle)
        self._views.first_page.show_state(self._lead(link, status))
        self._views.strip.set_stale(status.stale)
        self._views.inspector.set_footer(strings.AFTER_RESTART if status.stale else strings.NEXT_ANSWER)
        self._show_worker()
        return status

    def _loading(self, model: str) -> Lead:
        return Lead(texts.GETTING_READY.format(model=model_name(model)), *self._load)

    def _lead(self, link: Link, status: Status) -> Lead:
        """The top of the page of an empty chat: the state of the model."""
        if link.loading or link.phase is Phase.STARTING:
            return self._loading(link.model)
        if link.info is None or link.phase is Phase.DEAD:
            return Lead(texts.STOPPED if link.phase is Phase.DEAD else texts.NOT_LOADED, status.reason)
        form = texts.UNLOADED if link.released and not link.works else texts.READY
        name = link.info.name[:1].upper() + link.info.name[1:]
        return Lead(form.format(model=name), LOADS_AGAIN if form == texts.UNLOADED else texts.RUNS_HERE)

    def _show_worker(self) -> None:
        if self._shown is None:
            return
        used_bytes, limit_bytes = self._memory
        detail = strings.worker_detail(self._shown.worker_state, used_bytes, limit_bytes)
        self._views.sidebar.set_worker(self._shown.worker_title, detail, self._shown.level)


_LOG = logging.getLogger("draftlight.window")


class TroubleController:
    """The only access to the banner: controllers report problems here, and their end.

    The texts are in `app.session.trouble`.
    """

    def __init__(self, banner: Banner, meter: ContextMeter) -> None:
        self._banner = banner
        self._meter = meter
        self._troubles = Troubles()
        # The answer that the worker's death interrupts: its tokens (None: no answer) and its chat.
        self._lost: tuple[int | None, str] = (None, "")
        banner.dismissed.connect(lambda: self.withdraw(self._troubles.shown))
        banner.next_requested.connect(lambda: self._show_first(self._troubles.next()))

    def show(self, trouble: Trouble) -> None:
        self._show_first(self._troubles.with_new(trouble))

    def withdraw(self, trouble: Trouble | None) -> None:
        self._show_first(self._troubles.without(trouble))

    def end(self, happened: Until, chat: str = "") -> None:
        """Remove everything that lasts at most until this event, which may concern only one chat."""
        self._show_first(self._troubles.after(happened, chat))

    def show_chat(self, chat_id: str) -> None:
        """Another chat is in view: show its troubles and those of all chats."""
        self._show_first(self._troubles.in_view(chat_id))

    # ---- events

    def on_model_ready(self, effect: fx.ModelReady) -> None:
        """A model is loaded."""
        self.end(Until.READY)

    def on_load_failed(self, effect: fx.LoadFailed) -> None:
        """No model is loaded, and why."""
        self.show(of_failed_load(effect.failed, effect.kept, effect.model))

    def on_trouble(self, effect: fx.TroubleHeard) -> None:
        self.show(of_failure(effect.failed))

    def on_table_status(self, status: TableStatus) -> None:
        """The tables, perhaps with a warning."""
        if status.notes:
            self.show(of_tables(status))

    def on_restart(self, effect: fx.RestartWorker) -> None:
        self._lost = (None, "")  # already reported
        self.end(Until.READY)

    def on_worker_died(self, effect: fx.WorkerDied) -> None:
        self.end(Until.MOVES)
        (written_tokens, chat_id), self._lost = self._lost, (None, "")
        self.show(of_death(effect, written_tokens, self._context_tokens(chat_id), chat_id))

    def on_worker_stuck(self, effect: fx.WorkerStuck) -> None:
        self.show(of_silence(effect))

    def on_silence_broken(self, effect: fx.SilenceBroken) -> None:
        self.end(Until.MOVES)

    def on_worker_mistake(self, effect: fx.WorkerMistake) -> None:
        """A bug in the worker or a broken pipe; shown unless there is another trouble."""
        _LOG.warning("The worker broke the protocol: %s", effect.message)
        if not self._troubles.held:
            self.show(of_unreadable(effect.message))

    def on_window_mistake(self, effect: fx.WindowMistake) -> None:
        """Our bug; logged."""
        _LOG.error("The window broke the protocol: %s", effect.message)

    # ---- reports of other controllers

    def answer_lost(self, written_tokens: int, chat_id: str = "") -> None:
        """The worker died during an answer, of this chat or of a race."""
        self._lost = (written_tokens, chat_id)

    def token_misplaced(self, token: Token, received: int) -> None:
        """A token does not follow the `received` ones of its answer; it is dropped."""
        where = f"Token has position {token.position} where {received} comes next."
        self.on_worker_mistake(fx.WorkerMistake(where))

    def show_failure(self, failed: Failed, chat_id: str, *, text_is_back: bool) -> None:
        """An answer of a chat failed; `text_is_back`: the question is back in the composer."""
        context_tokens = self._context_tokens(chat_id)
        self.show(of_failure(failed, text_is_back=text_is_back, context_tokens=context_tokens, chat=chat_id))

    def show_request_error(self, error: RequestError, command: str) -> Trouble:
        """A request of a person that cannot be fulfilled. Returns the trouble shown."""
        chat = self._troubles.chat if command == "attach" else ""
        trouble = replace(of_failure(failure(error, command=command), chat=chat), until=Until.ASKED)
        self.show(trouble)
        return trouble

    def _context_tokens(self, chat_id: str) -> int:
        """The context of an answer in this chat; 0 if it is not in view, since the meter's is another one."""
        return self._meter.limit_tokens if chat_id in ("", self._troubles.chat) else 0

    def _show_first(self, troubles: Troubles) -> None:
        before, self._troubles = self._troubles, troubles
        shown, count = troubles.shown, len(troubles.visible)
        if shown is None:
            self._banner.clear()
            return
        if shown.smaller_in not in ("", troubles.chat):
            shown = replace(shown, smaller_tokens=0)
        same = (before.shown, before.at, len(before.visible)) == (troubles.shown, troubles.at, count)
        if not same or shown != self._banner.trouble:
            self._banner.show_trouble(shown, troubles.at + 1, count)
