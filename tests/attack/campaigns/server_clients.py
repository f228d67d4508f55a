"""Clients of the local server that vanish at a random moment, alone and several at once.

A real server, a real worker on a tiny model that sees. Each case is one to five clients, streaming or not,
with short and long prompts, half of them with an image, which may be a wrong one. Each goes away at some
moment: before its request is whole, while it waits, while its prompt is read, while it is answered; with a
reset, a close or a half-closed line. Nobody else asks. Then the queue must be empty and the worker idle in
a chunk or a step of the tiny model (milliseconds; half a second is allowed here, for machines that are busy),
and no task, connection, descriptor or image may be left; over all cases the server's process may not grow.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import random
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.attack.campaign import Campaign, Outcome, case_random
from tests.attack.support.hostile_http import CHAT, question
from tests.attack.support.sent_images import bad_url, drawn, left_files, url
from tests.attack.support.toy_home import seeing_home
from tests.core.serve.served import Served, serving

# A context that answers for seconds, so that a request that goes on is seen to.
_CONTEXT_TOKENS = 4096
_IDLE_S = 0.5
_BUSY_MACHINE_S = 5.0
_MORE_MB = 12.0
_RESET = struct.pack("ii", 1, 0)


def _run(seed: int, cases: Sequence[int]) -> Iterator[Outcome]:
    with seeing_home(_CONTEXT_TOKENS) as folder, serving(folder / "toy") as served:
        served.chat()
        tasks, descriptors = _tasks(served), _descriptors()
        settled_mb = 0.0
        for number, case in enumerate(cases):
            chance = case_random("server-clients", seed, case)
            clients = [_Client(served, chance) for _ in range(chance.choice((1, 1, 1, 2, 3, 5)))]
            for client in sorted(clients, key=lambda client: client.stays_s):
                client.vanish()
            vanished_s = time.monotonic()
            fault = _until_idle(served, tasks, descriptors)
            idle_s = time.monotonic() - vanished_s
            counts = {"clients": float(len(clients)), **_states(served)}
            served.answers.requests.clear()
            held_mb = _held_mb()
            if number <= len(cases) // 2:
                settled_mb = max(settled_mb, held_mb)
            grown_mb = max(0.0, held_mb - settled_mb)
            if grown_mb > _MORE_MB:
                fault = fault or f"the server holds {grown_mb:.0f} MB more than {settled_mb:.0f} MB at first"
            if not fault and served.chat(max_tokens=2).status != 200:
                fault = "the next one is not answered"
            yield Outcome(case, fault, counts, {"idle_after_s": idle_s, "grown_mb": grown_mb})


class _Client:
    """One that has asked. `stays_s` is how long, from its beginning."""

    def __init__(self, served: Served, chance: random.Random) -> None:
        self._chance = chance
        self._began_s = time.monotonic()
        self.stays_s = chance.choice((0.0, chance.uniform(0.0, 0.02), chance.uniform(0.0, 0.4)))
        content: str | list[object]
        content = "".join(chance.choice("abcdefgh ") for _ in range(chance.choice((5, 300, 2500))))
        if chance.random() < 0.5:
            sent = bad_url(chance) if chance.random() < 0.3 else url(drawn(chance))
            image = {"type": "image_url", "image_url": {"url": sent}}
            content = [image, {"type": "text", "text": content}]
        fields = {
            "stream": chance.random() < 0.6,
            "max_tokens": 3000,
            "drafter": chance.choice(("off", "auto", "ngram-mod")),
            "logit_bias": {"0": -100},
            "settings": {"prefill.chunk_tokens": 64},
        }
        body = json.dumps(question(**fields, messages=[{"role": "user", "content": content}])).encode()
        head = f"POST {CHAT} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        whole = f"{head}content-length: {len(body)}\r\n\r\n".encode() + body
        self._line = served.raw()
        self._line.sendall(whole if chance.random() < 0.85 else whole[: chance.randrange(len(whole))])

    def vanish(self) -> None:
        """Go, when it is time."""
        time.sleep(max(0.0, self._began_s + self.stays_s - time.monotonic()))
        match self._chance.choice(("close", "reset", "half", "read")):
            case "reset":
                self._line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            case "half":
                self._line.shutdown(socket.SHUT_WR)
            case "read":
                self._line.settimeout(0.01)
                with contextlib.suppress(OSError):
                    self._line.recv(200)
        self._line.close()


def _until_idle(served: Served, tasks: int, descriptors: int) -> str:
    """Wait until nothing is left; what is, after the time that it may take."""
    until = time.monotonic() + _IDLE_S
    late = time.monotonic() + _BUSY_MACHINE_S
    while (left := _left(served, tasks, descriptors)) and time.monotonic() < late:
        if time.monotonic() > until and _went_on(served):
            break
        time.sleep(0.005)
    return left


def _left(served: Served, tasks: int, descriptors: int) -> str:
    if served.answers.sent:
        return f"{len(served.answers.sent)} are still in the queue"
    if served.answers.gate.open:
        return "the worker still answers"
    if (more := _tasks(served) - tasks) > 0:
        return f"{more} tasks are left"
    if (more := _descriptors() - descriptors) > 0:
        gc.collect()
        return f"{more} descriptors are left"
    if left := left_files():
        return f"{len(left)} folders of images are left"
    return ""


def _went_on(served: Served) -> bool:
    """Whether tokens come for somebody who is not there."""
    before = sum(record.tokens for record in served.records)
    time.sleep(0.05)
    return sum(record.tokens for record in served.records) > before + 1


def _states(served: Served) -> dict[str, float]:
    states = [record.state for record in served.records]
    return {state: float(states.count(state)) for state in sorted(set(states))}


def _tasks(served: Served) -> int:
    async def count() -> int:
        return len(asyncio.all_tasks())

    return served.on_loop(count)


def _descriptors() -> int:
    folder = Path("/proc/self/fd")
    return len(os.listdir(folder)) if folder.exists() else 0


def _held_mb() -> float:
    try:
        pages = Path("/proc/self/statm").read_text().split()[1]
    except OSError:
        return 0.0
    return int(pages) * os.sysconf("SC_PAGE_SIZE") / 1e6


CAMPAIGN = Campaign(
    "server-clients",
    "A client that vanishes, at whatever moment, ends its request within a step or a chunk; nothing is left.",
    12,
    200,
    _run,
)
