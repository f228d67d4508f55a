"""The process that reads one document, and its bounds.

It writes JSON lines to stdout: progress, and last the text or the refusal. It ends when its stdin closes, so
that it does not outlive its parent. It imports little, because every document waits for that.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from core.documents import strings
from core.documents.reading import document_text, shown_name
from core.documents.text import Guess
from core.errors import RequestError
from core.system.child_bounds import bound, give_spare_memory, watch

_TELL_EVERY_S = 0.05
_STACK_BYTES = 256 * 1024


def main(arguments: Sequence[str]) -> int:
    """Read the file that `arguments` name: path, bytes of memory, seconds of processor, characters, codec.

    The codec may be left out. Returns 0 if there is a text, 1 if the last line says why not.
    """
    path, (memory_bytes, cpu_s, characters) = Path(arguments[0]), map(int, arguments[1:4])
    guesses: list[Guess] = []
    lines = Lines(path)
    # Words of a page are many objects without cycles; the collector would go through them again and again.
    gc.set_threshold(50_000)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.stack_size(_STACK_BYTES)
    threading.Thread(target=_end_with_the_starter, name="starter", daemon=True).start()
    watch(memory_bytes, lambda: lines.out_of_memory(memory_bytes))
    bound(memory_bytes, cpu_s)
    try:
        text = document_text(path, lines.tell, characters, guesses.append, "".join(arguments[4:5]))
        lines.write({"text": text, "guess": guesses[0] if guesses else None})
    except RequestError as error:
        lines.refuse(error)
        return 1
    except MemoryError:
        give_spare_memory()
        lines.out_of_memory(memory_bytes)
    except Exception as error:  # process boundary: every error becomes a refusal
        import traceback

        traceback.print_exc()
        why = strings.file_unreadable(shown_name(path), type(error).__name__)
        lines.refuse(RequestError(why, strings.CHECK_FILE))
        return 1
    return 0


class Lines:
    """Writes JSON lines to stdout, which is redirected before a library could write there."""

    def __init__(self, path: Path) -> None:
        self._name = shown_name(path)
        self._lock = threading.Lock()
        self._told_at = 0.0
        self._out = os.dup(1)
        os.dup2(2, 1)

    def tell(self, done: int, total: int, unit: str) -> None:
        """Write the progress, at most every `_TELL_EVERY_S`."""
        now = time.monotonic()
        if now >= self._told_at + _TELL_EVERY_S:
            self._told_at = now
            self.write({"done": done, "total": total, "unit": unit})

    def refuse(self, error: RequestError) -> None:
        """Write the refusal."""
        self.write({"refused": error.message, "hint": error.hint})

    def out_of_memory(self, memory_bytes: int) -> None:
        """Write that the memory limit was reached, and exit."""
        self.refuse(RequestError(strings.file_needs_memory(self._name, memory_bytes), strings.PASTE_PART))
        os._exit(1)

    def write(self, line: dict[str, object]) -> None:
        """One line."""
        data = memoryview(json.dumps(line, ensure_ascii=False).encode() + b"\n")
        with self._lock:
            try:
                while data:
                    data = data[os.write(self._out, data) :]
            except OSError:
                os._exit(0)  # the parent has closed the pipe


def _end_with_the_starter() -> None:
    while os.read(0, 4096):
        pass
    os._exit(0)
