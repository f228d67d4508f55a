"""Something goes wrong with one of two ranks at a random moment of an answer, or before it.

SIGKILL or SIGSTOP for the rank that follows, an exception in it, the deciding rank killed; another version
there. Each rank must end within its deadlines with a status other than 0 and a sentence; another version is
refused before anything is loaded.
"""

from __future__ import annotations

import random
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from core.system.children import child_command
from tests.attack.campaign import Campaign, Outcome, case_random
from tests.core.cluster.launch import launch
from tests.core.toy import write_toy_model

_FAULTS = ("SIGKILL", "SIGSTOP", "exception", "leader killed", "version")
_DEADLINE_S = 2.0
# An operation's deadline, the time to load and to say it, on a busy machine.
_END_S = 90.0


def _run(seed: int, cases: Sequence[int]) -> Iterator[Outcome]:
    with tempfile.TemporaryDirectory() as name:
        model = Path(name, "toy")
        write_toy_model(model, max_position_embeddings=8192)
        for case in cases:
            fault = _FAULTS[case % len(_FAULTS)]
            started = time.monotonic()
            found = _try(Path(name, f"case-{case}"), model, fault, case_random("cluster", seed, case))
            took = {"all_gone_after_s": time.monotonic() - started}
            yield Outcome(case, found and f"{fault}: {found}", {fault.replace(" ", "_"): 1.0}, took)


def _try(home: Path, model: Path, fault: str, chance: random.Random) -> str:
    """What went wrong; empty if all ended as it should."""
    home.mkdir()
    words = ["generate", "--model", str(model), "--prompt", "Tell me.", "--temperature", "0", "--json"]
    words = child_command(*words, "--max-tokens", "7000", "--drafter", chance.choice(["off", "auto"]))
    more = {"DRAFTLIGHT_DEADLINE_S": str(_DEADLINE_S)}
    if fault in _CHANGES:
        (home / "sitecustomize.py").write_text(_CHANGES[fault])
        more |= {"PYTHONPATH": str(home), "FAILS_AFTER_S": str(chance.uniform(0.8, 6.0))}
    with launch(home, 2, words, **more) as ranks:
        leader, follower = ranks
        if fault not in _CHANGES:
            assert leader.stdout is not None
            if not any('"token"' in line for line in leader.stdout):
                return "it wrote nothing"
            time.sleep(chance.uniform(0.0, 0.6))
            (leader if fault == "leader killed" else follower).send_signal(
                signal.SIGSTOP if fault == "SIGSTOP" else signal.SIGKILL
            )
        said: dict[subprocess.Popen[str], str] = {}
        for rank in (follower, leader) if fault == "leader killed" else (leader, follower):
            if rank is follower and fault == "SIGSTOP":
                follower.send_signal(signal.SIGCONT)
            try:
                said[rank] = rank.communicate(timeout=_END_S)[1]
            except subprocess.TimeoutExpired:
                return f"rank {ranks.index(rank)} is left"
    if fault == "version":
        fine = "Rank 1: " in said[leader] and leader.returncode == 1 and follower.returncode == 0
        return "" if fine else f"it was not refused: {said[leader]}"
    if leader.returncode == 0 or follower.returncode == 0:
        return f"exit statuses {leader.returncode} and {follower.returncode}"
    sentence = "Rank 0 was lost" if fault == "leader killed" else "draftlight: Rank 1 (127.0.0.1)"
    other = follower if fault == "leader killed" else leader
    # An exception may come before the ranks are joined, or before rank 0 knows the other one.
    early = any(each in said[leader] for each in ("Another rank ended", "Rank 1 did not connect"))
    early = early or leader.returncode == -signal.SIGALRM
    named = sentence in said[other] or (fault == "exception" and early)
    return "" if named else f"no rank is named: {said[other]}"


_CHANGES = {
    "version": """
import importlib.metadata as metadata, os
own = metadata.version
if os.environ.get("MLX_RANK") == "1":
    metadata.version = lambda name: "0.0.1" if name == "mlx-lm" else own(name)
""",
    "exception": """
import ctypes, os, threading
def fail(main=threading.main_thread().ident):
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(main), ctypes.py_object(ZeroDivisionError))
if os.environ.get("MLX_RANK") == "1":
    timer = threading.Timer(float(os.environ["FAILS_AFTER_S"]), fail)
    timer.daemon = True
    timer.start()
""",
}


CAMPAIGN = Campaign(
    "cluster",
    "whatever happens to one of two ranks, both end within their deadlines with a sentence",
    1,
    len(_FAULTS) * 20,
    _run,
)
