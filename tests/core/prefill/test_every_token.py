"""Questions that no part of a text can answer, in the languages that are known."""

from __future__ import annotations

import pytest

from core.prefill.every_token import needs_every_token


@pytest.mark.parametrize(
    "question",
    [
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
def test_asked_in_many_languages(question: str) -> None:
    assert needs_every_token(question)


@pytest.mark.parametrize(
    "question",
    [
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
    ],
)
def test_a_question_about_one_place_is_none(question: str) -> None:
    assert not needs_every_token(question)
