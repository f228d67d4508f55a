"""The quality bench on a toy: every reader reads as it should, a stopped run goes on, mistakes are named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from core.bench.quality.readers import Hindsight, Reader, log_probabilities, mean_nll, readers
from core.bench.quality.results import SCORELESS, hindsight
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
    from core.bench.quality import readers as module

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
    from core.bench.quality import readers as module

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
