"""`draftlight launch`: what a client is started with, and that it reaches the server."""

from __future__ import annotations

import json
import os
import shlex
import signal
import stat
import subprocess
import sys
import time
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest

from core.cli import main
from core.cli.launch import CLIENTS, split, start_of
from tests.core.serve.conftest import served as served
from tests.core.serve.served import Served
from tests.processes import children, needs_programs_in

# A client that says what it was started with, asks the server, and ends with a status of its own.
CLIENT = """\
import json, os, sys, urllib.request
with urllib.request.urlopen(os.environ["ANTHROPIC_BASE_URL"] + "/v1/models") as reply:
    models = json.load(reply)
print(json.dumps([sys.argv[1:], os.environ["ANTHROPIC_MODEL"], models["data"][0]["id"]]))
sys.exit(7)
"""


def begin(*arguments: str, path: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "PATH": str(path)}
    command = [sys.executable, "-m", "core.cli", "launch", *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True)


def program_in(folder: Path, text: str) -> Path:
    program = folder / "claude"
    program.write_text(text)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return program


@pytest.mark.sweep
def test_a_client_uses_the_server_and_gives_its_status(toy_folder: Path, tmp_path: Path) -> None:
    needs_programs_in(tmp_path)
    # A shell starts it: the first line of a script cannot name an interpreter whose path has a space.
    (tmp_path / "claude.py").write_text(CLIENT)
    words = shlex.join([sys.executable, str(tmp_path / "claude.py")])
    program_in(tmp_path, f'#!/bin/sh\nexec {words} "$@"\n')
    ran = begin("claude", "--model", str(toy_folder), "--", "-p", "--model", "x", path=tmp_path)
    out, err = ran.communicate(timeout=120)
    assert ran.returncode == 7, err
    assert json.loads(out) == [["-p", "--model", "x"], "toy", "toy"]


@pytest.mark.sweep
def test_a_client_that_cannot_start_is_named(toy_folder: Path, tmp_path: Path) -> None:
    needs_programs_in(tmp_path)
    program = program_in(tmp_path, "#!/no/such/interpreter\n")
    ran = begin("claude", "--model", str(toy_folder), path=tmp_path)
    _, err = ran.communicate(timeout=120)
    assert ran.returncode == 1
    assert f"{program} could not be started" in err
    assert CLIENTS["claude"] in err


@pytest.mark.sweep
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_while_the_model_is_loaded(
    number: signal.Signals, toy_folder: Path, tmp_path: Path
) -> None:
    needs_programs_in(tmp_path)
    program_in(tmp_path, "#!/bin/sh\necho begun\n")
    process = begin("claude", "--model", str(toy_folder), path=tmp_path)
    while not children(process.pid):
        time.sleep(0.01)
    process.send_signal(number)
    assert process.communicate(timeout=60) == ("", "")
    assert process.returncode == 130


@pytest.mark.sweep
def test_a_client_is_ended_with_it_and_its_signal_is_a_status(toy_folder: Path, tmp_path: Path) -> None:
    needs_programs_in(tmp_path)
    program_in(tmp_path, "#!/bin/sh\ntrap 'kill -KILL $$' TERM\necho begun\nwhile :; do :; done\n")
    process = begin("claude", "--model", str(toy_folder), path=tmp_path)
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    for number in (signal.SIGINT, signal.SIGTERM):  # the first one is for the client
        process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert (out, "Traceback" in err, process.returncode) == ("", False, 128 + signal.SIGKILL)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_missing_client_is_named_with_what_installs_it(
    client: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["launch", client]) == 1
    said = capsys.readouterr().err
    assert f"“{client}” is not installed" in said
    assert CLIENTS[client] in said


def test_what_follows_two_dashes_is_the_clients() -> None:
    assert split(["launch", "codex", "--quiet", "--", "exec", "--", "x"]) == (
        ["launch", "codex", "--quiet"],
        ["exec", "--", "x"],
    )
    assert split(["launch", "codex"]) == (["launch", "codex"], [])
    assert split(["generate", "--", "-x"]) == (["generate", "--", "-x"], [])


def test_each_client_gets_address_model_and_context(served: Served) -> None:
    model = served.answers.gate.model
    assert model is not None
    address = "http://127.0.0.1:9"
    words, environment = start_of("claude", address, model, ["-c"])
    assert words == ["-c"]
    assert environment["ANTHROPIC_BASE_URL"] == address
    words, environment = start_of("codex", address, model, ["exec"])
    assert (words[-1], environment) == ("exec", {})
    values = [value for flag, value in pairwise(words) if flag == "-c"]
    config = tomllib.loads("\n".join(values))
    assert (config["model"], config["model_context_window"]) == ("toy", model.context_tokens)
    assert config["model_providers"]["draftlight"]["base_url"] == f"{address}/v1"
    opencode = json.loads(start_of("opencode", address, model, [])[1]["OPENCODE_CONFIG_CONTENT"])
    assert opencode["model"] == "draftlight/toy"
    provider = opencode["provider"]["draftlight"]
    assert provider["options"]["baseURL"] == f"{address}/v1"
    assert provider["models"]["toy"]["limit"]["context"] == model.context_tokens
