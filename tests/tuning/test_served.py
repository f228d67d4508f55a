"""The client of `served` times the same tokens by its own clock and by the engine's."""

from __future__ import annotations

from pathlib import Path

from tests.core.serve.served import serving
from tests.tuning.served import ask, report


def test_both_clocks_time_the_same_tokens(toy_folder: Path) -> None:
    with serving(toy_folder) as served:
        answer = ask(served.port, 0, logit_bias={"0": -100})  # without an end
    assert answer.tokens > 50
    assert 0 < answer.engine_ttft_s < answer.ttft_s
    assert answer.engine_decode_s > 0
    assert answer.engine_ttft_s + answer.engine_decode_s < answer.ttft_s + answer.decode_s
    assert f"| {answer.added_ms:.1f} |" in report([answer])[-1]
