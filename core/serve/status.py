"""`GET /`, `/health` and `/v1/models`.

A model's id is its folder's or its hub name in one word; its path is not shown.
"""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from core.errors import NoModelError
from core.events import ModelEntry, ModelInfo, api_id
from core.serve.answering import loaded_model, not_here
from core.serve.embeddings import encoder_shape, is_encoder
from core.serve.http import send_json
from core.serve.queue import MODEL_WAIT_S, Answers, InstalledModels, is_called

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


async def about(scope: Scope, receive: Receive, send: Send) -> None:
    """`GET /`: for clients that look for a server, and for a person with a browser."""
    is_what = (
        "Draftlight's local API server: OpenAI's chat completions, completions, responses and embeddings,"
        " and Anthropic's messages, answered by a model on this computer"
    )
    about = {"name": "Draftlight", "description": is_what, "api": "/v1", "models": "/v1/models"}
    await send_json(send, {**about, "health": "/health"})


async def health(answers: Answers, scope: Scope, receive: Receive, send: Send) -> None:
    """`GET /health`: 200 while a model answers, 503 while one is loaded or none is."""
    state = answers.gate.state
    said = {"ready": "ok", "starting": "loading model", "empty": "no model"}[state]
    await send_json(send, {"status": said}, 200 if state == "ready" else 503)


# Clients give up on a list of models after about 10 s.
_LIST_WAIT_S = 5.0


class Models:
    """`GET /v1/models`: the loaded one first, those that requests may load, and the sentence encoder."""

    def __init__(self, answers: Answers, installed: InstalledModels | None = None) -> None:
        self._answers = answers
        self._installed = installed
        self._since = int(time.time())

    async def all(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request. Waits for a model that is being loaded; a few seconds if others are listed."""
        models = await self._models(receive)
        listed = [self._shape(name, model) for name, model in models.items()]
        if "anthropic-version" in Headers(scope=scope):
            ends = {"first_id": listed[0]["id"], "last_id": listed[-1]["id"]} if listed else {}
            listed = [one | {"type": "model"} for one in listed]
            await send_json(send, {"data": listed, "has_more": False, **ends})
        else:
            await send_json(send, {"object": "list", "data": [*listed, encoder_shape(self._since)]})

    async def one(self, scope: Scope, receive: Receive, send: Send) -> None:
        """`GET /v1/models/{id}`. Raises `ApiError` 404 for a model that `GET /v1/models` does not list."""
        wanted = scope["path_params"]["model"]
        models = await self._models(receive)
        found = next((name for name in models if name.lower() == wanted.lower()), None)
        found = found or next((name for name, model in models.items() if is_called(model, wanted)), None)
        if found is not None:
            kind = {"type": "model"} if "anthropic-version" in Headers(scope=scope) else {}
            await send_json(send, self._shape(found, models[found]) | kind)
        elif is_encoder(wanted):
            await send_json(send, encoder_shape(self._since))
        else:
            raise not_here(wanted, self._answers.gate.model)

    async def _models(self, receive: Receive) -> dict[str, ModelInfo | ModelEntry]:
        """The loaded model and those that requests may load, by their ids."""
        with suppress(NoModelError):
            await loaded_model(
                self._answers, receive, MODEL_WAIT_S if self._installed is None else _LIST_WAIT_S
            )
        loaded = self._answers.gate.model
        if self._installed is not None:
            return await self._installed.by_id(loaded)
        return {api_id(loaded): loaded} if loaded is not None else {}

    def _shape(self, name: str, model: ModelInfo | ModelEntry) -> dict[str, Any]:
        return shape(name, model, self._since, loaded=not self._answers.gate.released)


_CAPABILITIES = ("completion", "tools", "tool_use", "json_schema")


def shape(name: str, model: ModelInfo | ModelEntry, since: int, *, loaded: bool = True) -> dict[str, Any]:
    """OpenAI's fields, Draftlight's, and those that clients of other servers read.

    `max_context_length`, `state`, `arch` … are LM Studio's, `capabilities` LM Studio's and Ollama's,
    `supported_parameters`, `architecture`, `top_provider` OpenRouter's, `max_model_len` vLLM's, `meta`
    llama.cpp's, `display_name` and `created_at` Anthropic's.
    """
    context = model.context_tokens
    known = {
        "id": name,
        "object": "model",
        "created": since,
        "created_at": datetime.fromtimestamp(since, UTC).isoformat().replace("+00:00", "Z"),
        "owned_by": "draftlight",
        "name": model.name,
        "display_name": model.name,
        "context_length": context,
        "max_model_len": context,
        "max_context_length": context,
        "type": "vlm" if model.sees else "llm",
        "publisher": "draftlight",
        "arch": model.architecture,
        "compatibility_type": "mlx",
        "parameters": model.parameters,
    }
    capabilities = [*_CAPABILITIES, *(["vision"] if model.sees else [])]
    if isinstance(model, ModelEntry):
        return known | {"state": "not-loaded", "capabilities": capabilities}
    thinks = model.thinks or model.format.thinks
    return known | {
        "loaded_context_length": context,
        "state": "loaded" if loaded else "not-loaded",
        "quantisation": model.quantisation,
        "quantization": model.quantisation,
        "capabilities": [*capabilities, *(["thinking"] if thinks else [])],
        "supported_parameters": [*_PARAMETERS, *(["reasoning", "include_reasoning"] if thinks else [])],
        "architecture": {
            "modality": "text+image->text" if model.sees else "text->text",
            "input_modalities": ["text", "image"] if model.sees else ["text"],
            "output_modalities": ["text"],
            "tokenizer": model.family_name,
        },
        "top_provider": {"context_length": context, "max_completion_tokens": None, "is_moderated": False},
        "pricing": {"prompt": "0", "completion": "0"},
        "meta": {"n_ctx_train": context, "n_vocab": model.vocabulary, "n_params": model.parameters},
    }
