"""Trial of MLX's command buffer limits, each in a child process, because MLX reads them once.

A buffer ends after a number of operations or of megabytes. The best limits depend on chip and model: other
ones made decoding 0 to 57% faster (mlx#4521, mlxcel#353, vllm-metal#637). Only Metal has them.
"""

from __future__ import annotations

import random
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator

import msgspec
from msgspec import Struct

from core.errors import reason_of
from core.system.buffer_limits import BufferLimits, save_limits
from core.system.children import CHILD_FOLDER, child_command, child_environment
from core.system.prepared import prepared

# Operations and megabytes of a buffer; the first are MLX's own for the chip.
CANDIDATES = (BufferLimits(), BufferLimits(100, 100), BufferLimits(200, 200), BufferLimits(400, 400))
_LEAST_GAIN = 1.03  # smaller gains are noise
_PROMPT_TOKENS, _STEPS, _ROUNDS = 512, 32, 3
_MOST_S = 600.0


class BufferTimes(Struct, frozen=True):
    """Median seconds of a prompt chunk and of a plain step of `model_type`, or the `fault` of the trial."""

    prefill_s: float = 0.0
    step_s: float = 0.0
    fault: str = ""
    model_type: str = ""


def time_limits(reference: str) -> BufferTimes:
    """Times of the model in this process, whose environment has the limits. Raises `ModelError`."""
    from core.models.runtime import prepare

    prepare()
    import mlx.core as mx

    from core.machine.compare import random_ids
    from core.models.loader import load

    loaded, rng = load(reference), random.Random(0)
    count = min(_PROMPT_TOKENS, loaded.info.context_tokens // 2)
    reading, steps = [], []
    for _ in range(1 + _ROUNDS):
        cache = loaded.new_cache()
        started = time.perf_counter()
        logits = loaded.model(mx.array(random_ids(rng, count))[None], cache=cache)
        mx.eval(logits, [entry.state for entry in cache])
        reading.append(time.perf_counter() - started)
        for _ in range(min(_STEPS, count)):
            started = time.perf_counter()
            mx.eval(loaded.model(mx.array(random_ids(rng, 1))[None], cache=cache))
            steps.append(time.perf_counter() - started)
    # The first round compiles kernels.
    step_s = statistics.median(steps[len(steps) // 4 :])
    return BufferTimes(statistics.median(reading[1:]), step_s, model_type=loaded.info.architecture)


def run_child(reference: str, limits: BufferLimits) -> BufferTimes:
    """`time_limits` in a child process with `limits`."""
    command = child_command("doctor", "--time-buffers", reference)
    environment = child_environment(**limits.environment)
    try:
        done = subprocess.run(
            command, env=environment, cwd=CHILD_FOLDER, capture_output=True, timeout=_MOST_S, check=False
        )
        if done.returncode or not done.stdout:
            told = done.stderr.decode(errors="replace").splitlines()
            return BufferTimes(fault=told[-1] if told else f"the process ended with {done.returncode}")
        return msgspec.json.decode(done.stdout.splitlines()[-1], type=prepared(BufferTimes))
    except (subprocess.SubprocessError, OSError, msgspec.MsgspecError) as error:
        return BufferTimes(fault=reason_of(error))


def try_limits(
    reference: str, child: Callable[[str, BufferLimits], BufferTimes] = run_child
) -> Iterator[tuple[BufferLimits, BufferTimes]]:
    """Yields each candidate's times. The best limits are saved after the last.

    Other limits than MLX's own are saved only if they decode faster and do not read slower.
    """
    times: dict[BufferLimits, BufferTimes] = {}
    for limits in CANDIDATES:
        times[limits] = child(reference, limits)
        yield limits, times[limits]
        if limits == CANDIDATES[0] and times[limits].fault:
            return
    save_limits(times[CANDIDATES[0]].model_type, best(times))


def best(times: dict[BufferLimits, BufferTimes]) -> BufferLimits:
    """The limits of the fastest step; the first ones unless another is faster by more than noise."""
    own = times[CANDIDATES[0]]
    usable = {
        limits: each.step_s
        for limits, each in times.items()
        if not each.fault
        and each.step_s * _LEAST_GAIN < own.step_s
        and each.prefill_s <= _LEAST_GAIN * own.prefill_s
    }
    return min(usable, key=lambda limits: usable[limits], default=CANDIDATES[0])
