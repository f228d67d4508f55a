"""Coding agents against the server: a call and its result, a kill that cancels, a prompt that is too long.

A scripted model answers, so that any machine runs them in seconds. They are npm packages, locked in
`agents/`; without Node they are skipped. Their homes are empty folders, their telemetry is off, and a proxy
for HTTPS that does not exist keeps them from reaching other machines.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from core.cli.launch import start_of
from core.events import ModelInfo
from core.serve.served_requests import ServedRequest, ServedState
from tests.clients.conftest import HERE
from tests.clients.scripted_model import DONE, write_scripted_model
from tests.core.serve.served import Served
from tests.core.serve.served import serving as serve_model

COMMAND = "echo called > called.txt"
QUESTION = "Run the command."
SHORT_CONTEXT_TOKENS = 1024
STARTER_CONTEXT_TOKENS = 8192
LONGEST_TOKENS = 512
_RUN_S = 300
_STARTER_S = 1500  # a CPU reads 6,000 to 8,000 tokens in one to five minutes
_NOBODY = "http://127.0.0.1:9"
# npm runs no scripts of packages; these two copy the program for this system over a placeholder.
_COPY_BINARY = ("@anthropic-ai/claude-code/install.cjs", "opencode-ai/postinstall.mjs")
_CONTINUE = """\
name: local
version: 1.0.0
schema: v1
models:
  - {{name: Draftlight, provider: openai, model: scripted, apiBase: "{base}", apiKey: x, roles: [chat],
      capabilities: [tool_use]}}
"""


class Agent(Struct, frozen=True):
    """An agent: its program, the tool that runs commands, that tool's arguments, and its own arguments.

    `prompt_tokens`: approximate length of its own prompt. `compacts_for_ever`: where that is too long it
    shortens the conversation and asks again until it is stopped.
    """

    program: str
    tool: str
    call: dict[str, Any]
    arguments: tuple[str, ...]
    prompt_tokens: int
    compacts_for_ever: bool = False


AGENTS = {
    "claude": Agent(
        "claude", "Bash", {"command": COMMAND, "description": "x"},
        ("-p", QUESTION, "--allowedTools", "Bash", "--output-format", "json"),
        prompt_tokens=20_000,
    ),
    "codex": Agent(
        "codex", "exec_command", {"cmd": COMMAND},
        ("exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--json", QUESTION),
        prompt_tokens=6_300,
    ),
    "opencode": Agent(
        "opencode", "bash", {"command": COMMAND, "description": "x"}, ("run", "--format", "json", QUESTION),
        prompt_tokens=7_700, compacts_for_ever=True,
    ),
    "qwen": Agent(
        "qwen", "run_shell_command", {"command": COMMAND, "is_background": False},
        ("--yolo", "--auth-type", "openai", "-p", QUESTION, "--output-format", "json"),
        prompt_tokens=18_500,
    ),
    "continue": Agent("cn", "Bash", {"command": COMMAND}, ("--auto", "-p", QUESTION), 3_000),
}  # fmt: skip


@pytest.fixture(scope="session")
def programs(environments: Path) -> Path:
    """The folder with the agents' programs, which npm installs once."""
    if shutil.which("npm") is None:
        pytest.skip("the agents need Node, and npm is not installed")
    folder = environments / "agents"
    lock = (HERE / "agents" / "package-lock.json").read_bytes()
    installed = folder / ".installed"
    if not installed.exists() or installed.read_bytes() != lock:
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(HERE / "agents" / name, folder)
        # Not `npm ci`: it looks up programs for other systems, which some registries do not have.
        command = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts"]
        _run_in(folder, command)
        for script in _COPY_BINARY:
            _run_in(folder, ["node", f"node_modules/{script}"])
        installed.write_bytes(lock)
    return folder / "node_modules" / ".bin"


def _run_in(folder: Path, command: Sequence[str]) -> None:
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert ran.returncode == 0, f"{command}: {ran.stdout}{ran.stderr}"


class AgentServer:
    """A server with a scripted model. `base` has no /v1."""

    def __init__(self, served: Served, context_tokens: int) -> None:
        self.base = f"http://127.0.0.1:{served.port}"
        self._served = served
        self._context_tokens = context_tokens

    @property
    def records(self) -> tuple[ServedRequest, ...]:
        """Its requests, the oldest first."""
        return self._served.records

    def count(self, state: ServedState) -> int:
        """Requests that are in this state."""
        return sum(record.state == state for record in self.records)

    def start(self, agent: str, programs: Path, folder: Path) -> subprocess.Popen[str]:
        """The agent in `folder`, in a process group of its own."""
        given = AGENTS[agent]
        arguments, more = self._start_of(agent, folder)
        environment = {
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(folder / "home"),
            "LANG": "C.UTF-8",
            "DO_NOT_TRACK": "1",
            "HTTPS_PROXY": _NOBODY,
            "NO_PROXY": "127.0.0.1,localhost",
            "CONTINUE_TELEMETRY_ENABLED": "0",
            **more,
        }
        (folder / "home").mkdir()
        return subprocess.Popen(
            [programs / given.program, *arguments], cwd=folder, env=environment, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip

    def _start_of(self, agent: str, folder: Path) -> tuple[Sequence[str], Mapping[str, str]]:
        arguments = AGENTS[agent].arguments
        if agent == "qwen":
            said = {"OPENAI_BASE_URL": f"{self.base}/v1", "OPENAI_API_KEY": "x", "OPENAI_MODEL": "scripted"}
            return arguments, said
        if agent == "continue":
            config = folder / "continue.yaml"
            config.write_text(_CONTINUE.format(base=f"{self.base}/v1"))
            return ("--config", str(config), *arguments), {}
        model = ModelInfo(
            "scripted", "", "", "", "llama", "", "", 0, 0, self._context_tokens, 0, 1, speculates=True
        )
        return start_of(agent, self.base, model, arguments)


@contextmanager
def serving(folder: Path, agent: str, context_tokens: int = 131_072) -> Iterator[AgentServer]:
    """A server with a scripted model that calls the tool of `agent`."""
    given = AGENTS[agent]
    write_scripted_model(folder / "scripted", given.tool, given.call, context_tokens)
    with serving_model(str(folder / "scripted"), context_tokens) as server:
        yield server


@contextmanager
def serving_model(model: str, context_tokens: int) -> Iterator[AgentServer]:
    with serve_model(Path(model), longest_answer=LONGEST_TOKENS) as served:
        yield AgentServer(served, context_tokens)


def end_of(agent: subprocess.Popen[str], limit_s: float = _RUN_S) -> str:
    """Wait for the agent's end; returns what it wrote."""
    try:
        said, _ = agent.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        os.killpg(agent.pid, signal.SIGKILL)
        said, _ = agent.communicate()
        raise AssertionError(f"it did not end: {said[-2000:]}") from None
    return said


@pytest.mark.parametrize("agent", AGENTS)
def test_an_agent_calls_a_tool_and_answers(agent: str, programs: Path, tmp_path: Path) -> None:
    with serving(tmp_path, agent) as server:
        running = server.start(agent, programs, tmp_path)
        said = end_of(running)
        records = server.records
    assert running.returncode == 0, said
    assert (tmp_path / "called.txt").read_text() == "called\n", said
    assert "".join(DONE) in said
    # The second turn begins with the prompt of the first.
    assert sum(record.cached_tokens for record in records) > 500
    assert not failures(records), said


def failures(records: Sequence[ServedRequest]) -> int:
    return sum(record.state == "failed" for record in records)


@pytest.mark.parametrize("agent", AGENTS)
def test_an_agent_that_is_killed_ends_its_request(agent: str, programs: Path, tmp_path: Path) -> None:
    with serving(tmp_path, agent) as server:
        running = server.start(agent, programs, tmp_path)
        try:
            wait_until(lambda: not all(record.is_over for record in server.records), running)
        finally:
            os.killpg(running.pid, signal.SIGKILL)
            running.communicate()
        wait_until(lambda: all(record.is_over for record in server.records))
        assert server.count("cancelled") + server.count("finished") > 0
        assert server.count("failed") == 0


def wait_until(true: Any, running: subprocess.Popen[str] | None = None, limit_s: float = _RUN_S) -> None:
    end_s = time.monotonic() + limit_s
    while not true():
        assert time.monotonic() < end_s
        assert running is None or running.poll() is None
        time.sleep(0.02)


@pytest.mark.parametrize("agent", AGENTS)
def test_a_prompt_that_is_too_long_ends_an_agent(agent: str, programs: Path, tmp_path: Path) -> None:
    """It may shorten its conversation and ask again, but not for ever, unless that is its own fault."""
    with serving(tmp_path, agent, SHORT_CONTEXT_TOKENS) as server:
        running = server.start(agent, programs, tmp_path)
        if AGENTS[agent].compacts_for_ever:
            # Each refusal makes it compact: it has understood the error.
            wait_until(lambda: server.count("failed") > 2 and server.count("finished") > 1, running)
            os.killpg(running.pid, signal.SIGKILL)
        said = end_of(running)
        assert 0 < server.count("failed") < 200
    assert re.search(r"too long|context|length|compact", said, re.IGNORECASE), said


@pytest.mark.parametrize("agent", AGENTS)
def test_the_starter_answers_an_agent_whose_prompt_it_can_read(
    agent: str, programs: Path, tmp_path: Path
) -> None:
    """The text of so small a model is of no use to an agent; requests and streams are those of any model."""
    records: Sequence[ServedRequest] = ()
    with serving_model("starter", STARTER_CONTEXT_TOKENS) as server:
        running = server.start(agent, programs, tmp_path)
        if AGENTS[agent].compacts_for_ever:
            # Its own prompt fits, but leaves so little that it compacts after each answer, and does not end.
            wait_until(lambda: server.count("finished") > 1, running, _STARTER_S)
            records = server.records
            os.killpg(running.pid, signal.SIGKILL)
        said = end_of(running, _STARTER_S)
        records = records or server.records
    if AGENTS[agent].prompt_tokens < STARTER_CONTEXT_TOKENS:
        assert not failures(records), said
        assert any(record.tokens for record in records)
    else:
        assert failures(records)
        assert re.search(r"too long|maximum context length", said), said
