"""Hostile tool servers beside a good one, and deaths in every phase: no call runs twice, none runs unasked.

A real client and its process. In each case a server lies, floods, hangs, dies, changes its tools, answers
twice or for others, asks for trust, or closes its streams, at its start, at its list or at its calls; some
calls are cancelled or time out; and at a random moment the server's process or the tools' process may be
killed, or the server stopped. Then:

- each call has ended, with a result or an error, and was carried out once at most;
- what ended with `ran` False was not carried out; what has a result was;
- results and log lines are within their limits, and the process within its memory;
- the good server, in the same process, answers; and no process of the hostile one is left.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from core.tools.messages import (
    RESULT_IMAGE_BYTES,
    RESULT_TEXT_BYTES,
    CallResult,
    ServerEntry,
    ServerLog,
    ToolsError,
)
from tests.attack.campaign import Campaign, Outcome, case_random
from tests.core.tools.serving import Serving, is_alive, noted, plain

_PROGRAM = str(Path(__file__).parents[1] / "support" / "hostile_tools.py")
_STARTS = ("deaf", "child", "die", "early", "", "", "", "")
_TRICKS = (
    "hang", "die", "abort", "half", "close", "twice", "others", "wrong-id", "bad-result", "error", "junk",
    "huge", "endless", "big", "images", "asks", "input", "flood", "changes", "log", "pages", "cancels",
    "slow", "bad-tool", "",
)  # fmt: skip
_DEATHS = ("", "", "", "kill server", "kill process", "stop", "restart", "pause process")
_CALLS = 4
_LIMIT_S = 60.0
_CALL_S = 3.0
_GONE_S = 15.0
_MOST_MB = 512.0


def _run(seed: int, cases: Sequence[int]) -> Iterator[Outcome]:
    with tempfile.TemporaryDirectory() as home:
        serving = Serving()
        try:
            good = plain(Path(home, "good"), name="good")
            for case in cases:
                chance = case_random("tools", seed, case)
                serving.events.clear()
                folder = Path(home, str(case))
                folder.mkdir()
                yield serving.runner.run(_case(serving, case, chance, folder, good))
        finally:
            serving.close()


async def _case(
    serving: Serving, case: int, chance: random.Random, folder: Path, good: ServerEntry
) -> Outcome:
    client, name = serving.client, f"hostile {case}"
    # The first cases try each trick with calls once, so that a quick run tries many.
    at_call = _TRICKS[case % len(_TRICKS)] if case < 2 * len(_TRICKS) else chance.choice(_TRICKS)
    steps = [f"start:{chance.choice(_STARTS)}", f"tools/call:{at_call}"]
    if chance.random() < 0.35:
        steps.append(
            f"{chance.choice(('initialize', 'tools/list', 'server/discover', '*'))}:{chance.choice(_TRICKS)}"
        )
    death = chance.choice(_DEATHS)
    entry = ServerEntry(name, sys.executable, ("-S", _PROGRAM, str(folder), str(chance.random()), *steps))
    described = f"{' '.join(steps)}{f', {death}' if death else ''}"
    faults: list[str] = []
    await client.restart("good") if "good" in client.states else await client.start(good)
    starting = asyncio.ensure_future(client.start(entry))
    dying = asyncio.ensure_future(_death(serving, name, death, chance))
    calls = {f"n{at}": asyncio.ensure_future(_call(serving, name, f"n{at}", chance)) for at in range(_CALLS)}
    _, late = await asyncio.wait(calls.values(), timeout=_LIMIT_S)
    if late:
        faults.append(f"{len(late)} calls did not end")
        for task in late:
            task.cancel()
    await dying
    if not (await asyncio.wait({starting}, timeout=0.0 if starting.done() else 1.0))[0]:
        starting.cancel()  # a server that hangs at its start is stopped below
    ended = Counter(_kind(task) for task in calls.values())
    await client.stop(name)
    faults += await _left(folder)
    ran = Counter(noted(folder, "ran"))
    faults += [f"{nonce} was carried out {times} times" for nonce, times in ran.items() if times > 1]
    faults += [f"{nonce} was carried out and nobody asked" for nonce in ran if nonce not in calls]
    for nonce, task in calls.items():
        faults += _fault_of(nonce, task, ran[nonce], "others" in described)
    faults += _lines(serving)
    held_mb = _peak_mb(client.pid)
    if held_mb > _MOST_MB:
        faults.append(f"the process holds {held_mb:.0f} MB")
    faults += await _ask_good(serving, tries=8 if death == "kill process" else 1)
    fault = f"{described}: {'; '.join(faults)}" if faults else ""
    counts = {
        "calls": float(len(calls)),
        "carried out": float(ran.total()),
        **{k: float(v) for k, v in ended.items()},
    }
    return Outcome(case, fault, counts, {"held_mb": held_mb})


async def _ask_good(serving: Serving, tries: int) -> list[str]:
    """Calls the good server. A process that was told to end takes a moment, in which calls fail."""
    for left in reversed(range(tries)):
        try:
            call = serving.client.call("good", "echo", '{"a": 1}')
            result = await asyncio.wait_for(call, _LIMIT_S / 2)
            return [] if json.loads(result.text) == {"a": 1} else [f"the good server says {result.text[:50]}"]
        except TimeoutError:
            break
        except ToolsError as error:
            if not left:
                return [f"the good server is lost: {error}"]
            await asyncio.sleep(2.0)
    return ["the good server does not answer"]


async def _call(serving: Serving, name: str, nonce: str, chance: random.Random) -> CallResult:
    """A call that may be cancelled or time out."""
    await asyncio.sleep(chance.uniform(0.0, 0.3))
    work = serving.client.call(
        name, chance.choice(("work", "work", "odd")), json.dumps({"nonce": nonce}),
        timeout_s=chance.choice((0.05, _CALL_S, _CALL_S)),
    )  # fmt: skip
    # A server that never is ready is waited for; here not for long.
    limit_s = chance.choice((0.2, 2 * _CALL_S, 2 * _CALL_S))
    return await asyncio.wait_for(work, limit_s)


async def _death(serving: Serving, name: str, death: str, chance: random.Random) -> None:
    await asyncio.sleep(chance.uniform(0.0, 1.0))
    client = serving.client
    state = client.states.get(name)
    match death:
        case "kill server" if state and state.pid:
            _signal(state.pid, chance.choice((signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP)))
        case "kill process" if client.pid:
            _signal(client.pid, chance.choice((signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV)))
        case "pause process" if client.pid:
            pid = client.pid
            _signal(pid, signal.SIGSTOP)
            await asyncio.sleep(chance.uniform(0.0, 0.5))
            _signal(pid, signal.SIGCONT)
        case "stop":
            await client.stop(name)
        case "restart" if state:
            with contextlib.suppress(ToolsError, TimeoutError):
                await asyncio.wait_for(client.restart(name), _CALL_S)


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _kind(task: asyncio.Task[CallResult]) -> str:
    if task.cancelled() or not task.done():
        return "cancelled"
    error = task.exception()
    if error is None:
        return "results"
    return f"ran {error.ran}" if isinstance(error, ToolsError) else "cancelled"


def _fault_of(nonce: str, task: asyncio.Task[CallResult], ran: int, lies: bool) -> list[str]:
    """`lies`: the server answers calls of its own before it has them."""
    if task.cancelled() or not task.done():
        return []
    error = task.exception()
    if isinstance(error, ToolsError):
        if error.ran is False and ran:
            return [f"{nonce} was carried out, and its error says that it was not: {error}"]
        return (
            [f"{nonce} was not carried out, and its error says so: {error}"]
            if error.ran and not ran and not lies
            else []
        )
    if error is not None:
        return [] if isinstance(error, TimeoutError) else [f"{nonce} ended with {error!r}"]
    result = task.result()
    if not ran and not lies:
        return [f"{nonce} has a result and was not carried out"]
    if len(result.text.encode()) > RESULT_TEXT_BYTES:
        return [f"{nonce} has a text of {len(result.text.encode()):,} bytes"]
    if sum(len(image.data) for image in result.images) > RESULT_IMAGE_BYTES:
        return [f"{nonce} has too many images"]
    return []


def _lines(serving: Serving) -> list[str]:
    lines = [event.line for event in serving.events if isinstance(event, ServerLog)]
    longest = max(map(len, lines), default=0)
    faults = [f"a log line has {longest:,} characters"] if longest > 2001 else []
    return faults + [
        f"a log line is not printable: {one[:50]!r}"
        for one in lines
        if not one.replace("\t", "").isprintable()
    ]


async def _left(folder: Path) -> list[str]:
    """Waits for the end of the processes that the server noted."""
    ends_at = asyncio.get_running_loop().time() + _GONE_S
    while left := [pid for pid in noted(folder, "started") if is_alive(int(pid))]:
        if asyncio.get_running_loop().time() > ends_at:
            return [f"{len(left)} of its processes are left"]
        await asyncio.sleep(0.05)
    return []


def _peak_mb(pid: int | None) -> float:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    return next(
        (int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM")), 0.0
    )


CAMPAIGN = Campaign(
    name="tools",
    promise=(
        "Whatever a tool server does and whoever dies, no call is carried out twice, and other servers go on."
    ),
    quick=6,
    full=300,
    run=_run,
)
