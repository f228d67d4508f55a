"""Sends the local server what nobody should: bad JSON, wrong types, huge bodies, heads that never end.

A real server with a key, a real worker on a tiny model that sees, and a chat beside it. Each case is one line
of one client. Its answer must be a clear refusal (4xx) or a closed line within its time, say neither the key
nor a folder of this machine, and have nothing generated; only what may happen to be a right request (damaged
JSON, a half-closed line) may be answered. Images without a fault must be, and none stays on the disk. Every
so often a right request must get the answer it got at first. The times that a client has for a head and a
body are shortened, so that slow ones are seen to end.
"""

from __future__ import annotations

import contextlib
import gc
import os
import socket
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from core.serve import http, server
from core.serve.security import AccessPolicy
from tests.attack.campaign import Campaign, Outcome, case_random
from tests.attack.support.hostile_http import AGENT, CHAT, KEY, Hostile, hostile, question
from tests.attack.support.sent_images import left_files
from tests.attack.support.toy_home import seeing_home
from tests.core.serve.served import Served, serving

_CONTEXT_TOKENS = 512
_TIME_S = 1.5
# From a client's last word to the end of its line: its time, and what a busy machine takes.
_END_S = 20.0
_HELD_AT_ONCE = 30
_CHECK_EVERY = 100
_MOST_BYTES = 2_000_000
_DESCRIPTORS_AT_REST = 4
# Damaged JSON may be a request without a limit, and a wrong value a limit as long as the context: 504 tokens
# took 17 to 23 s beside five other processes (seed 450451, case 224).
_LONGEST_TOKENS = 32
_ANSWER_S = 180.0
_RIGHT = {"authorization": f"Bearer {KEY}", "user-agent": "right"}

# When it was held, and what.
_Held = tuple[float, socket.socket]


def _run(seed: int, cases: Sequence[int]) -> Iterator[Outcome]:
    doors = AccessPolicy(key=KEY, most_bytes=_MOST_BYTES)
    with (
        _hurried(),
        seeing_home(_CONTEXT_TOKENS) as folder,
        serving(folder / "toy", doors=doors, longest_answer=_LONGEST_TOKENS) as served,
    ):
        expected = _right_answer(served)
        held: list[_Held] = []
        at_first = _descriptors()
        may_be_answered = {_agent(None)}
        for number, case in enumerate(cases):
            found = hostile(case_random("server-requests", seed, case))
            if found.may_answer:
                may_be_answered.add(_agent(case))
            fault = _end_held(held, _HELD_AT_ONCE) or _try(served, found, case, str(folder), held)
            # Refused requests are recorded, too, for whoever watches the server.
            asked = {each.client for each in served.records if not each.id.startswith("refused")}
            if wrong := asked - may_be_answered:
                fault = fault or f"something was generated for {', '.join(sorted(wrong))}"
            last = number == len(cases) - 1
            if not fault and (last or number % _CHECK_EVERY == _CHECK_EVERY - 1):
                fault = _still_right(served, expected)
            if not fault and last:
                fault = _end_held(held, 0) or _nothing_left(served, at_first)
            if fault:
                fault = f"{found.kind}: {fault}"
            served.answers.requests.clear()
            yield Outcome(
                case,
                fault,
                {"requests": 1.0, "answered": float(_agent(case) in asked), found.kind: 1.0},
                _peaks(),
            )


@contextlib.contextmanager
def _hurried() -> Iterator[None]:
    before = server.HEAD_S, http.BODY_S
    server.HEAD_S = http.BODY_S = _TIME_S
    try:
        yield
    finally:
        server.HEAD_S, http.BODY_S = before


def _agent(case: int | None) -> str:
    """What a case calls itself; None is whoever asks rightly."""
    return "right" if case is None else f"case-{case}"


def _try(served: Served, found: Hostile, case: int, folder: str, held: list[_Held]) -> str:
    """Send it; what is wrong with what came of it."""
    line = served.raw()
    line.settimeout(_ANSWER_S if found.may_answer else _END_S)
    try:
        for part in found.parts:
            line.sendall(part.replace(AGENT.encode(), _agent(case).encode()))
        if found.then == "hold":
            held.append((time.monotonic(), line))
            return ""
        if found.then == "drop":
            line.close()
            return ""
        if found.then == "half":
            line.shutdown(socket.SHUT_WR)
        said = _all_of(line)
    except ConnectionError:
        said = b""  # closed while it still spoke
    except TimeoutError:
        return "neither answered nor closed in time"
    finally:
        if found.then != "hold":
            line.close()
    return _judge(said, found, folder)


def _all_of(line: socket.socket) -> bytes:
    """What is said, to the end of the line or of an answer that says how long it is."""
    said = b""
    while piece := line.recv(65536):
        said += piece
        head, end, body = said.partition(b"\r\n\r\n")
        length = next((at for at in head.lower().split(b"\r\n") if at.startswith(b"content-length: ")), None)
        if end and length is not None and len(body) >= int(length[16:]):
            break
        if said.endswith((b"data: [DONE]\n\n\r\n", b"\r\n0\r\n\r\n")):
            break
    return said


def _judge(said: bytes, found: Hostile, folder: str) -> str:
    if not said:
        return "images without a fault get no answer" if found.must_answer else ""
    if found.must_answer and not said.startswith(b"HTTP/1.1 200"):
        return f"images without a fault are answered with {said[:400]!r}"
    allowed = b"HTTP/1.1 4", *((b"HTTP/1.1 200",) if found.may_answer else ())
    if not said.startswith(allowed):
        return f"answered with {said[:60]!r}"
    if KEY.encode() in said:
        return "the key is told"
    if folder.encode() in said or b"Traceback" in said or b"/home" in said:
        return f"something of this machine is told: {said[:300]!r}"
    return ""


def _end_held(held: list[_Held], most: int) -> str:
    """Let go of the oldest, which must have been closed by the server in their time."""
    while len(held) > most:
        began_s, line = held.pop(0)
        line.settimeout(max(0.1, began_s + _END_S - time.monotonic()))
        try:
            while line.recv(65536):
                pass
        except ConnectionError:
            pass
        except TimeoutError:
            return "a line that says no more is still open"
        finally:
            line.close()
    return ""


def _right_answer(served: Served) -> str:
    reply = served.ask("POST", CHAT, question(seed=1), _RIGHT)
    if reply.status != 200:
        return f"{reply.status} {reply.body[:200]!r}"
    return str(reply.json["choices"][0]["message"]["content"])


def _still_right(served: Served, expected: str) -> str:
    answer = _right_answer(served)
    return "" if answer == expected else f"a right request gets {answer!r} instead of {expected!r}"


def _nothing_left(served: Served, at_first: int) -> str:
    """After all of it no request, ticket or descriptor may be left."""
    served.until(lambda: not served.answers.gate.open and not served.answers.sent)
    until = time.monotonic() + 10
    while (more := _descriptors() - at_first) > _DESCRIPTORS_AT_REST and time.monotonic() < until:
        gc.collect()
        time.sleep(0.1)
    if left := left_files():
        return f"{len(left)} requests left their images"
    return f"{more} descriptors are left" if more > _DESCRIPTORS_AT_REST else ""


def _descriptors() -> int:
    folder = Path("/proc/self/fd")
    return len(os.listdir(folder)) if folder.exists() else 0


def _peaks() -> dict[str, float]:
    try:
        pages = Path("/proc/self/statm").read_text().split()[1]
    except OSError:
        return {}
    return {"server_mb": int(pages) * os.sysconf("SC_PAGE_SIZE") / 1e6}


CAMPAIGN = Campaign(
    "server-requests",
    "Each hostile request gets a 4xx or a closed line, nothing is generated; right requests are answered.",
    150,
    10_000,
    _run,
)
