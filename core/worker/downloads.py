"""Downloads: child processes that download models. A download is paused by ending its process. Any thread.

Invariant: each download reports `running` first and exactly one of done, paused, failed and cancelled last,
from one thread at a time.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence

from core.errors import DraftlightError, ProtocolError
from core.events import DownloadProgress, DownloadState, decode_event, encode, failure
from core.models.download import Download, Meter, discard, partial_progress, unfinished
from core.system.children import CHILD_FOLDER, child_command, child_environment

_GRACE_S = 0.5


class _Child:
    """One process and the thread that reads its output."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.thread: threading.Thread | None = None
        self.asked: DownloadState | None = None
        self.last: DownloadProgress | None = None


class Downloads:
    """Runs downloads. `say` receives progress; `changed` is called when a model was downloaded or a download
    removed.
    """

    def __init__(
        self,
        say: Callable[[DownloadProgress], None],
        changed: Callable[[], None],
        command: Sequence[str] | None = None,
    ) -> None:
        self._say = say
        self._changed = changed
        self._command = list(command or child_command("--download"))
        self._lock = threading.Lock()
        self._children: dict[str, _Child] = {}
        self._failed: dict[str, DownloadProgress] = {}
        self._closing = False

    def start(self, model: str) -> None:
        """Starts or resumes a download; no effect if it is running."""
        with self._lock:
            if model in self._children or self._closing:
                return
            self._failed.pop(model, None)
            partial = partial_progress(model)
            self._say(DownloadProgress(model, "running", partial.done_bytes, partial.total_bytes))
            try:
                process = subprocess.Popen(
                    [*self._command, model],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    env=child_environment(),
                    cwd=CHILD_FOLDER,
                )
            except OSError as error:
                self._say(DownloadProgress(model, "failed", problem=f"Cannot start the download: {error}."))
                return
            child = self._children[model] = _Child(process)
            child.thread = threading.Thread(
                target=self._listen, args=(model, child), name=f"download of {model}", daemon=True
            )
            child.thread.start()

    def pause(self, model: str) -> None:
        """Ends the process and keeps the partial files."""
        self._end(model, "paused")

    def cancel(self, model: str) -> None:
        """Ends the process, if any, and removes the partial files. Raises `DownloadError`."""
        if not self._end(model, "cancelled"):
            discard(model)
            self._failed.pop(model, None)
            self._say(DownloadProgress(model, "cancelled"))
            self._changed()

    def states(self) -> tuple[DownloadProgress, ...]:
        """All unfinished downloads by name."""
        with self._lock:
            found = dict(self._failed)
            for each in unfinished():
                found.setdefault(
                    each.model, DownloadProgress(each.model, "paused", each.done_bytes, each.total_bytes)
                )
            for model, child in self._children.items():
                found[model] = child.last or DownloadProgress(model, "running")
        return tuple(found[model] for model in sorted(found))

    def close(self) -> None:
        """Pauses all downloads and waits for the end of their processes."""
        with self._lock:
            self._closing = True
            running = list(self._children)
        for model in running:
            self._end(model, "paused")

    def _end(self, model: str, how: DownloadState) -> bool:
        """Ends the process and waits until its end was reported. Returns False if there was none."""
        with self._lock:
            child = self._children.get(model)
            if child is None:
                return False
            child.asked = how
            child.process.terminate()
        try:
            child.process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            child.process.kill()
        if child.thread:
            child.thread.join()
        return True

    # ---- the listening thread of one child

    def _listen(self, model: str, child: _Child) -> None:
        process = child.process
        assert process.stdout
        assert process.stdin
        for line in process.stdout:
            try:
                event = decode_event(line)
            except ProtocolError:
                continue
            if isinstance(event, DownloadProgress):
                child.last = event
                if event.state == "running":
                    self._say(event)
        process.wait()
        process.stdout.close()
        process.stdin.close()
        last = self._end_of(model, child)
        with self._lock:
            del self._children[model]
            if last.state == "failed":
                self._failed[model] = last
        self._say(last)
        self._changed()

    def _end_of(self, model: str, child: _Child) -> DownloadProgress:
        """The last report. A download that completed before it was paused is done."""
        if child.last and child.last.state == "done":
            return child.last
        partial = partial_progress(model)
        if child.asked == "cancelled":
            try:
                discard(model)
            except DraftlightError as error:
                return DownloadProgress(
                    model,
                    "failed",
                    partial.done_bytes,
                    partial.total_bytes,
                    problem=error.message,
                    hint=error.hint,
                )
            return DownloadProgress(model, "cancelled")
        if child.asked == "paused":
            return DownloadProgress(model, "paused", partial.done_bytes, partial.total_bytes)
        if child.last and child.last.state == "failed":
            return child.last
        return DownloadProgress(
            model,
            "failed",
            partial.done_bytes,
            partial.total_bytes,
            problem=f"The download's process ended with status {child.process.returncode}.",
            hint="Partial files are kept; resume to try again.",
        )


# ---- the process of one download, a child of the worker, so that downloads do not delay tokens
#
# Gets the model's name on the command line, writes one DownloadProgress per line to stdout, and ends with the
# download or when its stdin is closed. Killing it pauses the download: partial files are on disk.


def main(model: str) -> int:
    """Downloads `model`. Exit status 0 if it is complete, 1 if the last line reports a failure."""
    threading.Thread(target=_end_with_the_worker, name="reader", daemon=True).start()
    meter = Meter(model)

    def heard(done_bytes: int, total_bytes: int) -> None:
        if progress := meter.take(done_bytes, total_bytes):
            _say(progress)

    try:
        Download(model, heard).run()
    except Exception as error:  # boundary: every error is reported to the window
        failed = failure(error, command="download_model")
        if not isinstance(error, DraftlightError):
            import traceback

            traceback.print_exc()
        partial = partial_progress(model)
        _say(
            DownloadProgress(
                model,
                "failed",
                partial.done_bytes,
                partial.total_bytes,
                problem=failed.message,
                hint=failed.hint,
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
        os._exit(0)  # the worker has closed the pipe


def _end_with_the_worker() -> None:
    while os.read(0, 4096):
        pass
    os._exit(0)
