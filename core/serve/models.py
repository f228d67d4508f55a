"""`GET /v1/models`, `/health` and `/`. A model's id is its name in one word; its path is not shown."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from core.errors import NoModelError
from core.events import ModelEntry, ModelInfo, api_id
from core.serve.answering import is_called, loaded_model, model_id, not_here
from core.serve.embeddings import encoder_shape, is_encoder
from core.serve.http import send_json
from core.serve.installed import InstalledModels, entry_shape
from core.serve.queue import Answers

# OpenRouter's names of request fields.
_PARAMETERS = (
    "frequency_penalty",
    "logit_bias",
    "logprobs",
    "max_tokens",
    "min_p",
    "presence_penalty",
    "repetition_penalty",
    "response_format",
    "seed",
    "stop",
    "structured_outputs",
    "temperature",
    "tool_choice",
    "tools",
    "top_k",
    "top_logprobs",
    "top_p",
)


class About:
    """`GET /`: clients ask whether anything is there."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Name the server."""
        await send_json(send, {"name": "Draftlight", "api": "/v1", "health": "/health"})


class Health:
    """`GET /health`: 200 while a model answers, 503 while one is loaded or none is."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        gate = self._answers.gate
        said = {"ready": "ok", "starting": "loading model", "empty": "no model"}[gate.state]
        await send_json(send, {"status": said}, 200 if gate.state == "ready" else 503)


class Models:
    """`GET /v1/models`: the loaded one first, those that requests may load, and the sentence encoder."""

    def __init__(self, answers: Answers, installed: InstalledModels | None = None) -> None:
        self._answers = answers
        self._installed = installed
        self._since = int(time.time())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; waits for a model that is being loaded."""
        try:
            model = await loaded_model(self._answers, receive)
            listed = [shape(model, self._since, loaded=not self._answers.gate.released)]
        except NoModelError:
            listed = []
        if self._installed is not None:
            loaded = self._answers.gate.model
            others = [each for each in await self._installed.entries() if not _is(each, loaded)]
            listed += [entry_shape(each, self._since) for each in others]
        if "anthropic-version" in Headers(scope=scope):
            ends = {"first_id": listed[0]["id"], "last_id": listed[-1]["id"]} if listed else {}
            listed = [one | {"type": "model"} for one in listed]
            await send_json(send, {"data": listed, "has_more": False, **ends})
        else:
            await send_json(send, {"object": "list", "data": [*listed, encoder_shape(self._since)]})


def _is(entry: ModelEntry, loaded: ModelInfo | None) -> bool:
    return loaded is not None and loaded.path == entry.path


class Model:
    """`GET /v1/models/{id}`."""

    def __init__(self, answers: Answers, installed: InstalledModels | None = None) -> None:
        self._answers = answers
        self._installed = installed
        self._since = int(time.time())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request. Raises `ApiError` 404 for a model that `GET /v1/models` does not list."""
        model = self._answers.gate.model
        wanted = scope["path_params"]["model"]
        if is_encoder(wanted) and not (model is not None and is_called(model, wanted)):
            await send_json(send, encoder_shape(self._since))
            return
        kind = {"type": "model"} if "anthropic-version" in Headers(scope=scope) else {}
        if model is None or not is_called(model, wanted):
            entries = await self._installed.entries() if self._installed is not None else []
            for entry in entries:
                if wanted.lower() in (api_id(entry.name).lower(), entry.reference.lower()):
                    await send_json(send, entry_shape(entry, self._since) | kind)
                    return
            raise not_here(wanted, model)
        await send_json(send, shape(model, self._since, loaded=not self._answers.gate.released) | kind)


def shape(model: ModelInfo, since: int, *, loaded: bool = True) -> dict[str, Any]:
    """OpenAI's fields, Draftlight's, and those that clients of other servers read.

    `max_context_length`, `state`, `arch` … are LM Studio's, `capabilities` LM Studio's and Ollama's,
    `supported_parameters`, `architecture`, `top_provider` OpenRouter's, `max_model_len` vLLM's, `meta`
    llama.cpp's, `display_name` and `created_at` Anthropic's.
    """
    context = model.context_tokens
    thinks = model.thinks or model.format.thinks
    return {
        "id": model_id(model),
        "object": "model",
        "created": since,
        "created_at": datetime.fromtimestamp(since, UTC).isoformat().replace("+00:00", "Z"),
        "owned_by": "draftlight",
        "name": model.name,
        "display_name": model.name,
        "context_length": context,
        "max_model_len": context,
        "max_context_length": context,
        "loaded_context_length": context,
        "state": "loaded" if loaded else "not-loaded",
        "type": "llm",
        "publisher": "draftlight",
        "arch": model.architecture,
        "compatibility_type": "mlx",
        "parameters": model.parameters,
        "quantisation": model.quantisation,
        "quantization": model.quantisation,
        "capabilities": ["completion", "tools", "tool_use", "json_schema", *(["thinking"] if thinks else [])],
        "supported_parameters": [*_PARAMETERS, *(["reasoning", "include_reasoning"] if thinks else [])],
        "architecture": {
            "modality": "text->text",
            "input_modalities": ["text"],
            "output_modalities": ["text"],
            "tokenizer": model.family_name,
        },
        "top_provider": {"context_length": context, "max_completion_tokens": None, "is_moderated": False},
        "pricing": {"prompt": "0", "completion": "0"},
        "meta": {"n_ctx_train": context, "n_vocab": model.vocabulary, "n_params": model.parameters},
    }
