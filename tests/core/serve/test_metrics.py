"""Figures for Prometheus: opt-in, and what the answers came to."""

from __future__ import annotations

import re
from pathlib import Path

from tests.core.serve.served import Served, serving


def figures(served: Served) -> dict[str, float]:
    reply = served.ask("GET", "/metrics")
    assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = reply.body.decode().splitlines()
    assert all(re.fullmatch(r'# (HELP|TYPE) .+|\w+(\{\w+="[^"]+"\})? [-+.e\d]+', line) for line in lines)
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if line[0] != "#"}


def test_they_are_told_only_if_that_was_chosen(served: Served) -> None:
    assert served.ask("GET", "/metrics").status == 404


def test_they_add_up(toy_folder: Path) -> None:
    with serving(toy_folder, metrics=True) as served:
        first, second = served.chat("one").json, served.chat("two", max_tokens=20).json
        served.chat("x" * 900)
        told = figures(served)
        assert told["draftlight_completion_tokens_total"] == 32
        both = (first, second)
        assert told["draftlight_prompt_tokens_total"] == sum(one["usage"]["prompt_tokens"] for one in both)
        assert told["draftlight_cached_tokens_total"] == sum(one["timings"]["cache_n"] for one in both)
        assert told["draftlight_accepted_tokens_total"] == sum(
            one["timings"].get("draft_n_accepted", 0) for one in both
        )
        assert told['draftlight_requests_total{state="finished"}'] == 2
        assert told['draftlight_requests_total{state="failed"}'] == 1
        assert told["draftlight_time_to_first_token_seconds_count"] == 2
        assert told['draftlight_time_to_first_token_seconds_bucket{le="+Inf"}'] == 2
        assert told["draftlight_requests_running"] == told["draftlight_requests_waiting"] == 0
