"""The tasks of `bench quality`, one registry. Generators are seeded and need no network."""

from __future__ import annotations

from core.bench.quality.tasks import aggregates, facts, needles, structures
from core.bench.quality.tasks.case import Case, Task
from core.errors import RequestError

__all__ = ["TASKS", "Case", "Task", "task"]

TASKS: dict[str, Task] = {
    one.name: one
    for one in (
        Task("needle-10", "adversarial", needles.needle(0.1)),
        Task("needle-50", "adversarial", needles.needle(0.5)),
        Task("needle-90", "adversarial", needles.needle(0.9)),
        Task("json-three", "adversarial", structures.json_three),
        Task("planted-bug", "adversarial", structures.planted_bug, answer_tokens=24),
        Task("back-reference", "adversarial", structures.back_reference, answer_tokens=16),
        Task("other-language", "adversarial", facts.hidden(facts.OTHER_LANGUAGE), answer_tokens=16),
        Task("nested-xml", "adversarial", structures.nested_xml, answer_tokens=16),
        Task("other-words", "own", facts.hidden(facts.OTHER_WORDS), answer_tokens=16),
        Task("multi-key", "ruler", needles.multi_key, answer_tokens=16),
        Task("multi-value", "ruler", needles.multi_value),
        Task("multi-query", "ruler", needles.multi_query),
        Task("common-words", "ruler", aggregates.common_words, everything=True),
        Task("frequent-words", "ruler", aggregates.frequent_words, everything=True),
        Task("variable-tracking", "ruler", aggregates.variable_tracking, everything=True),
    )
}


def task(name: str) -> Task:
    """The task called `name`. Raises `RequestError` naming the known ones."""
    try:
        return TASKS[name]
    except KeyError:
        raise RequestError(f"There is no task called “{name}”.", f"Choose from {', '.join(TASKS)}.") from None
