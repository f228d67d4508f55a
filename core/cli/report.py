"""`draftlight doctor --report FILE`: measures this machine within a time budget and writes one Markdown file.

Sections run in order of importance, each as long as the budget lasts. One that cannot begin is named as
skipped, one that the budget ends keeps the lines it has. The file is written after each section, so a crash
loses one section. Everything unexpected is repeated at the top, under Anomalies.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from core.errors import DraftlightError, reason_of
from core.system.children import CHILD_FOLDER, absolute_path, child_command, child_environment
from core.system.files import write_atomic

if TYPE_CHECKING:  # importing them loads MLX, which `prepare()` must come before
    from core.engine.engine import Engine

MINUTES = 10
_TOKENS, _PAIRS = 128, 3
_PROMPT_TOKENS = 8000
_CHUNK_TOKENS = 512
# Parts of the budget that a section may use, so that those after it have their turn.
_SHARES = {"Window": 0.15, "Command buffers": 0.15, "Costs of blocks": 0.2, "Decoding": 0.2, "Reading": 0.1}
_LEAST_S = {"Smoke test": 20.0, "Window": 30.0, "Screenshot": 20.0}
# Lines of a section. At an empty one the budget may end it: `OutOfTime` is raised there, and the section may
# still yield what it has.
Lines = Generator[str, None, None]
Section = Callable[[], Lines]


class OutOfTime(Exception):
    """The time of a section is over."""


class Budget:
    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._total_s = seconds
        self._end_s = clock() + seconds
        self._section_end_s = self._end_s

    @property
    def section_left_s(self) -> float:
        return min(self._end_s, self._section_end_s) - self._clock()

    def begin(self, title: str) -> bool:
        """Starts a section; whether there is time for it."""
        self._section_end_s = self._clock() + self._total_s * _SHARES.get(title, 1.0)
        return self._end_s - self._clock() > _LEAST_S.get(title, 0.0)


class Report:
    """Runs `sections` within `budget` and writes `file` after each. `say` receives each section's title.

    `about`: what was measured, for the top.
    """

    def __init__(
        self, file: Path, budget: Budget, say: Callable[[str], object] = lambda title: None, about: str = ""
    ) -> None:
        self._file, self._budget, self._about = file, budget, about
        self._say = say
        self._text: list[str] = []
        self.anomalies: list[str] = []
        self.skipped: list[str] = []

    def run(self, sections: Iterable[tuple[str, Section]]) -> None:
        for title, section in sections:
            if not self._budget.begin(title):
                self.skipped.append(title)
                continue
            self._say(title)
            self._text += ["", f"## {title}", ""]
            try:
                self._collect(title, section())
            except Exception as error:
                self._text.append(f"Failed: {reason_of(error)}")
                self.anomalies.append(f"{title} failed: {reason_of(error)}.")
            self.write()
        self.write()

    def _collect(self, title: str, lines: Lines) -> None:
        ended = False
        with suppress(StopIteration):
            try:
                line = next(lines)
                while True:
                    if line:
                        self._text.append(line if line.strip() else "")
                    if not line and not ended and self._budget.section_left_s <= 0:
                        ended = True
                        line = lines.throw(OutOfTime())
                    else:
                        line = next(lines)
            except OutOfTime:
                ended = True
        self.skipped += [f"the rest of {title}"] * ended

    def write(self) -> None:
        found = [f"- {each}" for each in self.anomalies] or ["None was seen."]
        skipped = ["", f"Skipped for lack of time: {', '.join(self.skipped)}."] if self.skipped else []
        head = ["# Draftlight on this machine", "", self._about, "", "## Anomalies", "", *found, *skipped]
        text = "\n".join([*head, *self._text, ""])
        # People send the file, and their home's name is often their own.
        write_atomic(self._file, text.replace(str(Path.home()), "~").encode())


def run_report(
    file: str, model: str, minutes: float, checks: Iterable[Any], say: Callable[[str], object]
) -> Report:
    """Measures `model` for at most about `minutes` and writes `file`. `checks`: the doctor's findings.

    Raises `OSError` if the file cannot be written.
    """
    path = Path(absolute_path(file))
    budget = Budget(60 * minutes)
    began = time.strftime("%Y-%m-%d %H:%M %Z")
    report = Report(path, budget, say, f"Model {model}, begun {began}, at most {minutes:g} minutes.")
    report.write()
    report.run(_Measurements(report, budget, model, checks, path.with_suffix(".png")).sections())
    return report


class _Measurements:
    """The sections of a report about `model`. The engine is loaded by the first that needs it."""

    def __init__(
        self, report: Report, budget: Budget, model: str, checks: Iterable[Any], picture: Path
    ) -> None:
        self._report, self._budget = report, budget
        self._model, self._checks, self._picture = model, checks, picture
        self._held: Engine | None = None

    def sections(self) -> Sequence[tuple[str, Section]]:
        """Those in other processes first: their memory is free before the model is loaded here."""
        return (
            ("Machine", self._machine),
            ("Smoke test", self._smoke),
            ("Screenshot", self._screenshot),
            ("Window", self._window),
            ("Command buffers", self._buffers),
            ("Costs of blocks", self._costs),
            ("Decoding", self._decoding),
            ("Reading", self._prefill),
            ("Exactness", self._exactness),
        )

    @property
    def _engine(self) -> Engine:
        if self._held is None:
            from core.bench.answers import start_engine

            self._held, _, _ = start_engine(self._model, quiet=True)
        return self._held

    def _machine(self) -> Lines:
        from core.models.runtime import prepare

        blas = prepare()
        from core.bench.runner import describe
        from core.machine.exactness import machine_parts

        yield describe(blas).line
        yield " "
        yield f"Profiles are kept for: {' '.join(map(str, machine_parts()))}"
        yield " "
        for finding in self._checks:
            text = f"{finding.text.rstrip('.')}. {finding.hint}".rstrip()
            yield f"- {finding.health}: {finding.subject}: {text}"
            if finding.health == "broken":
                self._report.anomalies.append(f"{finding.subject}: {finding.text}")

    def _child(self, *words: str) -> str:
        """Output of `draftlight WORDS`. Raises `DraftlightError` with the end of stderr."""
        command, timeout_s = child_command(*words), max(1.0, self._budget.section_left_s)
        try:
            done = subprocess.run(
                command, env=child_environment(), cwd=CHILD_FOLDER, capture_output=True, text=True,
                timeout=timeout_s, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise OutOfTime from None
        if done.returncode:
            raise DraftlightError(f"Status {done.returncode}: {' '.join(done.stderr.split())[-300:]}")
        return done.stdout

    def _smoke(self) -> Lines:
        figures = msgspec.json.decode(self._child("--smoke", "--model", self._model).splitlines()[-1])
        stats = figures["stats"]
        chosen = ("tokens", "steps", "accepted", "ttft_s", "prefill_s", "tokens_per_s")
        yield f"{figures['model']}, {figures['drafter']}, ended by {figures['reason']};"
        yield ", ".join(f"{name} {stats[name]:.4g}" for name in chosen) + "."

    def _buffers(self) -> Lines:
        from core.machine.buffers import try_limits
        from core.models import memory

        if not memory.on_gpu():
            yield "Not tried: only Metal has command buffers."
            return
        yield "| operations | MB | chunk of 512 tokens, s | plain step, ms |"
        yield "|---:|---:|---:|---:|"
        for limits, times in try_limits(self._model, lambda: self._budget.section_left_s):
            name = f"| {limits.operations or 'MLX'} | {limits.megabytes or 'MLX'}"
            yield f"{name} | {times.prefill_s:.3f} | {1000 * times.step_s:.2f} |"
            if times.fault:
                self._report.anomalies.append(f"The trial of {limits} failed: {times.fault}.")

    def _costs(self) -> Lines:
        from core.machine.width_cost import CONTEXTS, COSTS, WIDTHS, ContextCost, CostProfile, measure

        loaded = self._engine.loaded
        verdict = self._engine.try_out()
        yield f"{loaded.info.name}, {loaded.info.dtype}. Trees: {verdict.why_no_trees or 'exact'}."
        trees = not verdict.why_no_trees
        yield " "
        yield f"| context | blocks | plain step, ms | {' | '.join(map(str, WIDTHS))} |"
        yield "|---:|---|---:|" + "---:|" * len(WIDTHS)
        timed: list[ContextCost] = []
        for context in CONTEXTS:
            steps = measure(loaded.model, loaded.new_cache, loaded.info, (context,), trees=trees)
            found: CostProfile = yield from _quiet(steps)
            timed += found.contexts
            times = [seconds for each in found.contexts for seconds in (each.seconds, each.trees)]
            for kind, seconds in zip(("chains", "trees"), times):
                if seconds:
                    costs = " | ".join(f"{seconds[width] / seconds[1]:.2f}" for width in WIDTHS)
                    yield f"| {context:,} | {kind} | {1000 * seconds[1]:.1f} | {costs} |"
            if found.doubt:
                self._report.anomalies.append(f"T(w) at {context:,} tokens is not reliable: {found.doubt}.")
                return
        COSTS.save(CostProfile(found.key, tuple(timed)))

    def _decoding(self) -> Lines:
        """The three classes of docs/benchmarks.md, each answer beside mlx-lm's."""
        from statistics import median

        from core.bench.answers import draftlight, mlx_lm
        from core.bench.cases import fitted_ids, read_cases
        from core.settings import Settings, assign_all

        engine = self._engine
        cases = read_cases(["three-class"], (), 1, 0)
        values = {"sampling.max_tokens": _TOKENS, "prefill.mode": "off", "tables.learn": False}
        settings = assign_all(Settings(), list(values.items()))
        warm = fitted_ids(engine.loaded.tokenizer, cases[0], 0)[-32:]
        mlx_lm(engine, warm, 8)
        draftlight(engine, warm, settings)
        speeds: dict[str, list[tuple[float, float]]] = {case.kind: [] for case in cases}
        peak = 0
        with suppress(OutOfTime):
            for case in [case for _ in range(_PAIRS) for case in cases]:
                ids = fitted_ids(engine.loaded.tokenizer, case, 0)
                theirs = mlx_lm(engine, ids, _TOKENS)
                ours = draftlight(engine, ids, settings)
                speeds[case.kind].append((theirs.tokens_per_s, ours.tokens_per_s))
                peak = max(peak, ours.peak_bytes)
                count = min(len(ours.tokens), len(theirs.tokens))
                if ours.tokens[:count] != theirs.tokens[:count]:
                    self._report.anomalies.append(f"{case.id}: the answer differs from mlx-lm's.")
                yield ""
        yield "| class | mlx-lm, tok/s | Draftlight, tok/s | ratio | pairs |"
        yield "|---|---:|---:|---:|---:|"
        for kind, each in speeds.items():
            if each:
                plain, drafted = median(p for p, _ in each), median(d for _, d in each)
                ratio = median(d / p for p, d in each if p)
                yield f"| {kind} | {plain:.1f} | {drafted:.1f} | {ratio:.2f} | {len(each)} |"
        yield " "
        yield f"MLX's peak with Draftlight: {peak / 1e9:.2f} GB."

    def _prefill(self) -> Lines:
        import random

        import mlx.core as mx

        from core.machine.compare import random_ids

        loaded, rng = self._engine.loaded, random.Random(0)
        total = min(_PROMPT_TOKENS, loaded.info.context_tokens - _CHUNK_TOKENS)
        cache, done, seconds = loaded.new_cache(), 0, 0.0
        mx.reset_peak_memory()
        with suppress(OutOfTime):
            while done < total:
                ids = random_ids(rng, min(_CHUNK_TOKENS, total - done))
                started = time.perf_counter()
                loaded.model(mx.array(ids)[None], cache=cache)
                mx.eval([entry.state for entry in cache])
                done, seconds = done + len(ids), seconds + time.perf_counter() - started
                yield ""
        peak_gb = mx.get_peak_memory() / 1e9
        speed = f"{done:,} tokens in {seconds:.1f} s, {done / max(seconds, 1e-9):,.0f} tok/s"
        yield f"{speed}; MLX's peak {peak_gb:.2f} GB."

    def _exactness(self) -> Lines:
        from core.machine.compare import compare_widths
        from core.machine.exactness import PROFILES, load_profile

        loaded = self._engine.loaded
        profile = load_profile(loaded.info)
        with suppress(OutOfTime):
            for found in compare_widths(profile, loaded.model, loaded.new_cache, loaded.info):
                profile = found
                yield ""
        PROFILES.save(profile)
        yield f"{profile.summary}. Largest difference of a logit: {profile.noise:g}."
        yield " "
        yield "| width | compared rows | comparisons with a difference |"
        yield "|---:|---:|---:|"
        for each in profile.widths:
            yield f"| {each.width} | {each.rows:,} | {each.differences} |"
        if profile.identical_width == 1:
            self._report.anomalies.append("exact: no drafting on this machine, width 2 differs.")

    def _window(self) -> Lines:
        with tempfile.TemporaryDirectory() as folder:
            text = self._child("bench", "window", "--parts", "scenes", "--out", folder)
        yield from (line for line in text.splitlines() if not line.startswith("# "))
        rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()]
        missed = [row for row in rows if row[-1:] == ["missed"]]
        self._report.anomalies += [f"Window, {what}: {took}, not {most}." for what, took, most, _ in missed]

    def _screenshot(self) -> Lines:
        self._child("--screenshot", str(self._picture), "--model", self._model)
        yield f"![The window]({self._picture.name})"


def _quiet(steps: Any) -> Any:
    """Runs a measurement; yields an empty line for each piece and returns its result."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            return done.value
        yield ""
