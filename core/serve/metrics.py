"""`GET /metrics`: figures in Prometheus' text form, counted since the server was made.

Numbers only: no client's name, no model's path, nothing that was said.
"""

from __future__ import annotations

from collections import Counter
from itertools import accumulate

from starlette.types import Receive, Scope, Send

from core.events import Event, Finished
from core.serve.http import send_whole
from core.serve.queue import Answers
from core.serve.requests import ServedRequest

_KIND = "text/plain; version=0.0.4; charset=utf-8"
_TTFT_S = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
_COUNTERS = {
    "prompt_tokens": "Tokens of prompts.",
    "cached_tokens": "Tokens of prompts that were in the cache.",
    "read_tokens": "Tokens of prompts that were read.",
    "skipped_tokens": "Tokens of prompts that sparse prefill left out.",
    "embedded_tokens": "Tokens of texts that vectors were computed of.",
    "completion_tokens": "Tokens that were written.",
    "drafted_tokens": "Tokens that were drafted.",
    "tested_tokens": "Drafted tokens that verification reached.",
    "accepted_tokens": "Drafted tokens that were accepted.",
    "forced_tokens": "Accepted tokens that a grammar forced.",
    "prediction_accepted_tokens": "Tokens of predicted outputs that came.",
    "prediction_rejected_tokens": "Tokens of predicted outputs that did not come.",
    "steps": "Forward passes of the model.",
    "prefill_seconds": "Seconds that prompts were read for.",
    "decode_seconds": "Seconds that answers were written for.",
}


class Metrics:
    """The endpoint, which counts what requests and answers report."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self._totals: Counter[str] = Counter()
        self._ended: Counter[str] = Counter()
        self._embedding: set[str] = set()
        self._ttft = [0] * (len(_TTFT_S) + 1)
        self._ttft_sum_s = 0.0
        self._stop_listening = answers.requests.listen(self)

    def close(self) -> None:
        """Stop counting."""
        self._stop_listening()

    def request_changed(self, request: ServedRequest) -> None:
        """Count a request that is over."""
        if request.is_over:
            self._ended[request.state] += 1
            self._embedding.discard(request.id)
            self._totals["embedded_tokens"] += request.read_tokens if request.embeds else 0
        elif request.embeds:
            self._embedding.add(request.id)

    def request_heard(self, request: str, event: Event) -> None:
        """Add the figures of a finished answer."""
        if not isinstance(event, Finished):
            return
        stats = event.stats
        told = {
            "prompt_tokens": stats.prompt_tokens,
            "cached_tokens": stats.reused_tokens,
            "read_tokens": stats.read_tokens,
            "skipped_tokens": stats.skipped_tokens,
            "completion_tokens": stats.tokens,
            "drafted_tokens": stats.drafted,
            "tested_tokens": stats.tested,
            "accepted_tokens": stats.accepted,
            "forced_tokens": stats.forced,
            "prediction_accepted_tokens": stats.prediction_accepted,
            "prediction_rejected_tokens": stats.prediction_rejected,
            "steps": stats.steps,
            "prefill_seconds": stats.prefill_s,
            "decode_seconds": stats.decode_s,
        }
        for name, value in told.items():
            self._totals[name] += value  # type: ignore[assignment]
        if stats.tokens:
            place = next((at for at, most in enumerate(_TTFT_S) if stats.ttft_s <= most), len(_TTFT_S))
            self._ttft[place] += 1
            self._ttft_sum_s += stats.ttft_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await send_whole(send, self.text().encode(), _KIND)

    def text(self) -> str:
        """All figures as text."""
        queue = self._answers.queue.tickets
        lines: list[str] = []
        for name, help_ in _COUNTERS.items():
            lines += _family(f"draftlight_{name}_total", "counter", help_)
            lines.append(f"draftlight_{name}_total {self._totals[name]:.10g}")
        lines += _family("draftlight_requests_total", "counter", "Requests that are over, by how they ended.")
        lines += [
            f'draftlight_requests_total{{state="{state}"}} {self._ended[state]}'
            for state in ("finished", "failed", "cancelled")
        ]
        lines += _family("draftlight_requests_running", "gauge", "Requests that are answered now.")
        lines.append(f"draftlight_requests_running {min(1, len(queue)) + len(self._embedding)}")
        lines += _family("draftlight_requests_waiting", "gauge", "Requests that wait.")
        lines.append(f"draftlight_requests_waiting {max(0, len(queue) - 1)}")
        lines += _family(
            "draftlight_time_to_first_token_seconds", "histogram", "From when a worker took it up."
        )
        counts = list(accumulate(self._ttft))
        lines += [
            f'draftlight_time_to_first_token_seconds_bucket{{le="{most}"}} {count}'
            for most, count in zip([*map(str, _TTFT_S), "+Inf"], counts)
        ]
        lines.append(f"draftlight_time_to_first_token_seconds_sum {self._ttft_sum_s:.6f}")
        lines.append(f"draftlight_time_to_first_token_seconds_count {counts[-1]}")
        return "\n".join(lines) + "\n"


def _family(name: str, kind: str, help_: str) -> list[str]:
    return [f"# HELP {name} {help_}", f"# TYPE {name} {kind}"]
