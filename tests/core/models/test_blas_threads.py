"""BlasThreads: OpenBLAS's own number follows the choice, in the very library that MLX calls."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or (os.cpu_count() or 1) < 2, reason="there is nothing to choose"
)

# Each in a process of its own: the number belongs to the process, and is read when the library is loaded.
# On all processors, whichever one these tests are held on.
_BEGIN = """
    import os
    os.sched_setaffinity(0, range(os.cpu_count()))
    from core.models.runtime import prepare
    prepare()
    from core.models import blas
    from core.models.blas import BlasThreads
"""


def _run(code: str, **variables: str) -> str:
    kept = {name: text for name, text in os.environ.items() if not name.endswith("_NUM_THREADS")}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(_BEGIN) + textwrap.dedent(code)],
        env=kept | variables,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_number_can_be_changed_in_the_library_that_mlx_calls() -> None:
    said = _run("""
        assert blas.why_threads_are_fixed() == ""
        assert blas.threads() == blas.threads_at_start() > 1
        blas.set_threads(1)
        print(blas.threads())
    """)
    assert said == "1"


@pytest.mark.parametrize("variable", ["OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"])
def test_a_number_that_the_user_set_is_kept(variable: str) -> None:
    said = _run(
        """
        threads = BlasThreads()
        threads._choice.threads = 1
        threads.begin()
        threads.look()
        print(blas.threads(), threads.words)
        """,
        **{variable: "2"},
    )
    assert said == f"2 2 of 2: {variable} is set"


def test_what_promises_bits_gets_all_threads_and_keeps_them() -> None:
    said = _run("""
        threads = BlasThreads()
        threads.begin()
        threads._choice.threads = 1
        threads.look()
        print(blas.threads())
        threads.begin(steady="exactness is “exact”")
        threads._choice.threads = 1
        threads.look()
        threads.step(1.0)
        print(blas.threads() == blas.threads_at_start(), threads.words)
    """)
    one, rest = said.splitlines()
    assert one == "1"
    assert rest.startswith("True")
    assert rest.endswith("exactness is “exact”")


@pytest.mark.sweep
def test_a_changed_number_in_the_middle_of_products_costs_no_product() -> None:
    said = _run("""
        import random, threading
        import mlx.core as mx
        import numpy as np
        # Whole numbers: their products are the same bits in any order.
        left = mx.random.randint(-8, 8, (64, 512)).astype(mx.float32)
        right = mx.random.randint(-8, 8, (512, 2048)).astype(mx.float32)
        mx.eval(left, right)
        expected = np.array(left).astype(np.int64) @ np.array(right).astype(np.int64)
        done = threading.Event()
        def change():
            while not done.is_set():
                blas.set_threads(random.randint(1, blas.threads_at_start()))
        changer = threading.Thread(target=change)
        changer.start()
        wrong = 0
        for _ in range(80):
            ahead = [left @ right for _ in range(3)]
            mx.async_eval(*ahead)
            wrong += sum(not np.array_equal(np.array(each), expected) for each in ahead)
        done.set()
        changer.join()
        print(wrong)
    """)
    assert said == "0"
