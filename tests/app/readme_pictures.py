"""The README's pictures, from today's window with the starter's answer in mid-air: `make readme-pictures`.

A question about two chapters of the first page's manual is asked. While its answer is written, the window is
drawn with both views of its tokens, drafts and origins, light and dark. `resources/readme/main.json` keeps
what the pictures show, so that a test sees when the window has changed.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib.metadata
import json
import sys
from pathlib import Path

from app.chat import strings
from app.chat.first_page import example_document
from app.chat.intents import UseExample
from app.launch.scenario import Deadline, ScenarioFailed, answer_of, run_scenario
from app.shell.commands import MENUS
from app.shell.window import MainWindow
from app.theme.theme import Scheme, theme
from core.events import Attachment, Message
from tests.app.chat.test_answers import check_list

FOLDER = Path(__file__).parents[2] / "resources" / "readme"
MANIFEST = FOLDER / "main.json"
VIEWS = ("drafts", "origins")
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
PICTURES = tuple(FOLDER / f"{view}-{scheme}.png" for view in VIEWS for scheme in SCHEMES)
QUESTION = "Quote the section about hot water."
_SIZE = (1440, 900)
_TIMEOUT_S = 600.0
# Of the answer while it is drawn: enough for both views, and not yet its end.
_TOKENS = 120
_PAINTED_S = 0.3


def manual() -> Attachment:
    """The chapters about display and hot water."""
    whole = example_document()
    return Attachment("display.md", whole.text[whole.text.index("\n3 ") + 1 : whole.text.index("\n5 ")])


def menus() -> list[str]:
    """What the pictures show of the menus: their titles."""
    return [menu.title.replace("&", "") for menu in MENUS]


def manifest(answer: str) -> dict[str, object]:
    """What the pictures show; `answer` is what was written until then."""
    return {
        "version": importlib.metadata.version("draftlight"),
        "menus": menus(),
        "answer": answer,
        "sha256": {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in PICTURES},
    }


async def _ask(window: MainWindow, message: Message) -> str:
    window.controller.chat.start()
    window.views.first_page.intent.emit(UseExample(message))
    window.views.composer.submit()
    return window.controller.chats.open.turns[-1].id


async def draw(window: MainWindow) -> None:
    deadline = Deadline(_TIMEOUT_S)
    await deadline.until_ready(window)
    window.resize(*_SIZE)
    window.columns.set_wants(sidebar=True, inspector=False)
    window.controller.home.preferences.change(model_offered=True)
    listed = await _ask(window, Message("user", strings.EXAMPLE_LIST_TEXT))
    await deadline.until_ready(window)
    months = answer_of(window, listed)
    assert months is not None
    check_list(months.text)
    turn_id = await _ask(window, Message("user", QUESTION, (manual(),)))

    def has_enough() -> bool:
        answer = answer_of(window, turn_id)
        return answer is None or answer.over or len(answer.tokens) >= _TOKENS

    await deadline.until(window, has_enough, "The answer did not come.")
    for view in VIEWS:
        window.app_settings.set("look.token_colors", view)
        for scheme in SCHEMES:
            theme.set_scheme(scheme)
            await asyncio.sleep(_PAINTED_S)
            if not window.grab().save(str(FOLDER / f"{view}-{scheme}.png")):
                raise ScenarioFailed(f"The picture of {view}, {scheme}, could not be written.")
    answer = answer_of(window, turn_id)
    if answer is None or answer.over:
        raise ScenarioFailed("The answer had ended before the pictures were drawn.")
    MANIFEST.write_text(json.dumps(manifest(answer.text), indent=1, ensure_ascii=False) + "\n", "utf-8")
    print(*PICTURES, sep="\n")


if __name__ == "__main__":
    sys.exit(run_scenario(draw, scheme="light"))
