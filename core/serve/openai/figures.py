"""Figures of an answer: OpenAI's usage, llama.cpp's timings, and what Draftlight says besides."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from core.events import Change, Finished, Stats, Token
from core.serve.errors import without_paths


def usage(stats: Stats, thought_tokens: int = 0) -> dict[str, Any]:
    """OpenAI's. Rejected tokens of a prediction are no completion tokens here: nobody pays for them."""
    return {
        "prompt_tokens": stats.prompt_tokens,
        "completion_tokens": stats.tokens,
        "total_tokens": stats.prompt_tokens + stats.tokens,
        "prompt_tokens_details": {"cached_tokens": stats.reused_tokens, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": thought_tokens,
            "audio_tokens": 0,
            "accepted_prediction_tokens": stats.prediction_accepted,
            "rejected_prediction_tokens": stats.prediction_rejected,
        },
    }


def timings(stats: Stats) -> dict[str, Any]:
    """llama.cpp's names; `draft_…` are there if anything was drafted."""
    told: dict[str, Any] = {
        "cache_n": stats.reused_tokens,
        "prompt_n": stats.read_tokens,
        "prompt_ms": round(stats.prefill_s * 1000, 3),
        "prompt_per_second": round(stats.read_tokens / stats.prefill_s, 3) if stats.prefill_s else 0.0,
        "predicted_n": stats.tokens,
        "predicted_ms": round(stats.decode_s * 1000, 3),
        "predicted_per_second": round(stats.tokens_per_s, 3),
    }
    if stats.drafted:
        told |= {"draft_n": stats.drafted, "draft_n_accepted": stats.accepted}
    return told


def origins(tokens: Sequence[Token]) -> list[dict[str, Any]]:
    """Where each token came from: see docs/server.md."""
    return [
        {
            "id": token.id,
            "text": token.text,
            "origin": token.origin,
            "step": token.step,
            "position": token.position,
            "draft_index": token.draft_index,
            "draft_length": token.draft_length,
            "time_s": round(token.time_s, 6),
        }
        for token in tokens
    ]


def effective(finished: Finished, *, unlimited: bool, changes: Iterable[Change] = ()) -> dict[str, Any]:
    """The effective settings, and the reason for each difference from the request.

    `unlimited`: the request has no limit, so the context's limit is not a change. `changes` are those of the
    request's fields.
    """
    ran, stats = finished.effective, finished.stats
    told = [
        {
            "setting": change.setting,
            "asked": without_paths(change.asked),
            "used": without_paths(change.used),
            "reason": without_paths(change.reason),
        }
        for change in (*changes, *ran.changes)
        if not (unlimited and change.setting == "sampling.max_tokens")
    ]
    return {
        "drafter": ran.drafter,
        "reading": ran.reading,
        "reading_reason": ran.reading_reason,
        "skipped_tokens": stats.skipped_tokens,
        "mean_per_step": round(stats.mean_per_step, 3),
        "steps": stats.steps,
        "forced": stats.forced,
        "ttft_ms": round(stats.ttft_s * 1000, 3),
        "stopped_by": finished.stopped_by,
        "cancelled": finished.reason == "cancelled",
        "changes": told,
    }
