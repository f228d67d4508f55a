"""`GET /`, `/health`, `/v1/models` and `/metrics`.

A model's id is its folder's or its hub name in one word; its path is not shown. Metrics are figures in
Prometheus' text form, counted since the server was made: no client's name, no model's path, no text.
"""

from __future__ import annotations

import time
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime
from itertools import accumulate
from typing import Any

from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from core.errors import NoModelError
from core.events import Event, Finished, ModelEntry, ModelInfo, api_id
from core.serve.answering import loaded_model, not_here
from core.serve.embeddings import encoder_shape, is_encoder
from core.serve.http import send_json, send_whole
from core.serve.queue import MODEL_WAIT_S, Answers, InstalledModels, is_called
from core.serve.requests import ServedRequest

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


# Clients give up on a list of models after about 10 s.
_LIST_WAIT_S = 5.0


class Models:
    """`GET /v1/models`: the loaded one first, those that requests may load, and the sentence encoder."""

    def __init__(self, answers: Answers, installed: InstalledModels | None = None) -> None:
        self._answers = answers
        self._installed = installed
        self._since = int(time.time())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request. Waits for a model that is being loaded; a few seconds if others are listed."""
        models = await self._models(receive)
        listed = [self._shape(name, model) for name, model in models.items()]
        if "anthropic-version" in Headers(scope=scope):
            ends = {"first_id": listed[0]["id"], "last_id": listed[-1]["id"]} if listed else {}
            listed = [one | {"type": "model"} for one in listed]
            await send_json(send, {"data": listed, "has_more": False, **ends})
        else:
            await send_json(send, {"object": "list", "data": [*listed, encoder_shape(self._since)]})

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
        if isinstance(model, ModelInfo):
            return shape(name, model, self._since, loaded=not self._answers.gate.released)
        return _shape(name, model, self._since) | {"state": "not-loaded", "capabilities": list(_CAPABILITIES)}


class Model(Models):
    """`GET /v1/models/{id}`."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request. Raises `ApiError` 404 for a model that `GET /v1/models` does not list."""
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


_CAPABILITIES = ("completion", "tools", "tool_use", "json_schema")


def _shape(name: str, model: ModelInfo | ModelEntry, since: int) -> dict[str, Any]:
    """Fields of each model, loaded or not; see `shape`."""
    context = model.context_tokens
    return {
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
        "type": "llm",
        "publisher": "draftlight",
        "arch": model.architecture,
        "compatibility_type": "mlx",
        "parameters": model.parameters,
    }


def shape(name: str, model: ModelInfo, since: int, *, loaded: bool = True) -> dict[str, Any]:
    """OpenAI's fields, Draftlight's, and those that clients of other servers read.

    `max_context_length`, `state`, `arch` … are LM Studio's, `capabilities` LM Studio's and Ollama's,
    `supported_parameters`, `architecture`, `top_provider` OpenRouter's, `max_model_len` vLLM's, `meta`
    llama.cpp's, `display_name` and `created_at` Anthropic's.
    """
    context = model.context_tokens
    thinks = model.thinks or model.format.thinks
    return _shape(name, model, since) | {
        "loaded_context_length": context,
        "state": "loaded" if loaded else "not-loaded",
        "quantisation": model.quantisation,
        "quantization": model.quantisation,
        "capabilities": [*_CAPABILITIES, *(["thinking"] if thinks else [])],
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


# ---- metrics

_KIND = "text/plain; version=0.0.4; charset=utf-8"
_TTFT_S = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
_COUNTERS = {
    "prompt_tokens": "Tokens of prompts.",
    "cached_tokens": "Tokens of prompts that were in the cache.",
    "read_tokens": "Tokens of prompts that were read.",
    "skipped_tokens": "Tokens of prompts that sparse prefill left out.",
    "embedded_tokens": "Tokens of texts that vectors were computed of.",
    "completion_tokens": "Tokens that were written.",
    "drafted_tokens": "Tokens that were drafted.",
    "tested_tokens": "Drafted tokens that verification reached.",
    "accepted_tokens": "Drafted tokens that were accepted.",
    "forced_tokens": "Accepted tokens that a grammar forced.",
    "prediction_accepted_tokens": "Tokens of predicted outputs that came.",
    "prediction_rejected_tokens": "Tokens of predicted outputs that did not come.",
    "steps": "Forward passes of the model.",
    "prefill_seconds": "Seconds that prompts were read for.",
    "decode_seconds": "Seconds that answers were written for.",
}


class Metrics:
    """The endpoint, which counts what requests and answers report."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self._totals: Counter[str] = Counter()
        self._ended: Counter[str] = Counter()
        self._embedding: set[str] = set()
        self._ttft = [0] * (len(_TTFT_S) + 1)
        self._ttft_sum_s = 0.0
        self._stop_listening = answers.requests.listen(self)

    def close(self) -> None:
        """Stop counting."""
        self._stop_listening()

    def request_changed(self, request: ServedRequest) -> None:
        """Count a request that is over."""
        if request.is_over:
            self._ended[request.state] += 1
            self._embedding.discard(request.id)
            self._totals["embedded_tokens"] += request.read_tokens if request.embeds else 0
        elif request.embeds:
            self._embedding.add(request.id)

    def request_heard(self, request: str, event: Event) -> None:
        """Add the figures of a finished answer."""
        if not isinstance(event, Finished):
            return
        stats = event.stats
        told = {
            "prompt_tokens": stats.prompt_tokens,
            "cached_tokens": stats.reused_tokens,
            "read_tokens": stats.read_tokens,
            "skipped_tokens": stats.skipped_tokens,
            "completion_tokens": stats.tokens,
            "drafted_tokens": stats.drafted,
            "tested_tokens": stats.tested,
            "accepted_tokens": stats.accepted,
            "forced_tokens": stats.forced,
            "prediction_accepted_tokens": stats.prediction_accepted,
            "prediction_rejected_tokens": stats.prediction_rejected,
            "steps": stats.steps,
            "prefill_seconds": stats.prefill_s,
            "decode_seconds": stats.decode_s,
        }
        for name, value in told.items():
            self._totals[name] += value  # type: ignore[assignment]
        if stats.tokens:
            place = next((at for at, most in enumerate(_TTFT_S) if stats.ttft_s <= most), len(_TTFT_S))
            self._ttft[place] += 1
            self._ttft_sum_s += stats.ttft_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await send_whole(send, self.text().encode(), _KIND)

    def text(self) -> str:
        """All figures as text."""
        queue = self._answers.queue.tickets
        lines: list[str] = []
        for name, help_ in _COUNTERS.items():
            lines += _family(f"draftlight_{name}_total", "counter", help_)
            lines.append(f"draftlight_{name}_total {self._totals[name]:.10g}")
        lines += _family("draftlight_requests_total", "counter", "Requests that are over, by how they ended.")
        lines += [
            f'draftlight_requests_total{{state="{state}"}} {self._ended[state]}'
            for state in ("finished", "failed", "cancelled")
        ]
        lines += _family("draftlight_requests_running", "gauge", "Requests that are answered now.")
        lines.append(f"draftlight_requests_running {min(1, len(queue)) + len(self._embedding)}")
        lines += _family("draftlight_requests_waiting", "gauge", "Requests that wait.")
        lines.append(f"draftlight_requests_waiting {max(0, len(queue) - 1)}")
        lines += _family(
            "draftlight_time_to_first_token_seconds", "histogram", "From when a worker took it up."
        )
        counts = list(accumulate(self._ttft))
        lines += [
            f'draftlight_time_to_first_token_seconds_bucket{{le="{most}"}} {count}'
            for most, count in zip([*map(str, _TTFT_S), "+Inf"], counts)
        ]
        lines.append(f"draftlight_time_to_first_token_seconds_sum {self._ttft_sum_s:.6f}")
        lines.append(f"draftlight_time_to_first_token_seconds_count {counts[-1]}")
        return "\n".join(lines) + "\n"


def _family(name: str, kind: str, help_: str) -> list[str]:
    return [f"# HELP {name} {help_}", f"# TYPE {name} {kind}"]
