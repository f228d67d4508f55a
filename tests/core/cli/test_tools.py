"""`draftlight tools`: a real server is listed and called; other programs' servers are listed."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

from core.cli import main
from tests.core.tools.serving import HERE, noted


def command(folder: Path) -> list[str]:
    return ["--command", shlex.join([sys.executable, str(HERE / "plain_server.py"), str(folder)])]


@pytest.mark.sweep
def test_a_server_is_listed_and_called(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tools", "list", "--json", *command(tmp_path)]) == 0
    tools = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert tools[0] == {
        "name": "echo", "description": "The tool echo.", "read_only": True, "schema": tools[0]["schema"],
    }  # fmt: skip
    assert main(["tools", "call", "environment", "{}", "--set", "TOWN=Bern", *command(tmp_path)]) == 0
    assert json.loads(capsys.readouterr().out)["TOWN"] == "Bern"
    assert main(["tools", "call", "error", "{}", *command(tmp_path)]) == 1
    assert capsys.readouterr().out == "it failed\n"
    assert noted(tmp_path, "ran") == ["environment", "error"]


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["list"], 2, "either --command or --url"),
        (["list", "--command", "a", "--url", "http://localhost"], 2, "either --command or --url"),
        (["list", "--command", "'"], 2, "cannot be read"),
        (["list", "--command", "a", "--set", "x"], 2, "not NAME=VALUE"),
        (["list", "--command", "a-program-that-is-missing"], 1, "was not found"),
        (["list", "--url", "ftp://host"], 1, "not an http"),
    ],
)
def test_wrong_commands_say_what_is_wrong(
    words: list[str], status: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tools", *words]) == status
    assert said in capsys.readouterr().err


def test_other_programs_servers_are_listed_without_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".cursor").mkdir()
    server = {"command": "npx", "args": ["-y", "a b", "--key=hidden1"], "env": {"API_KEY": "very secret"}}
    (tmp_path / ".cursor/mcp.json").write_text(
        json.dumps({"mcpServers": {"notes": server, "x": {}, "y": {"url": "ftp://me:hidden1@host/"}}})
    )
    for flags in ([], ["--json"]):
        assert main(["tools", "import", *flags]) == 0
        out = capsys.readouterr().out
        assert "a b" in out
        assert "“x” was left out" in out
        assert "very secret" not in out
        assert "hidden1" not in out
