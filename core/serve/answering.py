"""Answering: an answer's events to one client, streaming or in one piece, in the shape of any API.

What is refused before anything was sent gets its own status. While others are answered or a prompt is
read, comments keep the line alive and say how far it is.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Protocol

from msgspec import Struct
from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from core.errors import NoModelError
from core.events import Failed, Finished, Generate, ModelInfo, PrefillProgress, Token
from core.serve.answers.answer import (
    MODEL_WAIT_S,
    NO_MODEL,
    NO_MODEL_HINT,
    Answer,
    Answers,
    ClientGoneError,
    Happening,
    Waiting,
)
from core.serve.errors import ApiError, FieldNames, of_failure
from core.serve.fields import with_own_system_message
from core.serve.http.responses import EventLine, comment, send_json, watched
from core.serve.http.security import Doors
from core.serve.sampling import Sampling
from core.settings import Settings

# Proxies give up after 30 to 60 s without a byte, and people sooner. A call may be written for a minute.
_QUIET_S = 5.0
_CLIENT_CHARACTERS = 60


class Serving(Struct, frozen=True):
    """What is served, and to whom.

    `base`: the settings of a request that says nothing about them, asked for each. `metrics`: whether
    figures are told at `/metrics`. `strict`: what the server would leave out of a request and name in
    `draftlight.changes` is refused, other names than the loaded model's among it.
    """

    doors: Doors = Doors()
    port: int = 8317
    metrics: bool = False
    base: Callable[[], Settings] = Settings
    strict: bool = False

    def accepted(self, asked: Sampling, generate: Generate) -> Generate:
        """`generate`, the command of the request `asked`. Raises `ApiError` 400 if it is `strict`."""
        if self.strict:
            asked.check_strictly()
        return generate


class Writer(Protocol):
    """The shape of one API's answers. Bytes are whole events; empty ones are not sent."""

    # Codes of errors that are told in a stream although nothing was sent before: its clients read them there.
    streamed_errors: ClassVar[frozenset[str]]

    @property
    def names(self) -> FieldNames:
        """What the request's fields are called."""
        ...

    def opening(self) -> bytes:
        """Before the first token."""
        ...

    def written(self, tokens: Sequence[Token]) -> bytes:
        """Of one or more tokens that came together."""
        ...

    def finished(self, finished: Finished) -> bytes:
        """The end."""
        ...

    def failed(self, error: ApiError) -> bytes:
        """The end, where something went wrong after the opening."""
        ...

    def whole(self, tokens: Sequence[Token], finished: Finished) -> dict[str, Any]:
        """All of it in one piece."""
        ...


def new_id(kind: str, joint: str = "-") -> str:
    """An id that nobody guesses: whoever knows one can cancel it."""
    return f"{kind}{joint}{secrets.token_hex(14)}"


def client_name(scope: Scope) -> str:
    """What a client calls itself: the first word of its user agent, without anything unprintable."""
    agent = Headers(scope=scope).get("user-agent", "")
    name = "".join(letter for letter in agent if letter.isprintable()).strip()[:_CLIENT_CHARACTERS]
    return name or "Unknown client"


async def loaded_model(answers: Answers, receive: Receive) -> ModelInfo:
    """The model that will answer; while one is being loaded, the one that comes. The body was read.

    Raises `NoModelError`, `ClientGoneError`.
    """
    gate = answers.gate
    if gate.state == "starting":
        news = asyncio.Event()
        gone = False

        def leave() -> None:
            nonlocal gone
            gone = True
            news.set()

        stop_listening = gate.listen(news.set)
        gate.want()
        try:
            async with watched(receive, leave), asyncio.timeout(MODEL_WAIT_S):
                while gate.state == "starting" and not gone:
                    news.clear()
                    await news.wait()
        except TimeoutError:
            pass
        finally:
            stop_listening()
        if gone:
            raise ClientGoneError
    if gate.model is None:
        raise NoModelError(NO_MODEL, NO_MODEL_HINT)
    return gate.model


def commented(happening: Happening | None) -> bytes:
    """A comment that says how far it is; nothing has happened yet at None."""
    match happening:
        case Waiting(position):
            return comment(f"waiting {position}" if position else "loading model")
        case PrefillProgress() as reading:
            done = reading.scored_tokens if reading.phase == "scoring" else reading.done_tokens
            return comment(f"keepalive {done}/{reading.total_tokens}")
        case None:
            return comment("waiting")
        case _:
            return comment("writing")


async def answer_with(
    answers: Answers,
    generate: Generate,
    writer: Writer,
    streams: bool,
    scope: Scope,
    receive: Receive,
    send: Send,
    alive: Callable[[Happening | None], bytes] = commented,
) -> None:
    """Ask, and answer. The body was read. Raises `ApiError` before anything was sent, `ClientGoneError`.

    `alive` makes what keeps a stream's line alive. It gets every `PrefillProgress` that stands last; what
    it makes of a `Waiting` may not be sent.
    """
    generate = with_own_system_message(generate)
    scope["draftlight.begun"] = True  # from here on its record says what becomes of it
    answer = answers.begin(generate, path=scope["path"], client=client_name(scope), streams=streams)
    # OpenAI's name of it, and Anthropic's.
    headers = {"x-request-id": generate.request, "request-id": generate.request}
    try:
        async with watched(receive, answer.leave):
            if streams:
                await _stream(answer, writer, headers, send, alive)
            else:
                await _whole(answer, writer, headers, send)
    finally:
        answers.done(answer)


async def _whole(answer: Answer, writer: Writer, headers: Mapping[str, str], send: Send) -> None:
    tokens: list[Token] = []
    while True:
        for happening in await answer.next(_QUIET_S):
            match happening:
                case Token():
                    tokens.append(happening)
                case Finished():
                    await send_json(send, writer.whole(tokens, happening), headers=headers)
                    return
                case Failed():
                    raise of_failure(happening, writer.names)
                case _:
                    pass


async def _stream(
    answer: Answer,
    writer: Writer,
    headers: Mapping[str, str],
    send: Send,
    alive: Callable[[Happening | None], bytes],
) -> None:
    line = EventLine(send, headers)
    last: Happening | None = None
    opened = False
    sent_s = time.monotonic()
    while True:
        happened = await answer.next(max(0.0, sent_s + _QUIET_S - time.monotonic()))
        failed = next((one for one in happened if isinstance(one, Failed)), None)
        error = of_failure(failed, writer.names) if failed is not None else None
        if error is not None and not line.is_open and error.code not in writer.streamed_errors:
            raise error
        tokens = [one for one in happened if isinstance(one, Token)]
        finished = next((one for one in happened if isinstance(one, Finished)), None)
        moved = next((one for one in reversed(happened) if isinstance(one, Waiting | PrefillProgress)), None)
        last = tokens[-1] if tokens else moved or last
        out = alive(last) if moved is not None or not happened else b""
        if tokens or finished is not None:
            if not opened:
                opened = True
                out += writer.opening()
            out += writer.written(tokens) if tokens else b""
        if finished is not None:
            out += writer.finished(finished)
        elif not out and time.monotonic() - sent_s >= _QUIET_S:
            out = alive(last)  # tokens came that say nothing yet
        if error is not None:
            out += writer.failed(error)
        # A place in the queue is no promise yet: what is refused when its turn comes gets its status.
        if out and (line.is_open or not _only_waits(happened)):
            await line.write(out)
            sent_s = time.monotonic()
        if finished is not None or error is not None:
            await line.close()
            return


def _only_waits(happened: Sequence[Happening]) -> bool:
    return bool(happened) and all(isinstance(one, Waiting) for one in happened)
