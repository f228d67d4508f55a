"""The bench's client: what it times of an answer, by its own clock and by the engine's."""

from __future__ import annotations

from pathlib import Path

from core.bench.serve import BenchServer
from tests.core.serve.served import serving

ASKED = [{"role": "user", "content": "hello"}]


def test_both_clocks_time_the_same_tokens(toy_folder: Path, tmp_path: Path) -> None:
    with serving(toy_folder) as served:
        server = BenchServer("draftlight", (), served.port, tmp_path / "log")
        endless = {"logit_bias": {"0": -100}}
        answer = server.chat(ASKED, 100, **endless, draftlight={"tokens": True})
        assert answer.tokens == 100
        assert 0 < answer.engine_ttft_s < answer.ttft_s
        assert answer.engine_decode_s > 0
        assert answer.engine_ttft_s + answer.engine_decode_s < answer.ttft_s + answer.decode_s
        untimed = server.chat(ASKED, 4)
        assert (untimed.engine_ttft_s, untimed.engine_decode_s) == (0.0, 0.0)
