"""Configurations of applications: each parses as its format, and has the address, the key and the model."""

from __future__ import annotations

import json
import shlex
import tomllib
from typing import Any

import pytest
from msgspec.structs import replace

from core.serve.apps import APPS, NO_KEY, App, Connection, configuration

TO = Connection("http://127.0.0.1:8317", 's3\'cret "key"', "owner/Some-Model-😀", 32_768)


def exported(text: str) -> dict[str, str]:
    words = [shlex.split(line) for line in text.splitlines()]
    assert all(word[0] == "export" and len(word) == 2 for word in words)
    return dict(word[1].split("=", 1) for word in words)


def parsed(app: App, to: Connection) -> dict[str, Any]:
    text = configuration(app, to).text
    match app:
        case "Codex":
            return tomllib.loads(text)
        case "Claude Code" | "Open WebUI":
            return exported(text)
        case "Continue":
            yaml = pytest.importorskip("yaml")
            return dict(yaml.safe_load(text))
        case _:
            return dict(json.loads(text))


def test_claude_code_gets_its_environment() -> None:
    found = parsed("Claude Code", TO)
    assert found["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:8317"
    assert found["ANTHROPIC_AUTH_TOKEN"] == TO.key
    assert found["ANTHROPIC_MODEL"] == found["ANTHROPIC_DEFAULT_OPUS_MODEL"] == TO.model


def test_codex_gets_a_provider_and_the_context() -> None:
    found = parsed("Codex", TO)
    assert (found["model"], found["model_provider"]) == (TO.model, "draftlight")
    assert found["model_context_window"] == 32_768
    provider = found["model_providers"]["draftlight"]
    assert provider["base_url"] == "http://127.0.0.1:8317/v1"
    assert (provider["wire_api"], provider["experimental_bearer_token"]) == ("responses", TO.key)
    assert "experimental_bearer_token" not in configuration("Codex", Connection("http://a", "", "m", 1)).text


def test_opencode_zed_and_continue_get_the_model_with_its_limits() -> None:
    opencode = parsed("opencode", TO)
    provider = opencode["provider"]["draftlight"]
    assert opencode["model"] == f"draftlight/{TO.model}"
    assert provider["options"] == {"baseURL": "http://127.0.0.1:8317/v1", "apiKey": TO.key}
    assert provider["models"][TO.model]["limit"] == {"context": 32_768, "output": 8192}
    zed = parsed("Zed", TO)["language_models"]["openai_compatible"]["Draftlight"]
    assert zed["api_url"] == "http://127.0.0.1:8317/v1"
    assert zed["available_models"][0]["max_tokens"] == 32_768
    assert "the server’s key" in configuration("Zed", TO).hint
    chat, embeddings = parsed("Continue", TO)["models"]
    assert (chat["model"], chat["apiKey"]) == (TO.model, TO.key)
    assert chat["defaultCompletionOptions"]["contextLength"] == 32_768
    assert (embeddings["model"], embeddings["roles"]) == ("all-MiniLM-L6-v2", ["embed"])


@pytest.mark.parametrize("sees", [True, False])
def test_applications_that_ask_are_told_whether_the_model_sees(sees: bool) -> None:
    to = replace(TO, sees=sees)
    zed = parsed("Zed", to)["language_models"]["openai_compatible"]["Draftlight"]["available_models"][0]
    assert zed["capabilities"]["images"] is sees
    assert ("image_input" in parsed("Continue", to)["models"][0]["capabilities"]) is sees
    model = parsed("opencode", to)["provider"]["draftlight"]["models"][TO.model]
    assert ("image" in model.get("modalities", {}).get("input", ())) is sees


def test_open_webui_gets_both_addresses_and_a_word_on_docker() -> None:
    found = parsed("Open WebUI", TO)
    assert found["OPENAI_API_BASE_URL"] == found["RAG_OPENAI_API_BASE_URL"] == "http://127.0.0.1:8317/v1"
    assert found["OPENAI_API_KEY"] == TO.key
    assert "host.docker.internal" in configuration("Open WebUI", TO).hint


@pytest.mark.parametrize("app", APPS)
def test_without_a_key_clients_get_one_that_the_server_ignores(app: App) -> None:
    made = configuration(app, Connection("http://127.0.0.1:8317", "", "m", 4096))
    assert TO.key not in made.text
    if app not in ("Codex", "Zed"):  # one starts without a key, the other asks for it
        assert NO_KEY in made.text
