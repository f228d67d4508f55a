"""Servers as real processes: start, list, call, cancel, death, restart, limits, and that no call runs
twice."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core.tools.messages import RESULT_TEXT_BYTES, CallResult, ServerEntry, ToolsError
from core.tools.secrets import forget, keep, missing
from tests.core.tools.plain_server import PNG
from tests.core.tools.serving import HERE, Serving, is_alive, noted, outcome, plain, until, wait_until


@pytest.fixture(scope="module")
def serving() -> Iterator[Serving]:
    held = Serving()
    yield held
    held.close()


@pytest.fixture
def own() -> Iterator[Serving]:
    """For tests that kill the process."""
    held = Serving()
    yield held
    held.close()


def started(serving: Serving, folder: Path, *words: str, **env: str) -> str:
    """The name of a new server that is ready."""
    name = f"plain {folder.name}"
    state = serving.run(serving.client.start(plain(folder, *words, name=name, **env)))
    assert state.phase == "ready", state
    return name


def called(serving: Serving, server: str, tool: str, **arguments: Any) -> CallResult:
    found: CallResult = serving.run(serving.client.call(server, tool, json.dumps(arguments)))
    return found


def refused(serving: Serving, server: str, tool: str, timeout_s: float = 60, **arguments: Any) -> ToolsError:
    work = serving.client.call(server, tool, json.dumps(arguments), timeout_s=timeout_s)
    error = serving.run(outcome(work))
    assert isinstance(error, ToolsError), error
    return error


def test_no_process_runs_before_a_server_is_started() -> None:
    own = Serving()
    error = own.run(outcome(own.client.call("none", "echo", "{}")))
    assert (isinstance(error, ToolsError), error.ran, own.client.pid) == (True, False, None)
    own.run(own.client.stop("none"))
    own.close()
    assert own.client.pid is None


def test_a_server_is_listed_and_called(serving: Serving, tmp_path: Path) -> None:
    name = started(serving, tmp_path)
    tools = {tool.name: tool for tool in serving.client.states[name].tools}
    assert (tools["echo"].read_only, tools["count"].read_only) == (True, False)
    assert json.loads(tools["echo"].schema)["properties"]["arguments"]["default"] == "x"
    given = {"text": 'Grüße 🚢 \u202e"\\', "none": None, "arguments": {"a": [1, None, 1e300]}, "name": "x"}
    result = called(serving, name, "echo", **given)
    assert json.loads(result.text) == given
    assert (result.is_error, result.cut, result.images, result.other) == (False, False, (), ())
    assert noted(tmp_path, "ran") == ["echo"]
    serving.run(serving.client.stop(name))
    assert serving.client.states[name].phase == "off"


def test_arguments_that_are_no_object_are_not_sent(serving: Serving, tmp_path: Path) -> None:
    name = started(serving, tmp_path)
    for text in ("", "[1]", "{", '{"a": 1e999}', "null", '"text"', "[" * 100_000):
        error = serving.run(outcome(serving.client.call(name, "echo", text)))
        assert isinstance(error, ToolsError), text[:20]
        assert error.ran is False
    error = refused(serving, name, "nothing like it")
    assert error.ran is False
    assert noted(tmp_path, "ran") == []
    serving.run(serving.client.stop(name))


def test_errors_of_a_server_are_results(serving: Serving, tmp_path: Path) -> None:
    name = started(serving, tmp_path)
    for given, text in (({}, "it failed"), ({"protocol": True}, "no such thing")):
        result = called(serving, name, "error", **given)
        assert (result.is_error, result.text) == (True, text)
    serving.run(serving.client.stop(name))


def test_a_cancelled_call_is_cancelled_at_the_server_and_the_next_one_works(
    serving: Serving, tmp_path: Path
) -> None:
    name = started(serving, tmp_path)

    async def cancel() -> None:
        task = asyncio.ensure_future(serving.client.call(name, "slow", '{"name": "first"}'))
        await until(lambda: noted(tmp_path, "ran"))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: noted(tmp_path, "cancelled"))

    serving.run(cancel())
    error = refused(serving, name, "slow", timeout_s=0.2, name="second")
    assert error.ran is None
    serving.run(until(lambda: len(noted(tmp_path, "cancelled")) == 2))
    assert noted(tmp_path, "cancelled") == ["first", "second"]
    assert called(serving, name, "echo").text == "{}"
    assert noted(tmp_path, "ran") == ["slow", "slow", "echo"]
    serving.run(serving.client.stop(name))


def test_calls_run_side_by_side(serving: Serving, tmp_path: Path) -> None:
    name = started(serving, tmp_path)

    async def both() -> None:
        slow = asyncio.ensure_future(serving.client.call(name, "slow", "{}"))
        await until(lambda: noted(tmp_path, "ran"))
        texts = [serving.client.call(name, "echo", json.dumps({"at": at})) for at in range(8)]
        assert [json.loads(one.text)["at"] for one in await asyncio.gather(*texts)] == list(range(8))
        assert not slow.done()
        slow.cancel()
        await asyncio.gather(slow, return_exceptions=True)

    serving.run(both())
    serving.run(serving.client.stop(name))


def test_a_server_that_dies_is_started_again_once_and_its_call_is_not(
    serving: Serving, tmp_path: Path
) -> None:
    name = started(serving, tmp_path)
    error = refused(serving, name, "die")
    assert error.ran is None
    # Waits for the new process.
    assert called(serving, name, "echo").text == "{}"
    assert serving.client.states[name].restarts == 1
    assert serving.phases(name) == ["starting", "ready", "ended", "starting", "ready"]
    ended = next(one for one in serving.events if getattr(one, "phase", "") == "ended" and one.server == name)
    assert "status 3" in ended.problem  # type: ignore[union-attr]
    assert refused(serving, name, "die").ran is None
    serving.run(until(lambda: serving.client.states[name].phase == "failed"))
    assert refused(serving, name, "echo").ran is False
    assert noted(tmp_path, "ran") == ["die", "echo", "die"]
    assert len(noted(tmp_path, "started")) == 2
    assert serving.run(serving.client.restart(name)).phase == "ready"
    assert serving.client.states[name].restarts == 0
    serving.run(serving.client.stop(name))


def test_a_stopped_server_ends_with_its_call_and_its_whole_group(serving: Serving, tmp_path: Path) -> None:
    name = started(serving, tmp_path, "deaf", "child")

    async def stop() -> ToolsError:
        task = asyncio.ensure_future(serving.client.call(name, "slow", "{}"))
        await until(lambda: noted(tmp_path, "ran"))
        await serving.client.stop(name)
        error = await outcome(task)
        assert isinstance(error, ToolsError)
        return error

    assert serving.run(stop()).ran is None
    pids = [int(pid) for pid in noted(tmp_path, "started")]
    assert len(pids) == 2
    serving.run(until(lambda: not any(map(is_alive, pids))))
    assert noted(tmp_path, "ran") == ["slow"]


def test_what_a_server_that_could_not_start_leaves_behind_ends(serving: Serving, tmp_path: Path) -> None:
    state = serving.run(serving.client.start(plain(tmp_path, "child", "exit=4", name="leaves")))
    assert state.phase == "failed"
    serving.run(serving.client.stop("leaves"))  # while its group is being ended
    pids = [int(pid) for pid in noted(tmp_path, "started")]
    assert len(pids) == 2
    serving.run(until(lambda: not any(map(is_alive, pids))))


def test_a_slow_server_is_waited_for_and_called_once(serving: Serving, tmp_path: Path) -> None:
    entry = plain(tmp_path, "slow=0.5", name="slow")

    async def call() -> CallResult:
        starting = asyncio.ensure_future(serving.client.start(entry))
        await until(lambda: "slow" in serving.client.states)
        result = await serving.client.call("slow", "echo", "{}")
        assert (await starting).phase == "ready"
        return result

    assert serving.run(call()).text == "{}"
    assert noted(tmp_path, "ran") == ["echo"]
    serving.run(serving.client.stop("slow"))


def test_a_server_that_is_stopped_while_it_starts_ends(serving: Serving, tmp_path: Path) -> None:
    async def stop() -> None:
        starting = asyncio.ensure_future(serving.client.start(plain(tmp_path, "silent", name="silent")))
        await until(lambda: noted(tmp_path, "started"))
        await serving.client.stop("silent")
        assert (await starting).phase == "off"

    serving.run(stop())
    pid = int(noted(tmp_path, "started")[0])
    serving.run(until(lambda: not is_alive(pid)))


def test_what_cannot_start_says_why_and_what_to_do(serving: Serving, tmp_path: Path) -> None:
    cases = {
        "gone": (plain(tmp_path / "a", "exit=4", name="gone"), "status 4", "missing key"),
        "npx": (ServerEntry("npx", "npx-that-is-not-here"), "was not found", "Install it"),
        "relative": (ServerEntry("relative", "./server"), "relative path", "whole path"),
        "cat": (ServerEntry("cat", "cat"), "cannot be used", "log"),
        "true": (ServerEntry("true", "true"), "status 0", "log"),
    }
    for name, (entry, problem, hint) in cases.items():
        state = serving.run(serving.client.start(entry))
        assert state.phase == "failed", state
        assert problem in state.problem, state
        assert hint in state.hint, state
        assert refused(serving, name, "echo").ran is False
    with pytest.raises(ToolsError):
        serving.run(serving.client.start(ServerEntry("both", "a", url="http://localhost")))


@pytest.mark.sweep
def test_a_server_gets_a_short_environment_and_its_own(
    serving: Serving, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-another-program")
    own = Serving()  # the process inherits the environment of this test
    name = started(own, tmp_path, TOWN="Bern")
    environment = json.loads(called(own, name, "environment").text)
    assert environment["TOWN"] == "Bern"
    assert set(environment) <= {
        "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TOWN", "USER",
    }  # fmt: skip
    own.close()


def test_results_are_bounded_and_what_is_not_text_is_named(serving: Serving, tmp_path: Path) -> None:
    name = started(serving, tmp_path)
    result = called(serving, name, "big", letters=RESULT_TEXT_BYTES)
    assert result.cut
    assert RESULT_TEXT_BYTES - 4 <= len(result.text.encode()) <= RESULT_TEXT_BYTES
    assert "Cut here: the result has 2,097,152 bytes" in result.text[-100:]
    content = [
        {"type": "text", "text": "one"},
        {"type": "image", "data": PNG, "mimeType": "image/png"},
        {"type": "audio", "data": PNG, "mimeType": "audio/wav"},
        {"type": "resource_link", "uri": "http://example.org/x", "name": "x"},
        {"type": "resource", "resource": {"uri": "file:///a", "text": "two"}},
        {"type": "resource", "resource": {"uri": "file:///b", "blob": PNG, "mimeType": "application/zip"}},
    ]
    result = called(serving, name, "parts", content=content)
    assert result.text == "one\n\ntwo"
    assert [(image.mime, image.data) for image in result.images] == [("image/png", base64.b64decode(PNG))]
    assert len(result.other) == 3
    assert "http://example.org/x" in result.other[1]
    serving.run(serving.client.stop(name))


def test_a_message_without_end_is_dropped_and_its_call_told(serving: Serving, tmp_path: Path) -> None:
    name = started(serving, tmp_path)
    error = refused(serving, name, "long")
    assert error.ran is None
    assert "was dropped" in error.message
    assert called(serving, name, "echo").text == "{}"
    serving.run(serving.client.stop(name))


def test_what_is_no_message_goes_to_the_log(serving: Serving, tmp_path: Path) -> None:
    name = started(serving, tmp_path, "banner")
    assert called(serving, name, "junk").text == "after junk"
    assert called(serving, name, "twice").text == "first"
    assert called(serving, name, "half").text == "a\ufffd"
    assert called(serving, name, "echo").text == "{}"
    assert "Welcome to the server!" in serving.lines(name)
    assert "no message" in serving.lines(name)
    serving.run(serving.client.stop(name))


def test_a_log_without_end_is_thinned_out_and_stops_nothing(serving: Serving, tmp_path: Path) -> None:
    name = started(serving, tmp_path, "flood")
    for _ in range(20):
        assert called(serving, name, "echo").text == "{}"
    called(serving, name, "log", lines=1, more="\x1b[31m" + "x" * 5000)
    serving.run(until(lambda: any("lines left out" in line for line in serving.lines(name))))
    seconds = 60
    assert len(serving.lines(name)) < 52 * seconds
    assert all(len(line) <= 2001 and line.isprintable() for line in serving.lines(name))
    serving.run(serving.client.stop(name))


def test_changed_tools_are_listed_again(serving: Serving, tmp_path: Path) -> None:
    name = started(serving, tmp_path, "many=200")
    assert len(serving.client.states[name].tools) == 214
    called(serving, name, "change", name="brand_new")
    serving.run(until(lambda: serving.client.states[name].tools[14].name == "brand_new"))
    serving.run(serving.client.stop(name))


def test_secrets_are_not_in_the_log(serving: Serving, tmp_path: Path) -> None:
    name = "plain secret"
    entry = ServerEntry(
        name, sys.executable, (str(HERE / "plain_server.py"), str(tmp_path), "--key", "s3cr3t", "db://a:hidden1@b"),
        {"TOKEN": "s3cr3t-value"}, secrets=("TOKEN",),
    )  # fmt: skip
    stored = keep(entry)
    assert serving.run(serving.client.start(stored)).phase == "ready"
    called(serving, name, "log", lines=1, more="TOKEN=s3cr3t-value, {words} is wrong")
    serving.run(until(lambda: serving.lines(name)))
    # What the server got of its secrets, it wrote.
    assert serving.lines(name) == ["line 0 TOKEN=•••, --key ••• db://a:•••@b is wrong"]
    serving.run(serving.client.stop(name))
    forget(name, missing(stored))


def test_a_changed_entry_starts_another_process_and_an_equal_one_none(
    serving: Serving, tmp_path: Path
) -> None:
    name = started(serving, tmp_path)
    assert started(serving, tmp_path) == name
    assert len(noted(tmp_path, "started")) == 1
    started(serving, tmp_path, "many=1")
    assert len(noted(tmp_path, "started")) == 2
    assert serving.client.states[name].tools[-1].name == "tool0"
    serving.run(serving.client.stop(name))


@pytest.mark.sweep
def test_a_killed_process_ends_its_servers_and_starts_them_again_without_their_calls(
    own: Serving, tmp_path: Path
) -> None:
    name = started(own, tmp_path, "deaf")
    first = own.client.states[name].pid

    async def kill() -> ToolsError:
        task = asyncio.ensure_future(own.client.call(name, "slow", "{}"))
        await until(lambda: noted(tmp_path, "ran"))
        assert own.client.pid
        os.kill(own.client.pid, signal.SIGKILL)
        error = await outcome(task)
        assert isinstance(error, ToolsError)
        return error

    assert own.run(kill()).ran is None
    own.run(until(lambda: not is_alive(first)))
    assert called(own, name, "echo").text == "{}"
    assert own.client.states[name].restarts == 1
    assert noted(tmp_path, "ran") == ["slow", "echo"]


WINDOW = """
import asyncio, sys, time
from pathlib import Path
from core.tools.client import ToolsClient
from tests.core.tools.serving import plain

async def main():
    client = ToolsClient()
    for word in ("deaf", "child"):
        state = await client.start(plain(Path(sys.argv[1]) / word, word, name=word))
        assert state.phase == "ready", state
    print(client.pid, flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


def test_the_end_of_the_window_ends_all_however_it_ends(tmp_path: Path) -> None:
    root = HERE.parents[2]
    window = subprocess.Popen(
        [sys.executable, "-c", WINDOW, str(tmp_path)], stdout=subprocess.PIPE, cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
    )  # fmt: skip
    assert window.stdout
    host = int(window.stdout.readline())
    pids = [int(pid) for word in ("deaf", "child") for pid in noted(tmp_path / word, "started")]
    assert len(pids) == 3
    assert all(map(is_alive, [host, *pids]))
    window.kill()
    window.wait()
    window.stdout.close()
    wait_until(lambda: not any(map(is_alive, [host, *pids])))


def test_the_sdks_own_server_is_listed_and_called(serving: Serving) -> None:
    entry = ServerEntry("sdk", sys.executable, (str(HERE / "sdk_server.py"),))
    state = serving.run(serving.client.start(entry))
    assert state.phase == "ready", (state, serving.lines("sdk"))
    assert [tool.name for tool in state.tools] == ["add", "weather", "fail"]
    assert called(serving, "sdk", "add", a=2, b=3).text == "5"
    assert json.loads(called(serving, "sdk", "weather", town="Bern").text) == {
        "town": "Bern",
        "degrees": 21.5,
    }
    assert called(serving, "sdk", "fail", why="so").is_error
    assert called(serving, "sdk", "add", a="x").is_error
    serving.run(serving.client.stop("sdk"))


@pytest.mark.sweep
def test_closing_is_quick_and_can_be_repeated(tmp_path: Path) -> None:
    own = Serving()
    name = started(own, tmp_path)
    pids = [own.client.pid, own.client.states[name].pid]
    own.run(own.client.close())
    assert not any(is_alive(pid) for pid in pids if pid)
    error = own.run(outcome(own.client.start(plain(tmp_path))))
    assert getattr(error, "phase", "") == "failed"
    own.close()


@pytest.mark.sweep
def test_the_client_does_not_import_the_sdk() -> None:
    code = (
        "import sys, core.tools.client, core.tools.imports, core.tools.secrets, core.tools.calls;"
        "found = {name.partition('.')[0] for name in sys.modules};"
        "print(found & {'mcp', 'mcp_types', 'httpx2', 'pydantic', 'keyring'})"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "set()"
