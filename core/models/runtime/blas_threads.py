"""BlasThreads: the number of OpenBLAS's threads, changed between two forwards as `ThreadChoice` says.

An answer that promises the bits of a plain one (`guarded`, `exact`) is steady: what was probed was
probed with all threads, so all are used throughout. `fast` promises the choice as it falls, at any
width as at any number of threads. Nothing is changed where the user set the number, nor on macOS,
where MLX uses Metal. The number belongs to the process, so one of these adapts at a time.
"""

from __future__ import annotations

from core.models.runtime import blas
from core.models.runtime.processor_use import ProcessorUse, usable_cores
from core.models.runtime.thread_choice import ThreadChoice

# The kernel counts in hundredths of a second. What is older says nothing of now.
_LOOK_EVERY_S = 0.3
_STALE_S = 5.0


class BlasThreads:
    """One of these for each engine. `held` says why all threads are used throughout, if that is wanted."""

    def __init__(self, held: str = "") -> None:
        self.held = held
        self._fixed = blas.why_threads_are_fixed()
        self._steady = ""
        self._most = blas.threads_at_start()
        self._use = ProcessorUse()
        self._choice = ThreadChoice(usable_cores(), self._most)

    @property
    def why_steady(self) -> str:
        """Why the number does not change; empty if it may."""
        return self._fixed or self.held or self._steady

    @property
    def words(self) -> str:
        """How many are in use, and why; empty where OpenBLAS is not."""
        if not self._most:
            return ""
        why = self.why_steady or f"other programs use {self._choice.others:.1f} of {usable_cores()} cores"
        return f"{blas.threads()} of {self._most}: {why}"

    def begin(self, *, steady: str = "") -> None:
        """An answer begins; `steady` says why all threads are used throughout, if they are."""
        self._steady = steady
        if self._fixed:
            return
        if self.why_steady:
            blas.set_threads(self._most)
            return
        self._choice.begin()
        if self._use.age_s > _STALE_S:
            self._use.others()
        self.look()

    def idle(self, *, steady: str = "") -> None:
        """Before a piece of idle work; `steady` says why it uses all threads, if it does."""
        self._steady = steady
        if self.why_steady and not self._fixed:
            blas.set_threads(self._most)
        self.look()

    def look(self) -> None:
        """Between two forwards: look at what others use, if it is time."""
        if self.why_steady:
            return
        if self._use.age_s >= _LOOK_EVERY_S:
            others = self._use.others()
            if others is not None:
                self._choice.load(others)
        blas.set_threads(self._choice.threads)

    def step(self, plain_s: float) -> None:
        """A decode step was done, in a time that would be `plain_s` for one of width 1."""
        if not self.why_steady:
            self._choice.step(plain_s)
            self.look()
