"""`draftlight serve` as a person calls it: its address, its end, what it refuses, what it says."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.core.toy import write_toy_model
from tests.processes import children, set_home

_LIMIT_S = 60


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "core.cli", "serve", *arguments]


@contextmanager
def started(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], http.client.HTTPConnection]]:
    process = subprocess.Popen(
        command(*arguments, "--port", "0"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:")
        assert address.endswith("/v1")
        line = http.client.HTTPConnection(address[7:-3], timeout=_LIMIT_S)
        yield process, line
        line.close()
    finally:
        process.kill()
        process.communicate()


def chat(line: http.client.HTTPConnection, key: str = "", **fields: object) -> tuple[int, bytes]:
    body = {"messages": [{"role": "user", "content": "a secret question"}], "max_tokens": 5, **fields}
    headers = {"content-type": "application/json", "authorization": f"Bearer {key}"}
    line.request("POST", "/v1/chat/completions", json.dumps(body), headers)
    reply = line.getresponse()
    return reply.status, reply.read()


@pytest.mark.sweep
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_answers_until_it_is_stopped(toy_folder: Path, number: signal.Signals) -> None:
    with started("--model", str(toy_folder), "--temperature", "0.5") as (process, line):
        status, body = chat(line, seed=3)
        assert status == 200
        assert json.loads(body)["usage"]["completion_tokens"] == 5
        os.killpg(process.pid, number)  # as terminals and service managers do
        out, err = process.communicate(timeout=_LIMIT_S)
        assert process.returncode == 0
        assert "toy is ready" in err
        assert "Traceback" not in err
        assert "another one" not in err
        for said in (out, err):
            assert "secret" not in said


def test_a_key_is_made_kept_to_its_owner_and_asked_for(toy_folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "key"
    with started("--model", str(toy_folder), "--key-file", str(file)) as (process, line):
        key = file.read_text().strip()
        assert len(key) > 40
        assert os.stat(file).st_mode & 0o777 == 0o600
        assert chat(line)[0] == 401
        assert chat(line, key)[0] == 200
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=_LIMIT_S)
        assert key not in out + err
        assert "A new key is in" in err


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (("--host", "0.0.0.0"), 1, "API key is required"),
        (("--port", "70000"), 2, "0 to 65,535"),
        (("--drafter", "psychic"), 2, "drafting.drafter"),
        (("--model", "/no/such/folder"), 1, "no model folder"),
        (("--host", "203.0.113.7", "--key-file", "{key}"), 1, "address of this machine"),
        (("--key-file", "{open}"), 1, "chmod 600"),
        (("--key-file", "{short}"), 1, "does not contain a key"),
        (("--unload-after", "1441"), 2, "0 to 1,440"),
    ],
)
def test_what_cannot_be_served_is_said(
    toy_folder: Path, tmp_path: Path, arguments: tuple[str, ...], status: int, says: str
) -> None:
    files = {"key": "k" * 40, "open": "k" * 40, "short": "k"}
    for name, text in files.items():
        path = tmp_path / name
        path.write_text(text)
        path.chmod(0o644 if name == "open" else 0o600)
    named = [argument.format(**{name: tmp_path / name for name in files}) for argument in arguments]
    model = () if "--model" in named else ("--model", str(toy_folder))
    done = subprocess.run(
        command(*model, *named), capture_output=True, text=True, timeout=_LIMIT_S, check=False
    )
    assert done.returncode == status, done.stderr
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_a_request_loads_the_model_that_it_names_if_that_is_allowed(
    toy_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_home(monkeypatch, tmp_path)
    write_toy_model(tmp_path / "data" / "models" / "Second", seed=1)
    with started("--model", str(toy_folder), "--load-models", "--unload-after", "5") as (process, line):
        for name in ("toy", "second", "toy"):
            status, body = chat(line, model=name)
            assert status == 200
            assert json.loads(body)["model"].lower() == name
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=_LIMIT_S)
        assert "Second is ready" in err
        assert "Traceback" not in err


@pytest.mark.sweep
def test_a_worker_that_dies_is_told_and_replaced(toy_folder: Path) -> None:
    with started("--model", str(toy_folder)) as (process, line):
        before = chat(line)
        for child in children(process.pid):
            os.kill(child, signal.SIGKILL)
        assert chat(line)[0] in (200, 500)
        status, body = chat(line)
        assert status == 200
        choices = [json.loads(one)["choices"] for one in (before[1], body)]
        assert choices[0] == choices[1]
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=_LIMIT_S)
        assert "The worker ended (SIGKILL) and is being restarted." in err
