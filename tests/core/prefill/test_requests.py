"""Requests that need all of a text or its end, in several languages."""

from __future__ import annotations

import pytest

from core.prefill.layout import continues
from core.prefill.plan import needs_every_token


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
def test_requests_about_all_of_a_text(question: str) -> None:
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
def test_questions_about_a_place_need_no_whole_text(question: str) -> None:
    assert not needs_every_token(question)


@pytest.mark.parametrize(
    "request_",
    [
        "Continue.",
        "continue the story",
        "Please continue where the text ends.",
        "Could you go on?",
        "Here is my draft. Keep writing in the same voice.",
        "What happens next?",
        "Write the next chapter.",
        "Schreib die Geschichte weiter.",
        "Bitte fahre fort.",
        "Setze den Text fort.",
        "Wie geht es weiter?",
        "Ga verder.",
        "Schrijf het verhaal verder.",
        "Continue l'histoire, s'il te plaît.",
        "Écris la suite.",
        "Continúa la historia.",
        "Sigue escribiendo.",
        "Continua il racconto.",
        "Por favor continue.",
        "Продолжи рассказ.",
        "Что было дальше?",
        "请继续写这个故事。",
        "続きを書いてください。",
        "이야기를 계속 써 줘.",
    ],
)
def test_requests_to_continue(request_: str) -> None:
    assert continues(request_)


@pytest.mark.parametrize(
    "request_",
    [
        "",
        "Does the parking ban continue until May?",
        "When did the talks go on?",
        "Who continued the work of Ada?",
        "What is the next deadline?",
        "Wann geht der Zug weiter nach Ulm?",
        "Ist die Frist weiter gültig?",
        "Qui continue le travail ?",
        "Quando continua o curso?",
        "Кто продолжил работу?",
        "合同是谁签的？",
        "契約に署名したのは誰ですか。",
        "계약서에 서명한 사람은 누구야?",
    ],
)
def test_questions_that_sound_like_a_continuation(request_: str) -> None:
    assert not continues(request_)


@pytest.mark.parametrize(("before", "after"), [("Continue this:\n", ""), ("", "\n\nPlease go on.")])
def test_words_in_a_pasted_text_are_no_request(before: str, after: str) -> None:
    pasted = "They will learn from it.\nContinue to the next page.\n" * 20
    filler = "It was a quiet year. " * 20
    assert not continues(filler + pasted + filler)
    assert continues(before + filler + pasted + filler + after)
