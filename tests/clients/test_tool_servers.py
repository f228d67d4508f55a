"""Published tool servers, of PyPI and npm, with Draftlight's client: list, call, errors, images,
cancelling."""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from core.tools.messages import CallResult, ServerEntry, ToolsError
from tests.core.tools.serving import Serving, outcome, until

_PAGE = b"<html><head><title>Ferry</title></head><body><p>It leaves at 8:40.</p></body></html>"


@pytest.fixture(scope="module")
def serving() -> Iterator[Serving]:
    held = Serving()
    yield held
    held.close()


@pytest.fixture
def start(serving: Serving, environments: Path) -> Iterator[Any]:
    """Starts a published server by its name; returns the names of its tools."""
    names: list[str] = []

    def begin(name: str, *args: str, **env: str) -> set[str]:
        program = environments / "servers" / "bin" / name
        if program.exists():
            entry = ServerEntry(name, str(program), args, env)
        else:
            packages = environments / "servers-js" / "node_modules" / "@modelcontextprotocol"
            if not packages.exists():
                pytest.skip("these servers need Node, and npm is not installed")
            entry = ServerEntry(name, "node", (str(packages / name / "dist" / "index.js"), *args), env)
        state = serving.run(serving.client.start(entry))
        assert state.phase == "ready", (state.problem, state.hint, serving.lines(name)[-10:])
        names.append(name)
        return {tool.name for tool in state.tools}

    yield begin
    for name in names:
        serving.run(serving.client.stop(name))


def called(serving: Serving, server: str, tool: str, **arguments: Any) -> CallResult:
    found: CallResult = serving.run(serving.client.call(server, tool, json.dumps(arguments)))
    return found


def test_time(serving: Serving, start: Any) -> None:
    assert start("mcp-server-time") == {"get_current_time", "convert_time"}
    result = called(serving, "mcp-server-time", "get_current_time", timezone="Europe/Zurich")
    assert json.loads(result.text)["timezone"] == "Europe/Zurich"
    assert called(serving, "mcp-server-time", "get_current_time", timezone="Nowhere").is_error
    assert called(serving, "mcp-server-time", "get_current_time").is_error


class _Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/ferry" else 404)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(_PAGE if self.path == "/ferry" else b"")

    def log_message(self, *args: object) -> None:
        pass


def test_fetch(serving: Serving, start: Any) -> None:
    assert start("mcp-server-fetch", "--allow-private-ips") == {"fetch"}
    with HTTPServer(("127.0.0.1", 0), _Page) as pages:
        thread = threading.Thread(target=pages.serve_forever)
        thread.start()
        result = called(
            serving, "mcp-server-fetch", "fetch", url=f"http://127.0.0.1:{pages.server_port}/ferry", raw=True
        )
        missing = called(
            serving, "mcp-server-fetch", "fetch", url=f"http://127.0.0.1:{pages.server_port}/none"
        )
        pages.shutdown()
        thread.join()
    assert "It leaves at 8:40." in result.text
    assert missing.is_error


def test_git(serving: Serving, start: Any, tmp_path: Path) -> None:
    if not shutil.which("git"):
        pytest.skip("git is not installed")
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / "notes ü.txt").write_text("new")
    assert "git_status" in start("mcp-server-git", "--repository", str(tmp_path))
    result = called(serving, "mcp-server-git", "git_status", repo_path=str(tmp_path))
    assert "Untracked files" in result.text


def test_filesystem(serving: Serving, start: Any, tmp_path: Path) -> None:
    (tmp_path / "a ü.txt").write_text("Grüße 🚢", "utf-8")
    assert "read_text_file" in start("server-filesystem", str(tmp_path))
    result = called(serving, "server-filesystem", "read_text_file", path=str(tmp_path / "a ü.txt"))
    assert result.text == "Grüße 🚢"
    outside = called(serving, "server-filesystem", "read_text_file", path="/etc/passwd")
    assert outside.is_error
    assert "root:" not in outside.text
    called(serving, "server-filesystem", "write_file", path=str(tmp_path / "b"), content="x" * 2_000_000)
    big = called(serving, "server-filesystem", "read_text_file", path=str(tmp_path / "b"))
    assert big.cut


def test_memory(serving: Serving, start: Any, tmp_path: Path) -> None:
    assert "create_entities" in start("server-memory", MEMORY_FILE_PATH=str(tmp_path / "graph.json"))
    entity = {"name": "Zoë", "entityType": "person", "observations": ["likes 🚢"]}
    called(serving, "server-memory", "create_entities", entities=[entity])
    assert "Zoë" in called(serving, "server-memory", "read_graph").text


def _everything(serving: Serving, name: str, tools: set[str]) -> None:
    assert {"echo", "get-tiny-image"} <= tools
    assert "Grüße" in called(serving, name, "echo", message="Grüße").text
    image = called(serving, name, "get-tiny-image")
    assert [one.mime for one in image.images] == ["image/png"]
    assert image.images[0].data.startswith(b"\x89PNG")
    slow = serving.client.call(
        name, "trigger-long-running-operation", '{"duration": 30, "steps": 30}', timeout_s=0.5
    )
    error = serving.run(outcome(slow))
    assert isinstance(error, ToolsError)
    assert error.ran is None
    assert "again" in called(serving, name, "echo", message="again").text


def test_everything(serving: Serving, start: Any) -> None:
    tools = start("server-everything")
    _everything(serving, "server-everything", tools)
    environment = json.loads(called(serving, "server-everything", "get-env").text)
    assert "CLIENTS_ENVIRONMENTS" not in environment
    assert "PATH" in environment


def test_everything_over_http(serving: Serving, environments: Path) -> None:
    package = environments / "servers-js/node_modules/@modelcontextprotocol/server-everything/dist/index.js"
    if not package.exists():
        pytest.skip("this server needs Node, and npm is not installed")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = subprocess.Popen(
        ["node", package, "streamableHttp"], env={"PATH": "/usr/bin:/usr/local/bin", "PORT": str(port)},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        serving.run(until(lambda: _listens(port)))
        entry = ServerEntry("remote", url=f"http://127.0.0.1:{port}/mcp")
        state = serving.run(serving.client.start(entry))
        assert state.phase == "ready", state
        _everything(serving, "remote", {tool.name for tool in state.tools})

        async def lose() -> ToolsError:
            slow = serving.client.call(
                "remote", "trigger-long-running-operation", '{"duration": 30, "steps": 3}'
            )
            task = asyncio.ensure_future(slow)
            await asyncio.sleep(0.5)
            server.kill()
            error = await outcome(task)
            assert isinstance(error, ToolsError)
            return error

        assert serving.run(lose()).ran is None
        serving.run(until(lambda: serving.client.states["remote"].phase == "failed"))
    finally:
        server.kill()
        server.wait()
        serving.run(serving.client.stop("remote"))


def _listens(port: int) -> bool:
    with socket.socket() as line:
        return line.connect_ex(("127.0.0.1", port)) == 0
