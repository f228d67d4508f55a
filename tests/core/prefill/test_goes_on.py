"""Requests for what comes next, and questions that only sound like one."""

from __future__ import annotations

import pytest

from core.prefill.goes_on import asks_to_go_on


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
def test_asked_in_many_languages(request_: str) -> None:
    assert asks_to_go_on(request_)


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
def test_a_question_about_one_place_is_none(request_: str) -> None:
    assert not asks_to_go_on(request_)


@pytest.mark.parametrize(("before", "after"), [("Continue this:\n", ""), ("", "\n\nPlease go on.")])
def test_what_stands_in_a_pasted_text_asks_for_nothing(before: str, after: str) -> None:
    pasted = "They will learn from it.\nContinue to the next page.\n" * 20
    filler = "It was a quiet year. " * 20
    assert not asks_to_go_on(filler + pasted + filler)
    assert asks_to_go_on(before + filler + pasted + filler + after)
