"""A slower network: each of MLX's collectives takes so much longer, on the machine that leads.

The others wait for it in each of them, so one machine is enough. Sleeping works only where something was
computed, so a slowed collective is computed at once, where the product computes a forward as a whole.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import mlx.core as mx

_COLLECTIVES = ("all_sum", "all_gather", "recv_like")


@contextmanager
def slow_collectives(delay_s: float) -> Iterator[None]:
    """While open; with 0 nothing is changed. Main thread."""
    own = {name: getattr(mx.distributed, name) for name in _COLLECTIVES} if delay_s else {}

    def slowed(call: Callable[..., mx.array]) -> Callable[..., mx.array]:
        def slow(*args: Any, **options: Any) -> mx.array:
            given = call(*args, **options)
            mx.eval(given)
            time.sleep(delay_s)
            return given

        return slow

    try:
        for name, call in own.items():
            setattr(mx.distributed, name, slowed(call))
        yield
    finally:
        for name, call in own.items():
            setattr(mx.distributed, name, call)
