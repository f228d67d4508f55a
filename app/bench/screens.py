"""Pictures of every screen, from the real window with a real worker: `make screens`.

One run, one window, and each screen as a person would come to it, in one scheme after the other.
What this build does not have (a window that is not bound) is left out and said.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import QSize
from PySide6.QtWidgets import QWidget

from app.bench.sample_chat import SCRIPTS, script_turn
from app.bench.served import Client, free_port
from app.features.about import AboutWindow
from app.features.race.state import Stage
from app.launch.display import go_offscreen_without_display
from app.launch.scenario import (
    FIRST_QUESTION,
    SECOND_QUESTION,
    Deadline,
    ScenarioFailed,
    answer_of,
    ask,
    document,
    point_at_token,
    run_scenario,
)
from app.richtext.find_bar import Finder
from app.session.turn.link_state import Phase
from app.shell.columns import INSPECTOR_BESIDE_FROM_PX
from app.shell.window import MainWindow
from app.theme.theme import Scheme
from core.events import Attachment, Message
from core.settings import assign
from core.settings.window import ZOOM_STEPS_PCT

_TIMEOUT_S = 1800.0
_SETTLED_S = 1.2
_ANSWER_TOKENS = 80
_GRAB_AFTER_TOKENS = 60
_THEME_S = 0.3
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
_SIZE, _ZOOM_PCT = (1440, 900), 100
# Qt's own offscreen is smaller than most windows are designed.
_OFFSCREEN_PX = (1920, 1200)
# Each has a method of its name in `_Screens`, or is a side window. First those that need no answer.
SCREENS = (
    "empty",
    "panels",
    "models",
    "settings",
    "tools",
    "help",
    "deleted",
    "about",
    "library",
    "scripts",
    "lab",
    "main",
    "queue",
    "versions",
    "tables",
    "race",
    "server",
    "reading",
    "error",
)
_RULES = 130
_TOKENS_BEFORE_QUEUE = 8
_RACE_TOKENS = 64
# User agent, question, tokens: what editors and scripts ask.
_ASKED = (
    ("OpenAI/Python 2.8.1", "Name three kinds of boats that a harbour has, one a line.", 48),
    ("litellm/1.80.0", "Write the JSON object of one berth: its number, depth and whether it is free.", 64),
)
_ASKED_LAST = ("Continue/1.3.2", "Write down everything that a harbour pilot does on one day.", 2000)
# A measurement that is soon over.
_LAB_DRAFTERS = ("auto", "ngram-simple")
_LAB_TOKENS = 32


def run_screens(
    out: str,
    schemes: Sequence[Scheme] = SCHEMES,
    only: Sequence[str] = SCREENS,
    model: str = "starter",
    sizes: Sequence[tuple[int, int]] = (_SIZE,),
    zooms_pct: Sequence[int] = (_ZOOM_PCT,),
) -> int:
    """Saves the pictures of `only` to the folder `out`. Returns 0, or 1 after a message on stderr.

    The chat window is taken in each of `sizes` (px) with texts of each of `zooms_pct`; a picture's name says
    so where that is not 1440 × 900 at 100%.
    """
    folder = Path(out)

    async def scenario(window: MainWindow) -> None:
        await _Screens(window, folder, schemes, sizes, zooms_pct).all(only)

    go_offscreen_without_display(os.environ, sys.platform)
    with tempfile.TemporaryDirectory() as place:
        if os.environ.get("QT_QPA_PLATFORM") == "offscreen":
            os.environ["QT_QPA_PLATFORM"] = f"offscreen:configfile={_screen_file(Path(place))}"
        folder.mkdir(parents=True, exist_ok=True)
        return run_scenario(scenario, model, scheme=schemes[0])


class _Screens:
    def __init__(
        self,
        window: MainWindow,
        folder: Path,
        schemes: Sequence[Scheme],
        sizes: Sequence[tuple[int, int]],
        zooms_pct: Sequence[int],
    ) -> None:
        self._window = window
        window.columns.set_wants(sidebar=True, inspector=True)  # closed at the first start
        window.app_settings.set("look.token_colors", "drafts")
        self._folder = folder
        self._schemes = schemes
        self._forms = [(size, zoom_pct) for size in sizes for zoom_pct in zooms_pct]
        self._deadline = Deadline(_TIMEOUT_S)

    async def all(self, only: Sequence[str]) -> None:
        await self._ready()
        for name in SCREENS:
            if name in only:
                step = getattr(self, f"_{name}", None)
                await (step() if step else self._side(name))

    async def _empty(self) -> None:
        await self._grab("empty")

    async def _main(self) -> None:
        """An answer about a document, and a second one being written, the pointer on a token of it."""
        self._window.views.composer.attach(Attachment("Harbour handbook", document()))
        self._set("sampling.max_tokens", _ANSWER_TOKENS)
        ask(self._window, FIRST_QUESTION)
        await self._ready()
        self._set("sampling.max_tokens", 4 * _ANSWER_TOKENS)
        turn_id = ask(self._window, SECOND_QUESTION)
        await self._written(turn_id, _GRAB_AFTER_TOKENS)
        await self._grab("main", before=lambda: point_at_token(self._window, turn_id, "accepted"))
        self._window.controller.asking.readiness.stop_running()
        await self._ready()
        await self._find("find", self._window.views.transcript.finder, "handbook")

    async def _scripts(self) -> None:
        """Chats in other scripts than Latin, with formulas, and with tables."""
        transcript = self._window.views.transcript
        self._window.views.show_first_page(False)
        for name in SCRIPTS:
            transcript.clear()
            transcript.show_turns((script_turn(name),))
            await self._grab(f"script-{name}")
        transcript.clear()
        self._window.controller.chat.start()

    async def _panels(self) -> None:
        """Each panel over the content, where the window is too narrow."""
        columns = self._window.columns
        for name, show in (("sidebar", columns.show_sidebar), ("inspector", columns.show_inspector)):
            for form in [form for form in self._forms if form[0][0] < INSPECTOR_BESIDE_FROM_PX]:
                await self._grab(f"panel-{name}", before=partial(show, True), forms=(form,))

    async def _about(self) -> None:
        about = AboutWindow(self._window)
        about.show()
        await self._grab("about", about)
        about.close()

    async def _queue(self) -> None:
        """A message that waits for the answer under way."""
        self._set("sampling.max_tokens", 40 * _ANSWER_TOKENS)
        turn_id = ask(self._window, "Write down everything that a harbour pilot does on one day.")
        await self._written(turn_id, _TOKENS_BEFORE_QUEUE)
        self._window.controller.asking.queue.add(Message("user", "And what does the pilot do at night?"))
        await self._grab("queue")
        chat = self._window.controller.chats.open
        self._window.controller.asking.queue.remove(0, chat.queued[0].message)
        self._window.controller.asking.readiness.stop_running()
        await self._ready()

    async def _versions(self) -> None:
        """An answer in two versions."""
        self._set("sampling.max_tokens", _ANSWER_TOKENS)
        self._set("sampling.temperature", 0.8)
        self._window.controller.asking.regenerate()
        await self._ready()
        await self._grab("versions")
        self._set("sampling.temperature", 0.0)

    async def _race(self) -> None:
        """The race with both answers."""
        page = self._window.race_page
        self._window.menu_actions["race"].trigger()
        page.prompt.most_tokens.set_value(_RACE_TOKENS)
        page.start_button.click()
        racing = self._window.controller.racing
        await self._until(lambda: racing.race.stage is Stage.RUN, "the race is recorded")
        await self._grab("race")
        self._window.menu_actions["race"].trigger()

    async def _server(self) -> None:
        """The window's server in the middle of a request, after two others; then the chat, which waits."""
        self._window.app_settings.set("server.port", await free_port())
        self._window.app_settings.set("server.on", True)
        server = self._window.controller.server
        await self._until(lambda: server.state.status == "on", "the server listens")
        for agent, question, tokens in _ASKED:
            await Client(server.state.address, agent, question, tokens).ended()
        agent, question, tokens = _ASKED_LAST
        running = Client(server.state.address, agent, question, tokens)
        waiting = Client(server.state.address, *_ASKED[0])
        requests = self._window.controller.sharing.requests

        def written() -> bool:
            return any(each.state == "writing" and each.tokens > _GRAB_AFTER_TOKENS for each in requests.all)

        await self._until(lambda: running.done or written(), "a request is answered")
        if running.done:
            raise ScenarioFailed("The request was over before it could be seen.")
        window = self._window.windows.show("server")
        await self._grab("server", window)
        window.close()
        self._window.controller.chat.start()
        ask(self._window, SECOND_QUESTION)
        await self._grab("waiting")
        self._window.controller.asking.readiness.stop_running()
        for client in (running, waiting):
            await client.leave()
        self._window.app_settings.set("server.on", False)
        await self._until(lambda: server.state.status == "off", "the server ended")
        await self._ready()

    async def _side(self, name: str) -> None:
        if not self._window.menu_actions[name].isVisible():
            print(f"{name}: not in this build")
            return
        window = self._window.windows.show(name)
        if name == "models":
            await self._until(lambda: self._window.controller.models.state.listed, "models are listed")
        await self._grab(name, window)
        window.close()

    async def _lab(self) -> None:
        """A small measurement, made now on this machine."""
        window, lab = self._window.windows.show("lab"), self._window.lab
        assert lab.window
        for drafter, box in lab.window.boxes.items():
            box.setChecked(drafter in _LAB_DRAFTERS)
        lab.window.repeats.set_value(1)
        lab.window.most_tokens.set_value(_LAB_TOKENS)
        lab.window.run_button.click()
        await self._until(lambda: not lab.measurement.running, "the measurement is over")
        if lab.measurement.trouble:
            raise ScenarioFailed(f"The measurement ended: {lab.measurement.trouble}")
        await self._grab("lab", window)
        window.close()

    async def _reading(self) -> None:
        """A long text while it is read sparsely."""
        rules = (
            f"Rule {n}. The pilot of berth {n % 9} waits for the tide, whatever {n % 24} ships say."
            for n in range(1, _RULES)
        )
        self._window.controller.chat.start()
        self._set("prefill.mode", "on")
        self._set("sampling.max_tokens", _ANSWER_TOKENS)
        self._window.views.composer.attach(Attachment("Harbour rules", "\n\n".join(rules)))
        ask(self._window, "Who waits at berth 7?")
        views = self._window.views

        def read() -> bool:
            turn = self._window.controller.chats.open.turns[-1]
            return turn.answer.reading is not None

        await self._until(read, "the selection of passages is known")
        self._window.commands.show_document()
        await self._grab("prefill", settled_s=0.4)
        await self._ready()
        await self._grab("document")
        await self._find("find-document", views.document.finder, "tide")
        views.side.show_tab("settings")

    async def _find(self, name: str, finder: Finder, words: str) -> None:
        """The find bar with its results."""
        finder.open()
        finder.bar.field.setText(words)
        await self._grab(name)
        finder.close()

    async def _error(self) -> None:
        """The worker is killed while it writes."""
        self._set("prefill.mode", "auto")
        self._window.controller.chat.start()
        self._set("sampling.max_tokens", 40 * _ANSWER_TOKENS)
        turn_id = ask(self._window, "Write down everything that a harbour pilot does on one day.")
        await self._written(turn_id, _GRAB_AFTER_TOKENS)
        pid = self._window.worker.pid
        assert pid
        os.kill(pid, signal.SIGKILL if sys.platform != "win32" else signal.SIGTERM)
        while self._window.controller.link.phase is not Phase.DEAD:
            await asyncio.sleep(0.02)
        await self._grab("error")

    # ---- steps

    def _set(self, key: str, value: object) -> None:

        inspector = self._window.views.inspector
        inspector.set_settings(assign(inspector.settings, key, value))

    async def _ready(self) -> None:
        await self._deadline.until_ready(self._window)

    async def _until(self, condition: object, what: str) -> None:
        assert callable(condition)
        await self._deadline.until(self._window, condition, f"Not in time: {what}.")

    async def _written(self, turn_id: str, tokens: int) -> None:
        def long_enough() -> bool:
            answer = answer_of(self._window, turn_id)
            return answer is None or answer.over or len(answer.tokens) >= tokens

        await self._until(long_enough, "the answer has begun")

    async def _grab(
        self,
        name: str,
        widget: QWidget | None = None,
        settled_s: float = _SETTLED_S,
        before: Callable[[], object] | None = None,
        forms: Sequence[tuple[tuple[int, int], int]] = (),
    ) -> None:
        """`before` is done again for each picture. Side windows keep their own size, where that fits."""
        shown = widget or self._window
        own = shown.size() if widget else QSize(*_SIZE)
        for size, zoom_pct in forms or self._forms:
            self._window.app_settings.set("look.zoom_pct", zoom_pct)
            keeps_size = widget is not None and zoom_pct == _ZOOM_PCT
            shown.resize(own.boundedTo(QSize(*size)) if keeps_size else QSize(*size))
            told = name if (size, zoom_pct) == (_SIZE, _ZOOM_PCT) else f"{name}-{_form(size, zoom_pct)}"
            await self._grab_schemes(told, shown, settled_s, before)
        self._window.app_settings.set("look.zoom_pct", _ZOOM_PCT)
        shown.resize(own)

    async def _grab_schemes(
        self, name: str, widget: QWidget, settled_s: float, before: Callable[[], object] | None
    ) -> None:
        for number, scheme in enumerate(self._schemes):
            self._window.app_settings.set("look.scheme", scheme)
            if before:
                before()
            await asyncio.sleep(_THEME_S if number and not before else settled_s)
            path = self._folder / f"{name}-{scheme}.png"
            if not widget.grab().save(str(path)):
                raise ScenarioFailed(f"The picture could not be saved to {path}.")
            print(path, flush=True)


def main(argv: Sequence[str] | None = None) -> int:
    """`python -m app.bench.screens --out DIR [--schemes light] [--only models lab] [--sizes 1024x700]`."""
    parser = argparse.ArgumentParser(prog="python -m app.bench.screens")
    parser.add_argument("--out", required=True, help="folder for the pictures")
    parser.add_argument("--schemes", choices=SCHEMES, nargs="+", default=SCHEMES)
    parser.add_argument("--only", choices=SCREENS, nargs="+", default=SCREENS)
    parser.add_argument("--model", default="starter")
    parser.add_argument("--sizes", type=_size, nargs="+", default=[_SIZE], help="such as 1024x700")
    parser.add_argument("--zooms", type=int, choices=ZOOM_STEPS_PCT, nargs="+", default=[_ZOOM_PCT])
    options = parser.parse_args(argv)
    return run_screens(
        options.out, options.schemes, options.only, options.model, options.sizes, options.zooms
    )


def _screen_file(place: Path) -> Path:
    """Returns the configuration of the screen of Qt's offscreen platform."""
    width, height = _OFFSCREEN_PX
    screen = {"name": "wide", "x": 0, "y": 0, "width": width, "height": height}
    dots = {"logicalDpi": 96, "logicalBaseDpi": 96, "dpr": 1.0}
    path = place / "screen.json"
    path.write_text(json.dumps({"screens": [screen | dots]}))
    return path


def _form(size: tuple[int, int], zoom_pct: int) -> str:
    return f"{size[0]}x{size[1]}-{zoom_pct}"


def _size(text: str) -> tuple[int, int]:
    width, _, height = text.partition("x")
    if not (width.isdecimal() and height.isdecimal()):
        raise argparse.ArgumentTypeError(f"“{text}” is not a size; write it as 1024x700")
    return int(width), int(height)


if __name__ == "__main__":
    sys.exit(main())
