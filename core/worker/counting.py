"""TokenCounter: counts the tokens of texts on a separate thread, also during an answer.

Tokenizers of the library `tokenizers` read a text without the interpreter's lock, so an answer is not slowed
down. Other tokenizers are left to the main thread, as are rendered prompts and empty texts: the reply to
`CountTokens("")` says that all earlier commands are done.
"""

from __future__ import annotations

import queue
import threading
import traceback
from collections.abc import Callable
from typing import Any

from tokenizers import Tokenizer

from core.errors import DraftlightError, RequestError
from core.events import Command, CountTokens, Event, ReadingPace, TokenCount, failure
from core.events.wire import well_formed
from core.prompt import count_tokens

# A text up to this length is counted completely if the context could hold it: seconds, and some 200 MB.
_MOST_CHARACTERS = 4_000_000
_CHARACTERS_PER_TOKEN = 8


class TokenCounter:
    """`say` accepts events from any thread. `pace` is sent with each count; the main thread sets it."""

    def __init__(self, say: Callable[[Event], None]) -> None:
        self._say = say
        self.pace: ReadingPace | None = None
        self._loaded: tuple[Tokenizer, int] | None = None
        self._queue: queue.SimpleQueue[tuple[CountTokens, Tokenizer, int] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def use(self, tokenizer: Any, limit_tokens: int) -> None:
        """Count with the `tokenizer` of a model of that context length; None: without a model. Main thread.

        Call it after the model was reported as loaded, so that a count that is reported later is its own.
        """
        backend = getattr(tokenizer, "backend_tokenizer", None)
        self._loaded = None
        if isinstance(backend, Tokenizer):
            # Otherwise the main thread's first text changes it, which must not coincide with a count.
            backend.no_truncation()
            backend.no_padding()
            self._loaded = backend, limit_tokens

    def take(self, command: Command) -> bool:
        """Queue `command` if it can be counted here; else return False."""
        loaded = self._loaded
        if loaded is None or not isinstance(command, CountTokens) or command.prompt or not command.text:
            return False
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="counting", daemon=True)
            self._thread.start()
        self._queue.put((command, *loaded))
        return True

    def close(self) -> None:
        """Wait for the end of the thread."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()

    def _run(self) -> None:
        while (entry := self._queue.get()) is not None:
            command, tokenizer, limit_tokens = entry
            try:
                self._count(command, tokenizer, limit_tokens)
            except BaseException as error:  # the library panics with an error that is not an `Exception`
                if not isinstance(error, DraftlightError):
                    traceback.print_exc()
                refused = RequestError(
                    f"The model's tokenizer cannot read this text: {str(error)[:200]}.",
                    "Remove unusual lines from the text.",
                )
                self._say(failure(refused, command="count_tokens", request=command.request))

    def _count(self, command: CountTokens, tokenizer: Tokenizer, limit_tokens: int) -> None:
        def length(text: str) -> int:
            return len(tokenizer.encode_batch_fast([text], add_special_tokens=False)[0])

        whole = min(_MOST_CHARACTERS, _CHARACTERS_PER_TOKEN * limit_tokens)
        tokens, exact = count_tokens(length, well_formed(command.text), limit_tokens, whole)
        self._say(TokenCount(command.request, tokens, self.pace, estimated=not exact))
