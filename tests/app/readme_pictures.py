"""The README's picture, from today's window with the starter's checked answers: `make readme-pictures`.

Two examples of the first page are asked in chats of their own, and their answers are checked.
`resources/readme/main.json` keeps what the picture shows, so that a test sees when the window has changed.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import sys
from pathlib import Path

from app.chat import strings
from app.chat.intents import UseExample
from app.launch.scenario import Deadline, ScenarioFailed, answer_of, point_at_token, run_scenario
from app.shell.commands import MENUS
from app.shell.window import MainWindow
from core.events import Message
from tests.app.chat.test_answers import check_code, check_list

FOLDER = Path(__file__).parents[2] / "resources" / "readme"
PICTURE, MANIFEST = FOLDER / "main-light.png", FOLDER / "main.json"
_SIZE = (1440, 900)
_TIMEOUT_S = 600.0
# The code last: its drafts show best.
_EXAMPLES = ((strings.EXAMPLE_LIST_TEXT, check_list), (strings.EXAMPLE_CODE_TEXT, check_code))


def menus() -> list[str]:
    """What the picture shows of the menus: their titles."""
    return [menu.title.replace("&", "") for menu in MENUS]


def manifest(answers: dict[str, str]) -> dict[str, object]:
    """What the picture shows; `answers` by their questions."""
    return {
        "version": importlib.metadata.version("draftlight"),
        "menus": menus(),
        "answers": answers,
        "sha256": hashlib.sha256(PICTURE.read_bytes()).hexdigest(),
    }


async def draw(window: MainWindow) -> None:
    deadline = Deadline(_TIMEOUT_S)
    await deadline.until_ready(window)
    window.resize(*_SIZE)
    window.columns.set_wants(sidebar=True, inspector=True)
    window.app_settings.set("look.token_colors", "drafts")
    window.controller.home.preferences.change(model_offered=True)
    answers: dict[str, str] = {}
    turn_id = ""
    for question, check in _EXAMPLES:
        window.controller.chat.start()
        window.views.first_page.intent.emit(UseExample(Message("user", question)))
        window.views.composer.submit()
        turn_id = window.controller.chats.open.turns[-1].id
        await deadline.until_ready(window)
        answer = answer_of(window, turn_id)
        assert answer is not None
        check(answer.text)
        answers[question] = answer.text
    await deadline.until(
        window, lambda: point_at_token(window, turn_id, "accepted"), "No accepted token is visible."
    )
    if not window.grab().save(str(PICTURE)):
        raise ScenarioFailed(f"{PICTURE} could not be written.")
    MANIFEST.write_text(json.dumps(manifest(answers), indent=1, ensure_ascii=False) + "\n", "utf-8")
    print(PICTURE)


if __name__ == "__main__":
    sys.exit(run_scenario(draw, scheme="light"))
