"""TokenCounter: counts the tokens of texts and images on a separate thread, also during an answer.

Tokenizers of the library `tokenizers` read a text without the interpreter's lock, so an answer is not slowed
down. Other tokenizers are left to the main thread, as are rendered prompts and empty texts: the reply to
`CountTokens("")` says that all earlier commands are done.
"""

from __future__ import annotations

import queue
import threading
import traceback
from collections.abc import Callable
from functools import partial
from typing import Any

from tokenizers import Tokenizer

from core.errors import DraftlightError, RequestError
from core.events import Command, CountTokens, Event, Image, ModelInfo, ReadingPace, TokenCount, failure
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
        self._loaded: tuple[Tokenizer, ModelInfo] | None = None
        self._queue: queue.SimpleQueue[tuple[CountTokens, Tokenizer, ModelInfo] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def use(self, tokenizer: Any, info: ModelInfo | None) -> None:
        """Count with the `tokenizer` of the model `info`; None: without a model. Main thread.

        Call it after the model was reported as loaded, so that a count that is reported later is its own.
        """
        backend = getattr(tokenizer, "backend_tokenizer", None)
        self._loaded = None
        if isinstance(backend, Tokenizer) and info is not None:
            # Otherwise the main thread's first text changes it, which must not coincide with a count.
            backend.no_truncation()
            backend.no_padding()
            self._loaded = backend, info

    def take(self, command: Command) -> bool:
        """Queue `command` if it can be counted here; else return False."""
        loaded = self._loaded
        if loaded is None or not isinstance(command, CountTokens) or command.prompt:
            return False
        if not command.text and command.image is None:
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
            command, tokenizer, info = entry
            try:
                if command.image is not None:
                    self._count_image(command.request, command.image, tokenizer, info)
                else:
                    self._count(command, tokenizer, info.context_tokens)
            except RequestError as refusal:
                self._say(failure(refusal, command="count_tokens", request=command.request))
            except BaseException as error:  # the library panics with an error that is not an `Exception`
                if not isinstance(error, DraftlightError):
                    traceback.print_exc()
                refused = RequestError(
                    f"The model's tokenizer cannot read this text: {str(error)[:200]}.",
                    "Remove unusual lines from the text.",
                )
                self._say(failure(refused, command="count_tokens", request=command.request))

    def _count(self, command: CountTokens, tokenizer: Tokenizer, limit_tokens: int) -> None:
        whole = min(_MOST_CHARACTERS, _CHARACTERS_PER_TOKEN * limit_tokens)
        length = partial(_length, tokenizer)
        tokens, exact = count_tokens(length, well_formed(command.text), limit_tokens, whole)
        self._say(TokenCount(command.request, tokens, self.pace, estimated=not exact))

    def _count_image(self, request: str, image: Image, tokenizer: Tokenizer, info: ModelInfo) -> None:
        from core.vision.eyes import image_tokens  # not without an image

        tokens, scaled = image_tokens(image, info, partial(_length, tokenizer))
        self._say(TokenCount(request, tokens, self.pace, scaled_px=(scaled.width, scaled.height)))


def _length(tokenizer: Tokenizer, text: str) -> int:
    return len(tokenizer.encode_batch_fast([text], add_special_tokens=False)[0])
