"""The worker's reader thread: it survives errors, and remembers no request that is over."""

from __future__ import annotations

import sys
from pathlib import Path

from core.events import (
    Cancel,
    CountTokens,
    Failed,
    Finished,
    Generate,
    LoadModel,
    Message,
    ModelLoaded,
    Token,
    TokenCount,
)
from core.settings import Settings, assign
from tests.core.worker.test_worker import run, worker

# The real worker, but one line is too much for its memory, one command fails in the reader itself, and
# the number of requests that it remembers is printed at the end.
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
serve = main._Worker.run

def run(self):
    status = serve(self)
    print("remembered", len(self._queue._cancelled), file=sys.stderr, flush=True)
    return status

main._Worker.run = run
sys.exit(main.main())
"""


def test_an_error_in_the_reader_is_reported_and_the_next_command_is_read(toy_folder: Path) -> None:
    async def test() -> None:
        async with worker(command=[sys.executable, "-c", _SCRIPT]) as talk:
            await talk.client.send(LoadModel(str(toy_folder)))
            await talk.until(ModelLoaded)
            await talk.client.send(CountTokens("one", "too much"))
            assert (await talk.until(Failed)).code == "out-of-memory"
            await talk.client.send(CountTokens("two", "no thread"))
            assert (await talk.until(Failed)).request == "two"
            await talk.client.send(CountTokens("three", "abc"))
            assert (await talk.until(TokenCount)).request == "three"

    run(test)


def test_cancels_of_requests_that_are_over_are_forgotten(toy_folder: Path) -> None:
    async def test() -> None:
        async with worker(command=[sys.executable, "-c", _SCRIPT]) as talk:
            await talk.client.send(LoadModel(str(toy_folder)))
            await talk.until(ModelLoaded)
            for number in range(10):
                settings = assign(Settings(), "sampling.max_tokens", 4 if number else 400)
                await talk.client.send(Cancel(f"r{number}"))  # not asked yet
                await talk.client.send(Generate(f"r{number}", (Message("user", "hello"),), settings))
            await talk.client.send(Cancel("r9"))  # still waits in the queue
            await talk.until(Token)
            await talk.client.send(Cancel("r0"))
            while len(talk.of(Finished)) < 10:
                await talk.until(Finished)
            reasons = {each.request: each.reason for each in talk.of(Finished)}
            assert (reasons["r0"], reasons["r9"]) == ("cancelled", "cancelled")
            assert reasons["r1"] != "cancelled"
            for number in range(10):
                await talk.client.send(Cancel(f"r{number}"))
            await talk.client.send(CountTokens("last", "abc"))
            await talk.until(TokenCount)
            await talk.client.stop(60)
            assert "remembered 0" in "\n".join(talk.client.log)

    run(test)
