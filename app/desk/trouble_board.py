"""TroubleBoard: what went wrong, on the banner or in the log."""

from __future__ import annotations

import logging

from msgspec.structs import replace

from app.chat.banner import Banner
from app.session import effects as fx
from app.session.trouble import of_death, of_failed_load, of_failure, of_silence, of_tables, of_unreadable
from core.errors import RequestError
from core.events import failure

_LOG = logging.getLogger("draftlight.window")


class TroubleBoard:
    """Words come from `session.trouble`; a failed answer is shown by the answering room."""

    def __init__(self, banner: Banner) -> None:
        self._banner = banner

    def carry_out(self, effect: fx.Effect) -> bool:
        """Whether `effect` was a trouble; if so it is shown."""
        banner = self._banner
        match effect:
            case fx.LoadFailed(failed, kept):
                banner.show_trouble(of_failed_load(failed, kept))
            case fx.TroubleHeard(failed):
                banner.show_trouble(of_failure(failed))
            case fx.TablesWarned(status):
                banner.show_trouble(of_tables(status))
            case fx.WorkerDied():
                banner.show_trouble(of_death(effect))
            case fx.WorkerStuck():
                banner.show_trouble(of_silence(effect))
            case fx.SilenceBroken():
                if banner.trouble and banner.trouble.passes:
                    banner.clear()
            case fx.WorkerMistake(message):
                _LOG.warning("The worker broke the protocol: %s", message)
                if banner.trouble is None:
                    banner.show_trouble(of_unreadable(message))
            case fx.WindowMistake(message):
                _LOG.error("The window broke the protocol: %s", message)
            case _:
                return False
        return True

    def show_request_error(self, error: RequestError, command: str) -> None:
        """Something that a person asked of the window and that cannot be done."""
        trouble = of_failure(failure(error, command=command))
        self._banner.show_trouble(replace(trouble, stays=True))
