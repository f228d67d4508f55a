"""The process of one download: a child of the worker, so that no byte of it delays a token.

It takes its model's name from the command line, says on stdout how it goes (one DownloadProgress a
line), and ends with the download or when its stdin closes. Ending it at any moment is how a
download is paused: what arrived is on the disk.
"""

from __future__ import annotations

import os
import sys
import threading

from core.errors import DraftlightError
from core.events import DownloadProgress, encode, failure
from core.models.library.download import Download, Meter, standing


def main(model: str) -> int:
    """Download `model`; 0 when it is there, 1 if the last line says why not."""
    threading.Thread(target=_end_with_the_worker, name="reader", daemon=True).start()
    meter = Meter(model)

    def heard(done_bytes: int, total_bytes: int) -> None:
        if progress := meter.take(done_bytes, total_bytes):
            _say(progress)

    try:
        Download(model, heard).run()
    except Exception as error:  # the boundary: whatever went wrong, the window is told
        told = failure(error, command="download_model")
        if not isinstance(error, DraftlightError):
            import traceback

            traceback.print_exc()
        stood = standing(model)
        _say(
            DownloadProgress(
                model,
                "failed",
                stood.done_bytes,
                stood.total_bytes,
                problem=told.message,
                hint=told.hint,
            )
        )
        return 1
    _say(DownloadProgress(model, "done", meter.total_bytes, meter.total_bytes))
    return 0


def _say(progress: DownloadProgress) -> None:
    try:
        sys.stdout.buffer.write(encode(progress))
        sys.stdout.buffer.flush()
    except OSError:
        os._exit(0)  # nobody listens any more


def _end_with_the_worker() -> None:
    while os.read(0, 4096):
        pass
    os._exit(0)
