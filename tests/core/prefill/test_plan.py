"""The plan: all of it or parts, and why."""

from __future__ import annotations

import pytest

from core.prefill.plan import Decision, decide, dense_reason, needs_every_token
from core.settings.prefill import Prefill


@pytest.mark.parametrize(
    "question",
    [
        "How many invoices are open?",
        "Count the errors.",
        "List all names.",
        "Name every town in it.",
        "Translate the whole text into French.",
        "What is the most common word?",
        "Copy it verbatim.",
        "Wie viele Rechnungen sind offen?",
        "Nenne jeden Ort, der vorkommt.",
        "Combien de factures sont ouvertes ?",
        "Donne toutes les dates.",
        "¿Cuántas facturas hay?",
        "Quantas faturas há?",
        "Elenca tutti i nomi.",
        "Hoeveel namen staan erin?",
        "Сколько имён в тексте?",
        "列出所有名字。",
        "名前をすべて挙げてください。",
        "모든 이름을 나열해 줘.",
    ],
)
def test_these_need_every_token(question: str) -> None:
    assert needs_every_token(question)
    assert dense_reason(Prefill(), question)
    assert not dense_reason(Prefill(mode="on"), question)


@pytest.mark.parametrize(
    "question",
    [
        "Who signed the contract?",
        "What does the contract say about refunds?",
        "Summarise the findings.",
        "Wer hat den Vertrag unterschrieben?",
        "Qui a signé le contrat ?",
        "¿Quién firmó el contrato?",
        "Quem assinou o contrato?",
        "Chi ha firmato il contratto?",
        "Wie heeft het contract getekend?",
        "Кто подписал договор?",
        "谁签了合同？",
        "契約に署名したのは誰ですか。",
        "계약서에 서명한 사람은 누구야?",
        "What is on the todo list for the tel. exchange in Cadaqués?",
        "",
    ],
)
def test_these_do_not(question: str) -> None:
    assert not needs_every_token(question)
    assert not dense_reason(Prefill(), question)


def test_off_and_a_share_of_everything_read_everything() -> None:
    for settings in (Prefill(mode="off"), Prefill(mode="on", keep_pct=100.0)):
        whole = dense_reason(settings, "Who?")
        decision = decide(settings, whole, 100_000)
        assert (decision.sparse, decision.deviates) == (False, False)


def test_auto_reads_short_prompts_whole() -> None:
    settings = Prefill(threshold_tokens=1000)
    assert decide(settings, "", 1000, 9.0).sparse
    short = decide(settings, "", 999, 9.0)
    assert not short.sparse
    assert not short.deviates
    assert decide(Prefill(mode="on", threshold_tokens=1000), "", 10).sparse


@pytest.mark.parametrize(
    ("tokens", "dense_s", "sparse"),
    [
        (5000, 8.1, True),
        (5000, 8.0, False),
        (100_000, 7.9, False),  # a fast machine reads it all
        (2047, 60.0, False),  # too short to gain much
        (2048, 60.0, True),
        (2047, None, False),  # not measured yet: the threshold decides
        (2048, None, True),
    ],
)
def test_auto_depends_on_the_predicted_time(tokens: int, dense_s: float | None, sparse: bool) -> None:
    assert decide(Prefill(), "", tokens, dense_s).sparse is sparse
    assert decide(Prefill(mode="on"), "", tokens, dense_s).sparse


def test_the_patience_is_a_setting_and_the_time_is_said() -> None:
    decision = decide(Prefill(patience_s=30.0), "", 9000, 31.4)
    assert decision == Decision(True, "9,000 tokens are new, about 31 s to read whole")
    assert not decide(Prefill(patience_s=32.0), "", 9000, 31.4).sparse


def test_a_refusal_is_said_only_where_something_was_refused() -> None:
    settings = Prefill(threshold_tokens=1000)
    whole = dense_reason(settings, "Count them.")
    assert not decide(settings, whole, 999, 9.0).deviates
    assert decide(settings, whole, 1000, 9.0) == Decision(False, whole, deviates=True)
    assert "all of it was read" in whole
