"""How applications are configured for the local server: environments, flags and texts to copy. Pure."""

from __future__ import annotations

import json
import shlex
from typing import Literal, get_args

from msgspec import Struct

App = Literal["Claude Code", "Codex", "opencode", "Continue", "Zed", "Open WebUI"]
APPS: tuple[App, ...] = get_args(App)
# A server without a key accepts any; clients do not start without one.
NO_KEY = "draftlight"
_EMBEDDING_MODEL = "all-MiniLM-L6-v2"
_MOST_ANSWER_TOKENS = 32_000


class Connection(Struct, frozen=True):
    """A server as an application reaches it.

    `address` is without `/v1`, `key` empty if the server has none, `model` the model's API name. `sees`: it
    sees images, which some applications do not send to a model that is not said to.
    """

    address: str
    key: str
    model: str
    context_tokens: int
    sees: bool = False

    @property
    def sent_key(self) -> str:
        """The key that clients send."""
        return self.key or NO_KEY

    @property
    def answer_tokens(self) -> int:
        """Tokens that a client may reserve for an answer."""
        return min(_MOST_ANSWER_TOKENS, self.context_tokens // 4)


class Configuration(Struct, frozen=True):
    """`text` is to be pasted into `place`, a file's path or a phrase. `hint` may be empty."""

    place: str
    text: str
    hint: str = ""


def configuration(app: App, to: Connection) -> Configuration:
    """The configuration of `app` for the server. Formats as of the versions in docs/server.md."""
    match app:
        case "Claude Code":
            lines = [f"export {name}={_quoted(value)}" for name, value in claude_environment(to).items()]
            return Configuration("the terminal, before “claude”", "\n".join(lines))
        case "Codex":
            return Configuration("~/.codex/config.toml", _codex_text(to))
        case "opencode":
            text = json.dumps({"$schema": "https://opencode.ai/config.json", **opencode_config(to)}, indent=2)
            return Configuration("opencode.json, in the project’s folder", text)
        case "Continue":
            return Configuration("~/.continue/config.yaml", _continue_text(to))
        case "Zed":
            key = "the server’s key, which Settings copies" if to.key else "any text"
            hint = f"When Zed asks for an API key, enter {key}."
            return Configuration("~/.config/zed/settings.json", _zed_text(to), hint)
        case "Open WebUI":
            hint = "If Open WebUI runs in Docker, replace 127.0.0.1 with host.docker.internal."
            return Configuration("the environment of “open-webui serve”", _open_webui_text(to), hint)


def claude_environment(to: Connection) -> dict[str, str]:
    """Claude Code's environment variables (https://code.claude.com/docs/en/settings)."""
    models = ("ANTHROPIC_MODEL", "ANTHROPIC_SMALL_FAST_MODEL", "ANTHROPIC_DEFAULT_HAIKU_MODEL",
              "ANTHROPIC_DEFAULT_SONNET_MODEL", "ANTHROPIC_DEFAULT_OPUS_MODEL")  # fmt: skip
    return {
        "ANTHROPIC_BASE_URL": to.address,
        "ANTHROPIC_AUTH_TOKEN": to.sent_key,
        "ANTHROPIC_API_KEY": "",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        # It would differ in each request, so that no prefix could be reused.
        "CLAUDE_CODE_ATTRIBUTION_HEADER": "0",
        **dict.fromkeys(models, to.model),
    }


def codex_values(to: Connection) -> dict[str, str | int]:
    """Codex's settings by their keys (https://developers.openai.com/codex/config-reference)."""
    values: dict[str, str | int] = {
        "model": to.model,
        "model_provider": "draftlight",
        "model_context_window": to.context_tokens,
        "model_providers.draftlight.name": "Draftlight",
        "model_providers.draftlight.base_url": f"{to.address}/v1",
        "model_providers.draftlight.wire_api": "responses",
    }
    if to.key:
        values["model_providers.draftlight.experimental_bearer_token"] = to.key
    return values


def opencode_config(to: Connection) -> dict[str, object]:
    """opencode's configuration (https://opencode.ai/docs/config)."""
    limit = {"context": to.context_tokens, "output": to.answer_tokens}
    described: dict[str, object] = {"name": to.model, "limit": limit}
    if to.sees:
        described |= {"attachment": True, "modalities": {"input": ["text", "image"], "output": ["text"]}}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Draftlight",
        "options": {"baseURL": f"{to.address}/v1", "apiKey": to.sent_key},
        "models": {to.model: described},
    }
    model = f"draftlight/{to.model}"
    return {"provider": {"draftlight": provider}, "model": model, "small_model": model}


def _codex_text(to: Connection) -> str:
    """TOML: keys of a table follow its head."""
    top: list[str] = []
    table: list[str] = []
    for key, value in codex_values(to).items():
        name = key.removeprefix("model_providers.draftlight.")
        (top if name == key else table).append(f"{name} = {json.dumps(value, ensure_ascii=False)}")
    return "\n".join([*top, "", "[model_providers.draftlight]", *table])


def _continue_text(to: Connection) -> str:
    common = f"    provider: openai\n    apiBase: {to.address}/v1\n    apiKey: {json.dumps(to.sent_key)}\n"
    return (
        "name: Draftlight\nversion: 1.0.0\nschema: v1\nmodels:\n"
        f"  - name: Draftlight\n{common}    model: {json.dumps(to.model, ensure_ascii=False)}\n"
        f"    roles: [chat, edit, apply]\n    capabilities: [tool_use{', image_input' if to.sees else ''}]\n"
        "    defaultCompletionOptions:\n"
        f"      contextLength: {to.context_tokens}\n      maxTokens: {to.answer_tokens}\n"
        f"  - name: Draftlight Embeddings\n{common}    model: {_EMBEDDING_MODEL}\n    roles: [embed]"
    )


def _zed_text(to: Connection) -> str:
    capabilities = {"tools": True, "images": to.sees, "parallel_tool_calls": True, "prompt_cache_key": False}
    model = {
        "name": to.model,
        "display_name": to.model,
        "max_tokens": to.context_tokens,
        "max_output_tokens": to.answer_tokens,
        "capabilities": capabilities,
    }
    provider = {"api_url": f"{to.address}/v1", "available_models": [model]}
    return json.dumps({"language_models": {"openai_compatible": {"Draftlight": provider}}}, indent=2)


def _open_webui_text(to: Connection) -> str:
    values = {
        "OPENAI_API_BASE_URL": f"{to.address}/v1",
        "OPENAI_API_KEY": to.sent_key,
        "RAG_EMBEDDING_ENGINE": "openai",
        "RAG_EMBEDDING_MODEL": _EMBEDDING_MODEL,
        "RAG_OPENAI_API_BASE_URL": f"{to.address}/v1",
        "RAG_OPENAI_API_KEY": to.sent_key,
    }
    return "\n".join(f"export {name}={_quoted(value)}" for name, value in values.items())


def _quoted(value: str) -> str:
    """A value as a shell reads it; keys and names of models may have any character."""
    return shlex.quote(value)
