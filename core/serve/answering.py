"""Answering: an answer's events to one client, streaming or whole, in the shape of any API; its figures.

An error before anything was sent has its own status. While a streaming request waits or its prompt is read,
comments keep the connection alive and report progress. A whole answer has nothing before its end, because its
status may still become an error's: a proxy with a limit may give up on it.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, ClassVar, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from core.errors import DraftlightError, NoModelError, RequestError, reason_of
from core.events import (
    Change,
    CountTokens,
    Event,
    Failed,
    Finished,
    Generate,
    ModelEntry,
    ModelInfo,
    PrefillProgress,
    Queued,
    Stats,
    Token,
    TokenCount,
    api_id,
)
from core.prefill.forecast import display
from core.serve.annotations import Annotations
from core.serve.fields import change
from core.serve.http import (
    NO_FIELDS,
    ApiError,
    EventLine,
    FieldNames,
    api_error,
    comment,
    event,
    field_error,
    read_fields,
    send_json,
    watched,
    without_paths,
)
from core.serve.images import ImageFiles
from core.serve.queue import (
    MODEL_WAIT_S,
    NO_MODEL,
    NO_MODEL_HINT,
    Answers,
    ClientGoneError,
    InstalledModels,
    ServedAnswer,
    is_called,
)
from core.serve.request import AnswerRequest
from core.serve.security import AccessPolicy
from core.serve.served_requests import ServedRequest
from core.settings import Settings, assign
from core.settings.window import Server
from core.tools.calls import CallRules, Written

# Most seconds without data in a stream. Proxies give up after 30 to 60 s; a call may take a minute.
_QUIET_S = 5.0
_CLIENT_CHARACTERS = 60
# Timeout for finding a vision model's name. A worker that writes an answer may list its models late.
_LIST_S = 2.0
_SEEING_FAMILIES = "Qwen3.5, 3.6, 3.8, Gemma 3 or Gemma 4"


class Prepared(Struct, frozen=True):
    """A request prepared for a model.

    `model`: the name to answer under; `rules`: how the answer's calls are read; `changes`: parts of the
    request that the answer does not honour.
    """

    generate: Generate
    model: str
    rules: CallRules = CallRules()
    changes: tuple[Change, ...] = ()


class Serving(Struct, frozen=True):
    """Configuration of the server: access, port, and the settings of requests.

    `base` returns the default settings of a request; it is called for each one. `strict`: refuse requests of
    which something would be left out and named in `draftlight.changes`, other model names included.
    `longest_answer`: maximum length in tokens of an answer whose request sets none. `installed`: requests
    load the model that they name; None: they do not. `listed` returns the models on this machine, to name one
    that sees; it is awaited on the loop.
    """

    doors: AccessPolicy = AccessPolicy()
    port: int = 8317
    base: Callable[[], Settings] = Settings
    strict: bool = False
    longest_answer: int = Server().longest_answer
    installed: InstalledModels | None = None
    listed: Callable[[], Awaitable[Sequence[ModelEntry]]] | None = None

    def prepared(self, asked: AnswerRequest, request: str, model: ModelInfo) -> Prepared:
        """The request `asked` to `model`, with the id `request`.

        Raises `ApiError` 400, and 404 for another model's name if the server is `strict`. Otherwise that is
        a change: clients have names of their vendor's models fixed in them (`claude-…`, `gpt-…`).
        """
        most_tokens = min(self.longest_answer, model.context_tokens)
        is_meant = is_called(model, asked.model)
        if self.strict and not is_meant:
            raise not_here(asked.model, model)
        generate, changes = asked.generate(request, self.base(), model, most_tokens)
        if self.strict and changes:  # the answer would not honour a part of the request
            first = changes[0]
            why = f"“{first.setting}” is not supported: {first.reason}."
            raise field_error(first.setting, why, "unsupported_parameter")
        if not is_meant:
            reason = "one model is loaded, and it answers whatever name is sent"
            changes.insert(0, change("model", asked.model, api_id(model), reason))
        if any(message.role == "system" for message in generate.messages):  # in place of the settings' own
            generate = replace(generate, settings=assign(generate.settings, "chat.system_prompt", ""))
        if self.installed is not None:  # another request may load another model before this one's turn
            generate = replace(generate, model=model.reference)
        return Prepared(generate, api_id(model), asked.tool_use.rules(model), tuple(changes))

    async def other_model(self, wanted: str, loaded: ModelInfo | None) -> str:
        """The reference of the installed model that `wanted` names; empty for the `loaded` one."""
        return "" if self.installed is None else await self.installed.other(wanted, loaded)

    async def seeing(self) -> str:
        """Advice for requests with images: the smallest vision model on this machine, or families of them."""
        try:
            async with asyncio.timeout(_LIST_S):
                entries = await self.listed() if self.listed is not None else ()
        except (TimeoutError, DraftlightError):
            entries = ()
        found = sorted(
            (each for each in entries if each.sees and not each.problem), key=lambda each: each.disk_bytes
        )
        if not found:
            return f"Load a vision model ({_SEEING_FAMILIES}), or send only text."
        name = api_id(found[0])
        how = f"Send “{name}” as “model”" if self.installed is not None else f"Load “{name}”"
        return f"{how}, which supports images, or send only text."


class AnswerWriter(ABC):
    """Writes one answer in the shape of its API. Bytes are whole events; empty ones are not sent."""

    # Codes of errors that are sent as a stream's events even before anything else: clients read them there.
    streamed_errors: ClassVar[frozenset[str]] = frozenset()
    # Whether texts of the API have OpenAI's annotations.
    annotates: ClassVar[bool] = False

    def __init__(self, asked: AnswerRequest, made: Prepared) -> None:
        self._asked = asked
        self._changes = made.changes
        self._written = Written(made.rules)
        # None unless the request has documents and asks for annotations.
        self.annotations: Annotations | None = None
        if asked.draftlight.annotations and not self.annotates:
            reason = "texts of this API have no annotations"
            self._changes += (change("draftlight.annotations", True, "left out", reason),)
        elif asked.draftlight.annotations and any(each.attachments for each in made.generate.messages):
            self.annotations = Annotations(made.generate)

    @property
    def names(self) -> FieldNames:
        """The API's names of the request's fields, for errors."""
        return self._asked.names

    def figures(self, finished: Finished, tokens: Sequence[Token] | None = None) -> dict[str, Any]:
        """The answer's times, its effective settings, and the origins of `tokens` if they are wanted."""
        changes = (*self._changes, *self._written.changes)
        own = effective(finished, unlimited=self._asked.most_tokens is None, changes=changes)
        if tokens is not None and self._asked.draftlight.tokens:
            own["tokens"] = origins(tokens)
        return {"timings": timings(finished.stats), "draftlight": own}

    def alive(self, happening: Event | None) -> bytes:
        """Bytes that keep a stream alive. Gets every `PrefillProgress`; the bytes for a `Queued` may
        be dropped.
        """
        return commented(happening)

    @abstractmethod
    def opening(self) -> bytes:
        """Bytes before the first token."""

    @abstractmethod
    def written(self, tokens: Sequence[Token]) -> bytes:
        """Bytes of one or more tokens that arrived together."""

    @abstractmethod
    def finished(self, finished: Finished) -> bytes:
        """Bytes of the end of the answer."""

    @abstractmethod
    def failed(self, error: ApiError) -> bytes:
        """Bytes of the end of an answer that failed after its opening."""

    @abstractmethod
    def whole(self, tokens: Sequence[Token], finished: Finished) -> dict[str, Any]:
        """The body of an answer that is not streamed."""


def new_id(prefix: str) -> str:
    """An id that cannot be guessed, because an id is enough to cancel a request."""
    return f"{prefix}{secrets.token_hex(14)}"


def client_name(scope: Scope) -> str:
    """The client's name: its user agent, printable characters only."""
    agent = Headers(scope=scope).get("user-agent", "")
    name = "".join(letter for letter in agent if letter.isprintable()).strip()[:_CLIENT_CHARACTERS]
    return name or "Unknown client"


async def loaded_model(answers: Answers, receive: Receive, wait_s: float = MODEL_WAIT_S) -> ModelInfo:
    """The loaded model; waits up to `wait_s` while one is being loaded. The body was read.

    Raises `NoModelError`, `ClientGoneError`.
    """
    gate = answers.gate
    with suppress(TimeoutError):
        await unless_gone(receive, asyncio.wait_for(gate.settled(), wait_s))
    if gate.model is None:
        raise NoModelError(NO_MODEL, NO_MODEL_HINT)
    return gate.model


def commented(happening: Event | None) -> bytes:
    """A comment with the progress; None before the first event."""
    match happening:
        case Queued(ahead=ahead, loads=loads):
            return comment("loading model" if loads else f"waiting {ahead}")
        case PrefillProgress():
            shown = display(happening, time.monotonic())
            return comment(f"keepalive {shown.percent}: {shown.words}")
        case None:
            return comment("waiting")
        case _:
            return comment("writing")


WriterOf = Callable[[Prepared], AnswerWriter]


async def answer_endpoint(
    answers: Answers,
    serving: Serving,
    id_prefix: str,
    read: Callable[[dict[str, Any]], tuple[AnswerRequest, WriterOf]],
    scope: Scope,
    receive: Receive,
    send: Send,
) -> None:
    """Answers one request.

    `read` makes it of a decoded body, with the writer of its answer. Raises `ApiError`, `DraftlightError` and
    `ClientGoneError` before anything was sent.
    """
    asked, writer_of = read(await read_fields(scope, receive, serving.doors.most_bytes))
    request = new_id(id_prefix)
    record = ServedRequest(request, scope["path"], client_name(scope), asked.model, time.time(), asked.stream)
    headers = {"x-request-id": request, "request-id": request}  # OpenAI's name, and Anthropic's
    line = EventLine(send, headers)

    def command(model: ModelInfo) -> tuple[Generate, AnswerWriter]:
        made = serving.prepared(asked, request, model)
        scope["draftlight.begun"] = True  # from here on its record says what becomes of it
        return made.generate, writer_of(made)

    try:
        async with images_read(answers, serving, asked, receive):
            other = partial(serving.other_model, asked.model)
            with answers.answering(record, other, command) as answer:
                async with watched(receive, answer.leave):
                    await (_stream(answer, line) if asked.stream else _whole(answer, headers, send))
    except (ApiError, DraftlightError) as error:
        refusal = api_error(error)
        if answers.requests.of(request) is not None:
            scope["draftlight.begun"] = True
        answers.requests.change(request, state="failed", problem=refusal.message)
        if not line.is_open:
            raise
        await line.write(event(refusal.encoded(scope["path"]), "error"))
        await line.close()


@asynccontextmanager
async def images_read(
    answers: Answers, serving: Serving, asked: AnswerRequest, receive: Receive
) -> AsyncIterator[None]:
    """Inside, the images of `asked` have descriptions, and files for the worker. Raises `ClientGoneError`."""
    if not asked.images:
        yield
        return
    loaded = answers.gate.model
    if loaded is None or not loaded.sees:
        asked.seeing.append(await unless_gone(receive, serving.seeing()))
    try:
        files = ImageFiles()
    except OSError as error:
        raise RequestError(f"Images cannot be stored: {reason_of(error)}.", "Free some space.") from error
    with files:
        await unless_gone(receive, answers.images.describe(asked.images, files))
        yield


async def _whole(answer: ServedAnswer[AnswerWriter], headers: Mapping[str, str], send: Send) -> None:
    tokens: list[Token] = []
    while True:
        for happening in await answer.next():
            match happening:
                case Token():
                    tokens.append(happening)
                case Finished():
                    assert answer.writer is not None
                    if answer.writer.annotations is not None:
                        await answer.writer.annotations.settle()
                    await send_json(send, answer.writer.whole(tokens, happening), headers=headers)
                    return
                case Failed():
                    raise api_error(happening, _names(answer.writer))
                case _:
                    if answer.writer is not None and answer.writer.annotations is not None:
                        answer.writer.annotations.hear(happening)


async def _stream(answer: ServedAnswer[AnswerWriter], line: EventLine) -> None:
    last: Event | None = None
    opened = False
    sent_s = time.monotonic()
    while True:
        happened = await answer.next(max(0.0, sent_s + _QUIET_S - time.monotonic()))
        writer = answer.writer
        alive = writer.alive if writer is not None else commented
        failed = next((one for one in happened if isinstance(one, Failed)), None)
        error = api_error(failed, _names(writer)) if failed is not None else None
        if error is not None and (
            writer is None or not (line.is_open or error.code in writer.streamed_errors)
        ):
            raise error
        tokens = [one for one in happened if isinstance(one, Token)]
        finished = next((one for one in happened if isinstance(one, Finished)), None)
        if writer is not None and writer.annotations is not None:
            for one in happened:
                writer.annotations.hear(one)
            if finished is not None:
                await writer.annotations.settle()
        moved = next((one for one in reversed(happened) if isinstance(one, Queued | PrefillProgress)), None)
        last = tokens[-1] if tokens else moved or last
        # Progress that came together with the first token still has the prompt's length.
        out = alive(moved or last) if moved is not None or not happened else b""
        if tokens or finished is not None:
            assert writer is not None
            if not opened:
                opened = True
                out += writer.opening()
            out += writer.written(tokens) if tokens else b""
        if finished is not None and writer is not None:
            out += writer.finished(finished)
        elif not out and time.monotonic() - sent_s >= _QUIET_S:
            out = alive(last)  # tokens came that say nothing yet
        if error is not None and writer is not None:
            out += writer.failed(error)
        # A request may still be refused when its turn comes, and then needs a status.
        waits = bool(happened) and all(isinstance(one, Queued) for one in happened)
        if out and (line.is_open or not waits):
            await line.write(out)
            sent_s = time.monotonic()
        if finished is not None or error is not None:
            await line.close()
            return


def _names(writer: AnswerWriter | None) -> FieldNames:
    return writer.names if writer is not None else NO_FIELDS


_Found = TypeVar("_Found")


async def unless_gone(receive: Receive, work: Coroutine[Any, Any, _Found]) -> _Found:
    """The result of `work`. If the client goes away, cancels it and raises `ClientGoneError`.

    The body was read.
    """
    task = asyncio.ensure_future(work)
    try:
        async with watched(receive, task.cancel):
            await asyncio.wait((task,))
    finally:
        task.cancel()
    if task.cancelled():
        raise ClientGoneError
    return task.result()


async def count_endpoint(
    answers: Answers,
    serving: Serving,
    shape: Mapping[str, Any],
    read: Callable[[dict[str, Any]], AnswerRequest],
    scope: Scope,
    receive: Receive,
    send: Send,
) -> None:
    """Counts the tokens of the whole prompt of a request that `read` makes; no answer is generated.

    `shape` has further fields of the body.
    """
    asked = read(await read_fields(scope, receive, serving.doors.most_bytes))
    async with images_read(answers, serving, asked, receive):
        tokens, changes = await unless_gone(receive, _counted(answers, serving, asked))
    own = {"changes": msgspec.to_builtins(changes)}
    await send_json(send, {**shape, "input_tokens": tokens, "draftlight": own})


async def _counted(
    answers: Answers, serving: Serving, asked: AnswerRequest
) -> tuple[int, tuple[Change, ...]]:
    """Tokens of the prompt of `asked`, by the model that it names, and its changes; waits for an answer that
    is being written. Raises `ApiError`, `NoModelError`.
    """
    request = new_id("count-")
    async with answers.turn(request, partial(serving.other_model, asked.model)) as model:
        if isinstance(model, Failed):
            raise api_error(model)
        made = serving.prepared(asked, request, model)
        count = await answers.gate.ask(CountTokens("", prompt=made.generate), TokenCount)
    if isinstance(count, Failed):
        raise api_error(count, asked.names)
    return count.tokens, made.changes


def usage(stats: Stats, thought_tokens: int = 0) -> dict[str, Any]:
    """OpenAI's usage object.

    Rejected tokens of a prediction are not completion tokens; those of the last step after a stop text are.
    """
    return {
        "prompt_tokens": stats.prompt_tokens,
        "completion_tokens": stats.tokens,
        "total_tokens": stats.prompt_tokens + stats.tokens,
        "prompt_tokens_details": {"cached_tokens": stats.reused_tokens, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": thought_tokens,
            "audio_tokens": 0,
            "accepted_prediction_tokens": stats.prediction_accepted,
            "rejected_prediction_tokens": stats.prediction_rejected,
        },
    }


def timings(stats: Stats) -> dict[str, Any]:
    """llama.cpp's names; `draft_…` are there if anything was drafted."""
    told: dict[str, Any] = {
        "cache_n": stats.reused_tokens,
        "prompt_n": stats.read_tokens,
        "prompt_ms": round(stats.prefill_s * 1000, 3),
        "prompt_per_second": round(stats.read_tokens / stats.prefill_s, 3) if stats.prefill_s else 0.0,
        "predicted_n": stats.tokens,
        "predicted_ms": round(stats.decode_s * 1000, 3),
        "predicted_per_second": round(stats.tokens_per_s, 3),
    }
    if stats.drafted:
        told |= {"draft_n": stats.drafted, "draft_n_accepted": stats.accepted}
    return told


def origins(tokens: Sequence[Token]) -> list[dict[str, Any]]:
    """The origins of tokens, as docs/server.md describes them."""
    return [
        {
            "id": token.id,
            "text": token.text,
            "origin": token.origin,
            "step": token.step,
            "position": token.position,
            "draft_index": token.draft_index,
            "draft_length": token.draft_length,
            "source": token.source,
            "rejected": token.rejected,
            "time_s": round(token.time_s, 6),
        }
        for token in tokens
    ]


def effective(finished: Finished, *, unlimited: bool, changes: Iterable[Change] = ()) -> dict[str, Any]:
    """The effective settings, and the reason for each difference from the request.

    `unlimited`: the request has no limit, so the context's limit is not a change, but the server's is one if
    it ended the answer. `changes` are those of the request's fields.
    """
    ran, stats = finished.effective, finished.stats
    if unlimited and finished.reason == "length" and not any(map(_is_length, ran.changes)):
        reason = "the request has no limit, so the server's limit applies"
        changes = (*changes, Change("max_tokens", "no limit", str(stats.tokens), reason))
    told = [
        {
            "setting": change.setting,
            "asked": without_paths(change.asked),
            "used": without_paths(change.used),
            "reason": without_paths(change.reason),
        }
        for change in (*changes, *ran.changes)
        if not (unlimited and _is_length(change))
    ]
    return {
        "drafter": ran.drafter,
        "reading": ran.reading,
        "reading_reason": ran.reading_reason,
        "skipped_tokens": stats.skipped_tokens,
        **({"image_tokens": stats.image_tokens} if stats.image_tokens else {}),
        "mean_per_step": round(stats.mean_per_step, 3),
        "steps": stats.steps,
        "forced": stats.forced,
        "ttft_ms": round(stats.ttft_s * 1000, 3),
        "stopped_by": finished.stopped_by,
        "cancelled": finished.reason == "cancelled",
        "changes": told,
    }


def _is_length(change: Change) -> bool:
    return change.setting == "sampling.max_tokens"


def logprobs_of(tokens: Sequence[Token]) -> list[dict[str, Any]]:
    """An entry for each token whose log probability is known, those without text included."""
    return [
        {
            **_one(token.text, token.logprob),
            "top_logprobs": [_one(likely.text, likely.logprob) for likely in token.likely],
        }
        for token in tokens
        if token.logprob is not None
    ]


def _one(text: str, logprob: float) -> dict[str, Any]:
    return {"token": text, "logprob": logprob, "bytes": list(text.encode()) if text else None}


def not_here(wanted: str, model: ModelInfo | None) -> ApiError:
    """404: the request names another model than the loaded one."""
    has = f"“{api_id(model)}” is loaded" if model else "none is loaded"
    return ApiError(
        404, f"No model is called “{wanted[:200]}” here; {has}.", param="model", code="model_not_found"
    )
