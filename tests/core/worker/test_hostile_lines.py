"""What a caller got wrong is named as the caller's, and costs neither time nor memory."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from core.events import (
    Failed,
    Finished,
    ImportModel,
    LoadModel,
    ModelUnloaded,
    RemoveModel,
    Token,
    TokenCount,
)
from core.events.codec import LINE_LIMIT_BYTES, BadLine, WorkerExited, failure
from tests.core.worker.test_worker import Conversation, ask, worker

_M = 8_000_000
_CHAT = b'{"type":"generate","request":"r","messages":[%s]}'
LARGE = {
    "lists in an unknown field": b'{"type":"generate","request":"r","x":[' + b"[]," * (_M // 3) + b"1]}",
    "objects": b"[" + b"{}," * (_M // 3) + b"{}]",
    "settings": b'{"type":"generate","request":"r","messages":[],"settings":{"a":{%s}}}'
    % b",".join(b'"k%d":1' % i for i in range(_M // 12)),
    "messages": _CHAT % b",".join([b'{"role":"user","content":"a"}'] * (_M // 31)),
    "words": _CHAT % (b'{"role":"user","content":"%s"}' % (b"hello wor" * (_M // 9))),
    "one word": _CHAT % (b'{"role":"user","content":"%s"}' % (b"a" * _M)),
    "a text to count": b'{"type":"count_tokens","request":"r","text":"%s"}' % (b"a" * _M),
    "a path": b'{"type":"load_model","model":"%s"}' % (b"a/" * (_M // 2)),
}


def _peak_mb(pid: int | None) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) // 1024


async def _raw(talk: Conversation, line: bytes) -> None:
    process = talk.client._process
    assert process is not None
    assert process.stdin is not None
    process.stdin.write(line + b"\n")
    await process.stdin.drain()


@pytest.mark.sweep
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")
async def test_a_line_of_8_mb_takes_seconds_and_little_memory(toy_folder: Path) -> None:
    async with worker(toy_folder) as talk:
        before_mb = _peak_mb(talk.client.pid)
        for name, line in LARGE.items():
            started = time.monotonic()
            await _raw(talk, line)
            while True:
                heard = await talk.until(object)  # type: ignore[type-abstract]
                if isinstance(heard, Failed | TokenCount):
                    break
            assert time.monotonic() - started < 10, name
            assert isinstance(heard, TokenCount) or len(heard.message) < 3000, name
            assert isinstance(heard, TokenCount) or heard.code != "internal", name
        assert _peak_mb(talk.client.pid) - before_mb < 200
        await talk.client.send(ask("after"))
        assert (await talk.until(Finished)).stats.tokens == 40


async def test_what_cannot_be_a_path_is_the_callers() -> None:
    texts = ["nu\0ll", "x" * 300, "y/" * 4000, "~nobody-is-called-so/x", "/etc/passwd/x", ""]
    async with worker() as talk:
        for text in texts:
            for command in (LoadModel(text), ImportModel("i", text), RemoveModel("d", text)):
                await talk.client.send(command)
                failed = await talk.until(Failed)
                assert failed.kind == "request", failed
                assert failed.message
                assert failed.hint
                assert len(failed.message) < 600


def test_what_the_system_says_of_a_file_is_told_as_that() -> None:
    told = failure(PermissionError(13, "Permission denied", "/secret/config.json"), command="load_model")
    assert (told.kind, told.code) == ("request", "bad-path")
    assert told.message == "/secret/config.json: Permission denied."
    assert failure(OSError("no file"), command="x").code == "internal"


@pytest.mark.sweep
async def test_a_line_without_end_is_skipped_in_both_directions(toy_folder: Path) -> None:
    talking = (
        "import sys\n"
        f"sys.stdout.write('x' * ({LINE_LIMIT_BYTES} + 70000) + '\\n')\n"
        'print(\'{"type":"model_unloaded"}\')\n'
    )
    async with worker() as talk:
        for head, told in ((b"", ("", "")), (b'{"type":"generate","request":"r",', ("generate", "r"))):
            await _raw(talk, head + b"x" * (LINE_LIMIT_BYTES + 70_000))
            failed = await talk.until(Failed)
            assert "bytes" in failed.message
            assert (failed.command, failed.request) == told
        await talk.client.send(LoadModel(str(toy_folder)))
        await talk.client.send(ask("r"))
        assert len([await talk.until(Token)]) == 1
    async with worker(command=[sys.executable, "-c", talking]) as talk:
        assert "bytes" in (await talk.until(BadLine)).message
        await talk.until(ModelUnloaded)
        await talk.until(WorkerExited)
