"""The worker's reader thread survives errors."""

from __future__ import annotations

import sys
from pathlib import Path

from core.events import CountTokens, Failed, LoadModel, ModelLoaded, TokenCount
from tests.core.worker.test_worker import worker

# The real worker, but one line is too much for its memory, and one command fails in the reader itself.
_SCRIPT = """
import sys
from core.worker import main

decode = main.decode_command

def decode_or_fail(line):
    if b"too much" in line:
        raise MemoryError()
    return decode(line)

main.decode_command = decode_or_fail
take = main._Worker._take

def take_or_fail(self, command):
    if getattr(command, "text", "") == "no thread":
        raise RuntimeError("can't start new thread")
    take(self, command)

main._Worker._take = take_or_fail
sys.exit(main.main())
"""


async def test_an_error_in_the_reader_is_reported_and_the_next_command_is_read(toy_folder: Path) -> None:
    async with worker(command=[sys.executable, "-c", _SCRIPT]) as talk:
        await talk.client.send(LoadModel(str(toy_folder)))
        await talk.until(ModelLoaded)
        await talk.client.send(CountTokens("one", "too much"))
        failed = await talk.until(Failed)
        assert (failed.code, failed.command, failed.request) == ("out-of-memory", "count_tokens", "one")
        await talk.client.send(CountTokens("two", "no thread"))
        assert (await talk.until(Failed)).request == "two"
        await talk.client.send(CountTokens("three", "abc"))
        assert (await talk.until(TokenCount)).request == "three"
