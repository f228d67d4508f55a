"""The quality bench on a toy: every reader reads as it should, a stopped run goes on, mistakes are named."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from msgspec.structs import replace

from core.bench.harness import describe
from core.bench.quality import QualityResults, Trial, duel, nearness, passes, write_report
from core.bench.quality_readers import Hindsight, Reader, log_probabilities, mean_nll, readers
from core.bench.quality_tasks import SCORELESS, hindsight
from core.cli import main
from core.engine.engine import Engine
from core.errors import RequestError
from core.events import Attachment, Generate, Message, Token
from core.models.loader import LoadedModel, load
from core.models.prompt import Prompt, render
from core.prefill.scorers.draft_model import AttentionSeen, watched
from core.settings import Settings, assign_all
from core.settings.prefill import SCORERS
from tests.core.toy import write_toy_model

CONTEXT = 4096
READERS = (*SCORERS, *SCORELESS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A toy whose context holds more than what is always read."""
    folder = tmp_path_factory.mktemp("models") / "long-toy"
    write_toy_model(folder, max_position_embeddings=CONTEXT)
    return folder


@pytest.fixture(scope="module")
def loaded(folder: Path) -> LoadedModel:
    return load(str(folder))


def message() -> Message:
    return Message("user", "Which boat?", (Attachment("log", "The boat is red. " * 90),))


def every(loaded: LoadedModel, keep: float = 20.0) -> dict[str, Reader]:
    # The toy's tokens are characters: a sentence is most of its context.
    values = [("prefill.keep_pct", keep), ("prefill.passages", "fixed")]
    settings = assign_all(Settings(), values).prefill
    return {reader.name: reader for reader in readers(READERS, loaded, settings, loaded)}


def test_dense_predicts_what_one_forward_predicts(loaded: LoadedModel) -> None:
    prompt = render(loaded.tokenizer, (message(),))
    gold = [int(i) for i in np.random.default_rng(1).integers(4, 250, 40)]
    session = every(loaded)["dense"].read(prompt)
    logits = loaded.model(mx.array([*prompt.ids, *gold])[None])[0, len(prompt.ids) - 1 : -1]
    assert mean_nll(session.predict(gold), gold) == pytest.approx(
        mean_nll(log_probabilities(logits), gold), rel=1e-4
    )
    assert session.read_tokens == len(prompt.ids)
    # Nothing of it stays behind.
    first = session.answer(8)
    assert session.answer(8) == first


@pytest.mark.parametrize("name", READERS)
def test_a_sparse_reader_reads_its_share(loaded: LoadedModel, name: str) -> None:
    prompt = render(loaded.tokenizer, (message(),))
    session = every(loaded)[name].read(prompt)
    # The share, the first passage, the end with the question in it, the template.
    always = every(loaded)[name]._layout(prompt).always_read.sum()
    assert session.read_tokens == pytest.approx(0.2 * len(prompt.ids) + 32 + always, abs=96)
    assert session.read_tokens < 0.7 * len(prompt.ids)


def test_a_scorer_answers_as_the_engine_does(loaded: LoadedModel) -> None:
    engine = Engine()
    engine.use(loaded)
    settings = assign_all(
        Settings(),
        [
            ("prefill.mode", "on"),
            ("prefill.keep_pct", 20.0),
            ("prefill.scorer", "lexical"),
            ("prefill.passages", "fixed"),  # as in `every`
            ("drafting.drafter", "off"),
            ("sampling.temperature", 0.0),
            ("sampling.max_tokens", 12),
        ],
    )
    events = list(engine.generate(Generate("r", (message(),), settings)))
    text = "".join(event.text for event in events if isinstance(event, Token))
    session = every(loaded)["lexical"].read(render(loaded.tokenizer, (message(),)))
    assert session.answer(12) == text.partition("\n")[0]
    assert session.answer(12)


def test_baselines_read_where_they_say(loaded: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: dict[str, np.ndarray[Any, Any]] = {}
    ids = [int(i) for i in np.random.default_rng(2).integers(4, 250, 2000)]
    from core.bench import quality_readers as module

    own = module.read_kept
    for name in SCORELESS:

        def spy(*args: Any, name: str = name, **options: Any) -> Any:
            chosen[name] = args[3]
            return own(*args, **options)

        monkeypatch.setattr(module, "read_kept", spy)
        every(loaded, 40.0)[name].read(Prompt(ids, "", ()))
    gaps = {name: np.flatnonzero(np.diff(positions) > 1) for name, positions in chosen.items()}
    assert len(gaps["head-and-tail"]) == len(gaps["end"]) == 1
    assert gaps["end"][0] < 40 < gaps["head-and-tail"][0]
    assert len(gaps["random"]) > 3
    assert len(chosen["random"]) == len(chosen["head-and-tail"]) == len(chosen["end"])


def test_hindsight_reads_what_the_following_tokens_look_for(
    loaded: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shown by its choice: the passages with the most attention of a dense reading, worked out here."""
    rng = np.random.default_rng(3)
    ids, follows = ([int(i) for i in rng.integers(4, 250, n)] for n in (2000, 24))
    settings = assign_all(Settings(), [("prefill.keep_pct", 40.0)]).prefill
    dense, told = readers(["hindsight-16"], loaded, settings, None)
    full = dense.read(Prompt(ids, "", ()))
    before = full.predict(follows)

    weights: list[mx.array] = []

    def look(seen: AttentionSeen) -> None:
        groups = seen.keys.shape[1]
        keys = mx.repeat(seen.keys, seen.queries.shape[1] // groups, axis=1)
        logits = (seen.queries * seen.scale) @ keys.swapaxes(-1, -2)
        logits = mx.where(mx.tri(len(ids) + 16, dtype=mx.bool_), logits, -mx.inf)
        weights.append(mx.softmax(logits[0, :, -17:, : len(ids)], axis=-1))

    with watched(loaded.model, look):
        mx.eval(loaded.model(mx.array([*ids, *follows[:16]])[None]))
    tokens = np.max(np.array(mx.stack(weights)), axis=(0, 1, 2))
    from core.bench import quality_readers as module

    own, kept = module.read_kept, set[int]()

    def spy(*args: Any, **options: Any) -> Any:
        kept.update(int(at) for at in args[3])
        return own(*args, **options)

    monkeypatch.setattr(module, "read_kept", spy)
    told.read(Prompt(ids, "", ()), Hindsight(full, follows))
    free = range(32, 1472, 32)
    chosen = {at for at in free if at in kept}
    assert 3 < len(chosen) < len(free) - 3
    most = max(free, key=lambda at: tokens[at : at + 32].sum())
    assert most in chosen
    inside = np.mean([tokens[at : at + 32].mean() for at in chosen])
    outside = np.mean([tokens[at : at + 32].mean() for at in free if at not in chosen])
    assert inside > outside
    # The dense reading is lent, and comes back as it was.
    assert mx.array_equal(full.predict(follows), before)
    with pytest.raises(RequestError, match="hindsight-16"):
        told.read(Prompt(ids, "", ()))


@pytest.mark.parametrize(
    ("name", "tokens"), [("hindsight-8", 8), ("hindsight-", 0), ("hindsight-x", 0), ("random", 0)]
)
def test_hindsight_by_name(name: str, tokens: int) -> None:
    assert hindsight(name) == tokens


def bench(folder: Path, out: Path, *more: str) -> int:
    return main(
        [
            *(
                "bench",
                "quality",
                "--model",
                str(folder),
                "--out",
                str(out),
                "--seeds",
                "2",
                "--windows",
                "1",
            ),
            *("--context", "1800", "--document-context", "1500", "--continuation", "48", "--keep", "25"),
            *("--tasks", "needle-50,common-words", "--kinds", "minutes", "--passages", "minutes"),
            *("--draft-layers", "1", *more),
        ]
    )


@pytest.mark.sweep
def test_results_report_and_going_on(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench(folder, tmp_path, "--readers", "lexical") == 0
    results = json.loads((tmp_path / "results.json").read_text())
    assert {trial["reader"] for trial in results["trials"]} == {"dense", "lexical"}
    assert len(results["trials"]) == 2 * (1 + 1 + 2 * 2)
    for trial in results["trials"]:
        assert (trial["kl_nats"] == 0.0) is (trial["reader"] == "dense")
        assert (trial["passed"] is None) is (trial["part"] != "task")
    before = (tmp_path / "trials.jsonl").read_bytes()
    assert bench(folder, tmp_path, "--readers", "lexical,random") == 0
    after = (tmp_path / "trials.jsonl").read_bytes()
    assert after.startswith(before)
    added = [json.loads(line) for line in after[len(before) :].splitlines()]
    assert {trial["reader"] for trial in added} == {"random"}
    # A question is not read densely again for a reader that comes later; a document is.
    assert {trial["kl_nats"] is None for trial in added if trial["part"] == "task"} == {True}
    assert {trial["top1_agreement"] is None for trial in added if trial["part"] == "task"} == {True}
    assert {trial["kl_nats"] is None for trial in added if trial["part"] != "task"} == {False}
    assert "head-and-tail" not in (tmp_path / "report.md").read_text()
    assert "random" in (tmp_path / "report.md").read_text()
    assert (tmp_path / "report.md").read_text() in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "status", "words"),
    [
        (("--readers", "oracle"), 2, "oracle"),
        (("--tasks", "needle-51"), 2, "needle-51"),
        (("--kinds", "poem"), 2, "poem"),
        (("--passages", "poem"), 2, "poem"),
        (("--context", "5000"), 1, "5,048"),
        (("--document-context", "400"), 1, "read all of 400"),
    ],
)
def test_mistakes_are_named(
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    more: tuple[str, ...],
    status: int,
    words: str,
) -> None:
    assert bench(folder, tmp_path, "--readers", "lexical", *more) == status
    assert words in capsys.readouterr().err


def test_a_dense_fallback_is_never_taken_for_a_scorer(loaded: LoadedModel) -> None:
    with pytest.raises(RequestError, match="lexical read all"):
        every(loaded)["lexical"].read(Prompt([5] * 300, "", ()))


def document(reader: str, seed: int, nll: float, kind: str = "code") -> Trial:
    return Trial(
        "document", kind, seed, reader, 1000, 1000 if reader == "dense" else 200, nll, 0.1 * seed, 0.5
    )


def asked(reader: str, seed: int, nll: float, passed: bool, name: str = "needle-10") -> Trial:
    return Trial("task", name, seed, reader, 1000, 200, nll, 0.0, 1.0, passed, int(passed), "")


def windows() -> list[Trial]:
    """Lexical is 1.1, 1.2, … times as perplexed as dense, random always twice."""
    trials = []
    for seed in range(1, 8):
        trials += [
            document("dense", seed, 1.0),
            document("lexical", seed, 1.0 + math.log(1.0 + seed / 10)),
            document("random", seed, 1.0 + math.log(2.0)),
        ]
    return trials


def test_perplexity_ratio_is_of_pairs() -> None:
    found = nearness(windows(), "document", "lexical")
    assert found.windows == 7
    assert found.ratio == pytest.approx(1.4)
    assert (found.ratio_low, found.ratio_high) == (pytest.approx(1.25), pytest.approx(1.55))
    assert found.read_share == 0.2
    assert found.kl_nats == pytest.approx(0.4)
    assert nearness(windows(), "document", "lexical", "story").windows == 0


def test_regressions_count_where_dense_passes() -> None:
    outcomes = [(True, True), (True, False), (True, False), (False, True), (False, False)]
    trials = []
    for seed, (dense, sparse) in enumerate(outcomes, 1):
        trials += [asked("dense", seed, 0.5, dense), asked("lexical", seed, 0.7, sparse)]
    found = passes(trials, ["needle-10"], "lexical")
    assert (found.seeds, found.dense, found.passed) == (5, 3, 2)
    assert (found.regressions, found.improvements) == (2, 1)
    assert found.p == 1.0
    assert (found.nll_dense, found.nll) == (0.5, 0.7)
    assert (found.likelier, found.less_likely) == (0, 5)
    assert found.p_likelier == pytest.approx(2 / 2**5)


def test_a_trial_without_its_dense_one_is_no_pair() -> None:
    assert passes([asked("lexical", 1, 0.5, True)], ["needle-10"], "lexical").seeds == 0


def test_a_duel_is_clear_only_with_enough_pairs() -> None:
    found = duel(windows(), "document", "lexical", "random", "likelihood")
    assert (found.wins, found.losses) == (7, 0)
    assert found.clear
    few = [trial for trial in windows() if trial.seed < 5]
    assert not duel(few, "document", "lexical", "random", "likelihood").clear
    assert not duel(windows(), "document", "random", "lexical", "likelihood").clear


def test_the_nearer_to_dense_wins_by_kl_and_an_unknown_kl_is_no_pair() -> None:
    trials = [
        replace(document(reader, seed, 1.0), kl_nats=kl)
        for seed in range(1, 8)
        for reader, kl in (("lexical", 0.1 * seed), ("random", 0.15 if seed > 1 else None))
    ]
    found = duel(trials, "document", "lexical", "random", "KL")
    assert (found.wins, found.losses, found.theirs) == (0, 6, 0.15)
    assert "| documents | KL | random |" not in report(trials)
    assert "| documents | KL | lexical | random | 0.450 | 0.150 | 0 | 6 | 0.031 | **no** |" in report(trials)


def test_tasks_that_need_everything_are_no_duel() -> None:
    trials = [asked(r, 1, n, True, "common-words") for r, n in (("lexical", 0.1), ("random", 0.9))]
    assert duel(trials, "task", "lexical", "random", "likelihood").wins == 0


def report(trials: list[Trial]) -> str:
    environment = describe("a blas")
    return write_report(
        QualityResults("quality", environment, "a model", 20.0, 4096, 7000, 256, "", 60.0, tuple(trials))
    )


def test_report_says_what_was_missed() -> None:
    text = report(windows())
    assert "**missed**" in text
    assert "| lexical | 7 | 20% | **1.400** (1.25–1.55) |" in text
    assert "| documents | likelihood | lexical | random |" in text
    assert "Tasks: passed" not in text


def test_passages_are_judged_by_themselves() -> None:
    """Worse than dense by less than the documents are, and won or lost on their own."""
    passages = [
        replace(document(reader, seed, nll), part="passage")
        for seed in range(1, 8)
        for reader, nll in (("dense", 0.5), ("lexical", 0.5 + math.log(1.05)), ("random", 2.0))
    ]
    trials = [*windows(), *passages]
    assert nearness(trials, "passage", "lexical").ratio == pytest.approx(1.05)
    assert nearness(trials, "document", "lexical").ratio == pytest.approx(1.4)
    text = report(trials)
    assert text.index("## Documents: perplexity") < text.index("## Passages requested")
    assert "| lexical | 7 | 20% | **1.050** (1.05–1.05) |" in text
    assert "| passages | likelihood | lexical | random | 0.549 | 2.000 | 7 | 0 | 0.016 | yes |" in text
    assert "Passages requested" not in report(windows())
    assert "\n\n\n" not in text


def test_hindsight_is_a_bound_not_a_scorer() -> None:
    assert "following tokens" not in report(windows())
    told = [document("hindsight-8", seed, 1.0 + math.log(1.05)) for seed in range(1, 8)]
    text = report(windows() + told)
    row = next(line for line in text.splitlines() if line.startswith("| hindsight-8 "))
    assert "**1.050**" in row
    assert "| – |" in row
    assert "scored with that many of the following tokens" in text
    assert "| documents | hindsight-8 |" not in text


def test_report_names_what_dense_fails() -> None:
    trials = windows()
    for seed in range(1, 5):
        trials += [
            asked("dense", seed, 0.5, True),
            asked("lexical", seed, 0.6, seed != 1),
            asked("dense", seed, 3.0, False, "common-words"),
            asked("lexical", seed, 4.0, False, "common-words"),
        ]
    text = report(trials)
    assert "| needle-10 | 4 | 4, 0.50 | 3 (1−, 0+), 0.60 |" in text
    assert "fewer than half densely of: common-words." in text
    assert "| common-words * |" in text
    assert "| **need no whole text** | 4 | 4, 0.50 | 3 (1−, 0+), 0.60 |" in text
    assert "| lexical | no | 4 | 1 | 0 | 1 | 0 | 4 | 0.12 |" in text
    assert "| lexical | yes | 4 | 0 | 0 | 1 | 0 | 4 | 0.12 |" in text


def test_report_says_on_how_many_prompts_a_reader_was_tried() -> None:
    trials = [asked("dense", seed, 0.5, True) for seed in range(1, 5)]
    trials += [asked("lexical", seed, 0.6, True) for seed in (1, 2)] + [asked("random", 4, 0.7, False)]
    text = report(trials)
    assert "| needle-10 | 4 | 4, 0.50 | 2 of 2 (0−, 0+), 0.60 | 0 of 1 (1−, 0+), 0.70 |" in text
    assert "| tasks | lexical | random |" not in text  # never tried on the same prompt
    trials += [asked("dense", seed, 3.0, False, "needle-50") for seed in (1, 2)]
    text = report(trials)
    assert "| needle-50 | 2 | 0, 3.00 | – | – |" in text
    assert "| lexical | yes |" not in text
