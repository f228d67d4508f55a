"""`POST /v1/embeddings`: vectors of texts by the sentence encoder, all-MiniLM-L6-v2.

The worker computes them a few texts at a time, during an answer too, so that neither waits long for the
other.
"""

from __future__ import annotations

import array
import base64
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any, Literal

import msgspec
from starlette.types import Receive, Scope, Send

from core.errors import NoModelError
from core.events import Change, EmbedTexts, Failed, TextsEmbedded
from core.events.wire import well_formed
from core.serve.answering import Serving, client_name, loaded_model, new_id, unless_gone
from core.serve.fields import OwnFields, UnknownFields, change, convert_fields, refused
from core.serve.http import ApiError, FieldNames, api_error, field_error, read_fields, send_json
from core.serve.queue import NO_MODEL, NO_MODEL_HINT, Answers
from core.serve.served_requests import ServedRequest, ServedRequests

MODEL = "all-MiniLM-L6-v2"
DIMENSIONS = 384
MOST_TOKENS = 256
MOST_TEXTS = 2048  # OpenAI's limit
_TEXTS_AT_ONCE = 8
_MOST_NAMED = 50
# Other servers' names of the same model: the hub's, Ollama's, LM Studio's.
_NAMES = frozenset({"all-minilm-l6-v2", "all-minilm", "text-embedding-all-minilm-l6-v2-embedding"})
_IGNORED = frozenset({"user", "input_type", "keep_alive", "truncate"})


class EmbeddingRequest(OwnFields, kw_only=True):
    """A request for vectors. Text only: token ids belong to another model's tokenizer."""

    input: str | list[Any]
    model: str = ""
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = None

    def texts(self) -> list[str]:
        """The texts. Raises `ApiError` 400 for anything else, and for dimensions that the model lacks."""
        if self.dimensions not in (None, DIMENSIONS):
            raise refused("dimensions", f"vectors of {MODEL} cannot be shortened; it accepts {DIMENSIONS}")
        given = [self.input] if isinstance(self.input, str) else self.input
        if not given or len(given) > MOST_TEXTS:
            raise field_error("input", f"“input” accepts 1 to {MOST_TEXTS:,} texts; it has {len(given):,}.")
        for number, text in enumerate(given):
            place = "input" if isinstance(self.input, str) else f"input[{number}]"
            if isinstance(text, int | list):
                raise field_error(
                    place,
                    f"“{place}” has token ids, which belong to another model's tokenizer. Send text instead"
                    " (in LangChain: check_embedding_ctx_length=False).",
                )
            if not isinstance(text, str):
                raise field_error(place, f"“{place}” is not a text.")
            if not text:
                raise field_error(place, f"“{place}” is empty. Remove it, or send text.")
        return [well_formed(text) for text in given]


def is_encoder(name: str) -> bool:
    """Whether a request that names the model `name` means the encoder."""
    return name.strip().lower().removesuffix(":latest").rpartition("/")[2] in _NAMES


def encoder_shape(since: int) -> dict[str, Any]:
    """The encoder as `/v1/models` lists it; see `models.shape` for the origin of the fields."""
    return {
        "id": MODEL,
        "object": "model",
        "created": since,
        "owned_by": "draftlight",
        "name": MODEL,
        "context_length": MOST_TOKENS,
        "max_model_len": MOST_TOKENS,
        "max_context_length": MOST_TOKENS,
        "loaded_context_length": MOST_TOKENS,
        "embedding_length": DIMENSIONS,
        "state": "loaded",
        "type": "embeddings",
        "publisher": "sentence-transformers",
        "arch": "bert",
        "compatibility_type": "mlx",
        "quantization": "int8",
        "capabilities": ["embedding"],
        "architecture": {
            "modality": "text->embedding",
            "input_modalities": ["text"],
            "output_modalities": ["embedding"],
        },
        "pricing": {"prompt": "0", "completion": "0"},
    }


async def embeddings_endpoint(
    answers: Answers, serving: Serving, scope: Scope, receive: Receive, send: Send
) -> None:
    """Answers one request. Waits while the worker starts."""
    fields = await read_fields(scope, receive, serving.doors.most_bytes)
    asked = convert_fields(fields, EmbeddingRequest, unknown=UnknownFields(_IGNORED))
    texts = asked.texts()
    own = [name for name in OwnFields.__struct_fields__ if fields.get(name)]
    asked.changes.extend(change(name, fields[name], "", "vectors depend on no setting") for name in own)
    if asked.model and not is_encoder(asked.model):
        reason = "this server embeds with one model, whatever name is sent"
        asked.changes.insert(0, change("model", asked.model, MODEL, reason))
    if serving.strict and asked.changes:
        first = asked.changes[0]
        if first.setting == "model":
            message = f"No model is called “{asked.model[:200]}” for embeddings; use “{MODEL}”."
            raise ApiError(404, message, param="model", code="model_not_found")
        raise refused(first.setting, first.reason)
    await loaded_model(answers, receive)
    with _recorded(answers.requests, scope) as request:
        told = [one async for one in _embedded(answers, texts, request, receive)]
    vectors = b"".join(one.vectors for one in told)
    tokens = [count for one in told for count in one.tokens]
    truncated = [first * _TEXTS_AT_ONCE + at for first, one in enumerate(told) for at in one.truncated]
    size = 4 * DIMENSIONS
    data = [
        {
            "object": "embedding",
            "index": number,
            "embedding": _encoded(vectors[number * size : (number + 1) * size], asked.encoding_format),
        }
        for number in range(len(texts))
    ]
    changes = [*asked.changes, *_truncations(truncated, isinstance(asked.input, str))]
    body = {
        "object": "list",
        "data": data,
        "model": MODEL,
        "usage": {"prompt_tokens": sum(tokens), "total_tokens": sum(tokens)},
        "draftlight": {"changes": msgspec.to_builtins(changes)},
    }
    await send_json(send, body, headers={"x-request-id": request})


@contextmanager
def _recorded(requests: ServedRequests, scope: Scope) -> Iterator[str]:
    """Records the request as it runs and ends; gives its id."""
    begun_s = time.monotonic()
    request = new_id("embd-")
    scope["draftlight.begun"] = True
    requests.add(
        ServedRequest(request, scope["path"], client_name(scope), MODEL, time.time(), False, "reading")
    )
    state, problem = "finished", ""
    try:
        yield request
    except (ApiError, NoModelError) as error:
        state, problem = "failed", str(error)
        raise
    except BaseException:  # the client disconnected, or the server stops
        state = "cancelled"
        raise
    finally:
        requests.change(request, state=state, problem=problem, total_s=time.monotonic() - begun_s)


async def _embedded(
    answers: Answers, texts: list[str], request: str, receive: Receive
) -> AsyncIterator[TextsEmbedded]:
    """The worker's answers for `texts`, a few at a time. Raises `ApiError`, `ClientGoneError`."""
    read_tokens = 0
    gate = answers.gate
    for first in range(0, len(texts), _TEXTS_AT_ONCE):
        await gate.settled()  # another request may load its model
        if gate.state != "ready":
            raise NoModelError(NO_MODEL, NO_MODEL_HINT)
        command = EmbedTexts("", tuple(texts[first : first + _TEXTS_AT_ONCE]))
        found = await unless_gone(receive, gate.ask(command, TextsEmbedded))
        if isinstance(found, Failed):
            raise api_error(found, FieldNames("input"))
        read_tokens += sum(found.tokens)
        answers.requests.change(request, prompt_tokens=read_tokens, read_tokens=read_tokens)
        yield found


def _encoded(vector: bytes, encoding: Literal["float", "base64"]) -> str | list[float]:
    if encoding == "base64":
        return base64.b64encode(vector).decode()
    numbers = array.array("f", vector)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tolist()


def _truncations(truncated: list[int], single: bool) -> Iterator[Change]:
    for at in truncated[:_MOST_NAMED]:
        place = "input" if single else f"input[{at}]"
        yield change(place, "whole text", f"its first {MOST_TOKENS} tokens", f"{MODEL} does not read more")
