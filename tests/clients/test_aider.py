"""aider without a person: it reads a file, asks for it as a whole, and writes what it got."""

from __future__ import annotations

import json
from pathlib import Path

from tests.clients.conftest import Clients, Server

BEFORE = "greeting = 'hello'\n"
# A small model may go on for ever.
ASKED = ["--message", "Answer with the file greet.py as it is.", "--llm-history-file", "asked.txt"]
# Nobody is asked, nothing is fetched or sent, and what is said can be read.
QUIETLY = [
    "--yes-always", "--no-git", "--no-pretty", "--stream", "--map-tokens", "0",
    "--analytics-disable", "--no-check-update", "--no-show-release-notes", "--no-show-model-warnings",
    "--no-suggest-shell-commands", "--no-detect-urls", "--no-auto-lint",
]  # fmt: skip
MODEL = "- name: openai/starter\n  edit_format: whole\n  extra_params:\n    max_tokens: 60\n"


def test_aider_edits_a_whole_file(clients: Clients, server: Server, tmp_path: Path) -> None:
    file = tmp_path / "greet.py"
    file.write_text(BEFORE)
    model = tmp_path / "model.yml"
    model.write_text(MODEL)
    home = tmp_path / "home"
    # aider fetches prices once a day unless it has some.
    prices = home / ".aider" / "caches" / "model_prices_and_context_window.json"
    prices.parent.mkdir(parents=True)
    known = {"max_input_tokens": 8192, "max_output_tokens": 60, "litellm_provider": "openai", "mode": "chat"}
    free = {"input_cost_per_token": 0, "output_cost_per_token": 0}
    prices.write_text(json.dumps({"openai/starter": known | free}))
    ran = clients.run(
        "aider",
        [
            "-m",
            "aider",
            *QUIETLY,
            "--model",
            "openai/starter",
            "--model-settings-file",
            model,
            *ASKED,
            file.name,
        ],
        {"HOME": str(home), "OPENAI_API_BASE": server.base, "OPENAI_API_KEY": server.key},
        tmp_path,
    )
    said = ran.stdout + ran.stderr
    assert ran.returncode == 0, said
    assert "with whole edit format" in said
    # It was answered, and the answer came as it was streamed.
    answer = (tmp_path / "asked.txt").read_text().partition("LLM RESPONSE")[2]
    first = next(
        line.removeprefix("ASSISTANT ") for line in answer.splitlines() if line.startswith("ASSISTANT ")
    )
    assert first in said
    assert "received." in said
    # The answer has the file in the form that was asked for, and aider took it.
    assert f"Applied edit to {file.name}" in said, said
    assert file.read_text() == BEFORE
