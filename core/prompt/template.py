"""Chat templates of model folders, rendered in a process with limits, and the features they support.

A template is an untrusted program: it can loop forever, or allocate all memory in one expression. A separate
process (`core.system.template_child`) therefore compiles and renders it, and remains for the next turn. A
process that takes too long is killed, and the next turn starts another.

`TemplateSupport` finds out which conversations a template accepts by rendering small ones. Each of its
properties renders one or several of them when it is first read: one counts as accepted if the template raises
no error and writes every content, in order. Their words are ones that no template has.
"""

from __future__ import annotations

import atexit
import json
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, cached_property
from hashlib import blake2b
from itertools import pairwise, product
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from core.errors import ChatTemplateError
from core.system.children import CHILD_FOLDER, child_command, child_environment

# Real templates take milliseconds, even for a full context.
RENDER_S = 10.0
# The first rendering may coincide with the reading of weights.
_START_S = 60.0
MEMORY_BYTES = 512 * 1024 * 1024
# Limit of the text that the template adds, a thousand times that of real templates.
_OWN_CHARACTERS = 1_000_000
# A template may write a content twice, or with each character escaped.
_TIMES_CONTENT = 8

_CHOOSE = "Choose another model, or fix the chat template in its folder."


class RefusedError(ChatTemplateError):
    """The template raised an error for this conversation; `why` is its message."""

    def __init__(self, model: str, why: str) -> None:
        self.why = why
        super().__init__(
            model,
            f"refuses this conversation: {why.rstrip('.')}",
            "Start a new chat, or choose another model.",
        )


class TemplateRenderer:
    """One process at a time, from the first `start` or `render` to `close`. Any thread, one at a time."""

    def __init__(
        self, render_s: float = RENDER_S, memory_bytes: int = MEMORY_BYTES, start_s: float = _START_S
    ) -> None:
        self._render_s = render_s
        self._memory_bytes = memory_bytes
        self._start_s = start_s
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._ready = False

    @property
    def pid(self) -> int | None:
        """The process's id; None while there is none."""
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Starts the process in advance."""
        with self._lock:
            self._started()

    def render(
        self, name: str, template: str, messages: Sequence[Mapping[str, Any]], named: Mapping[str, Any]
    ) -> str:
        """Render `messages` with the `template` of model `name`; `named` are its other variables.

        Raises `RefusedError` if the template refuses, `ChatTemplateError` if it exceeds a limit.
        """
        values = [value for message in messages for key, value in message.items() if key != "role"]
        given = _characters(values) + _characters(named.get("tools"))
        request = {
            "template": template,
            "context": {**named, "messages": messages},
            "characters": _OWN_CHARACTERS + _TIMES_CONTENT * given,
        }
        with self._lock:
            answer = self._asked(name, json.dumps(request).encode() + b"\n")
        match answer:
            case {"text": str(text)}:
                return text
            case {"refused": str(why)}:
                raise RefusedError(name, why)
            case {"long": True}:
                raise ChatTemplateError(
                    name, f"writes more than {request['characters']:,} characters", _CHOOSE
                )
        raise ChatTemplateError(
            name, f"takes more than {self._memory_bytes // 2**20:,} MB of memory", _CHOOSE
        )

    def close(self) -> None:
        """Ends the process; a later `render` starts another."""
        with self._lock:
            self._end()

    def _asked(self, name: str, request: bytes) -> Any:
        process = self._started()
        if not self._ready:
            self._exchanged(name, process, b"", self._start_s)
            self._ready = True
        answer = self._exchanged(name, process, request, self._render_s)
        if answer == {"memory": True}:
            self._end()  # it is exiting
        return answer

    def _exchanged(self, name: str, process: subprocess.Popen[bytes], request: bytes, within_s: float) -> Any:
        """Sends `request` and returns the process's reply; ends the process at the time limit."""
        assert process.stdin
        assert process.stdout
        late = threading.Event()

        def end() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(within_s, end)
        timer.daemon = True
        timer.start()
        try:
            process.stdin.write(request)
            process.stdin.flush()
            line = process.stdout.readline()
        except OSError:
            line = b""
        finally:
            timer.cancel()
            timer.join()
        if line.endswith(b"\n"):
            return json.loads(line)
        status = self._end()
        if late.is_set():
            raise ChatTemplateError(name, f"took more than {within_s:g} s", _CHOOSE)
        raise ChatTemplateError(name, f"ended the process that rendered it (status {status})", _CHOOSE)

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is not None:
            self._end()
        if self._process is None:
            self._process = subprocess.Popen(
                [*child_command("--template"), str(self._memory_bytes)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=child_environment(),
                cwd=CHILD_FOLDER,
            )
        return self._process

    def _end(self) -> int | None:
        """Ends the process and returns its exit status; None if there was none."""
        process, self._process, self._ready = self._process, None, False
        if process is None:
            return None
        process.kill()
        for pipe in (process.stdin, process.stdout):
            if pipe:
                with suppress(OSError):  # unwritten data is no longer needed
                    pipe.close()
        return process.wait()


def _characters(value: object) -> int:
    """The number of characters of all strings in `value`."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, Mapping):
        return sum(_characters(key) + _characters(each) for key, each in value.items())
    return sum(map(_characters, value)) if isinstance(value, list | tuple) else 0


@cache
def renderer() -> TemplateRenderer:
    """The renderer of this process; it ends with the process."""
    made = TemplateRenderer()
    atexit.register(made.close)
    return made


# ---- which conversations a template accepts


Turn = Mapping[str, Any]
# The output of a template for messages, tools, and whether the answer begins after them.
Write = Callable[[Sequence[Turn], Sequence[Turn], bool], str]
ThoughtField = Literal["reasoning_content", "reasoning", "thinking", "blocks"]
_FIELDS: tuple[ThoughtField, ...] = ("reasoning_content", "reasoning", "thinking", "blocks")
_ONE, _TWO, _THREE, _FOUR = "first probe", "second probe", "third probe", "fourth probe"
_THOUGHT = "a probed thought"
_TOOL = {
    "type": "function",
    "function": {
        "name": "lookup_probe",
        "description": "A probe.",
        "parameters": {
            "type": "object",
            "properties": {"key": {"type": "string", "description": "A key."}},
            "required": ["key"],
        },
    },
}


class CallForm(Struct, frozen=True):
    """How a template accepts calls and their results.

    `short_ids`: ids have 9 letters and digits; `text_arguments`: arguments are JSON text, not an object;
    `typed_results`: a result's content is a list of parts; `named_results`: it has its function's name.
    `numbered_ids`: ids are `functions.NAME:INDEX`, and the index counts the calls of the conversation or of
    one message.
    """

    short_ids: bool = False
    text_arguments: bool = False
    typed_results: bool = False
    named_results: bool = False
    numbered_ids: Literal["", "conversation", "message"] = ""


class TemplateSupport:
    """Features that the template of `write` supports. Raises `ChatTemplateError` if it exceeds a limit."""

    def __init__(self, write: Write) -> None:
        self._write = write

    @cached_property
    def typed_user(self) -> bool:
        """Whether a user's content must be a list of parts."""
        return not self._accepts([self._user(_ONE, typed=False)]) and self._accepts(
            [self._user(_ONE, typed=True)]
        )

    @cached_property
    def tail(self) -> str:
        """The template's text between a question and the answer."""
        return self._written([self._user(_ONE)]).rpartition(_ONE)[2]

    @cached_property
    def typed_system(self) -> bool:
        """Whether a system content must be a list of parts."""
        return not self._accepts([_message("system", _ONE), self._user(_TWO)]) and self._accepts(
            [_message("system", _ONE, typed=True), self._user(_TWO)]
        )

    @cached_property
    def system(self) -> bool:
        """Whether there is a system role."""
        return self._accepts([self._system(_ONE), self._user(_TWO)])

    @cached_property
    def several_systems(self) -> bool:
        """Whether a conversation may begin with several system messages."""
        return self.system and self._accepts([self._system(_ONE), self._system(_TWO), self._user(_THREE)])

    @cached_property
    def later_system(self) -> bool:
        """Whether system messages may follow an answer, and are written there."""
        return self.system and self._accepts([*self._turn, self._system(_THREE), self._user(_FOUR)])

    @cached_property
    def last_system(self) -> bool:
        """Whether the last message may be a system message, and is written there."""
        return self.system and self._accepts([*self._turn, self._user(_THREE), self._system(_FOUR)])

    @cached_property
    def system_alone(self) -> bool:
        """Whether a conversation may consist of a system message."""
        return self.system and self._accepts([self._system(_ONE)])

    @cached_property
    def typed_answer(self) -> bool:
        """Whether an answer's content must be a list of parts."""
        question, next_question = self._user(_ONE), self._user(_THREE)
        return not self._accepts([question, _message("assistant", _TWO), next_question]) and self._accepts(
            [question, _message("assistant", _TWO, typed=True), next_question]
        )

    @cached_property
    def answer_first(self) -> bool:
        """Whether a conversation may begin with an answer."""
        return self._accepts([self._answer(_ONE), self._user(_TWO)])

    @cached_property
    def consecutive_users(self) -> bool:
        """Whether two user messages may follow each other."""
        return self._accepts([self._user(_ONE), self._user(_TWO)])

    @cached_property
    def consecutive_answers(self) -> bool:
        """Whether two answers may follow each other."""
        return self._accepts([*self._turn, self._answer(_THREE), self._user(_FOUR)])

    @cached_property
    def tools(self) -> bool:
        """Whether the template writes the tools that are declared."""
        return self._declares([self._user(_ONE)])

    @cached_property
    def tools_after_system(self) -> bool:
        """Whether the template writes the tools that are declared if a system message is first."""
        return self.system and self._declares([self._system(_ONE), self._user(_TWO)])

    @cached_property
    def tools_after_empty_system(self) -> bool:
        """Whether the template writes the tools that are declared if an empty system message is first."""
        turns = [self._system(""), self._user(_TWO)]
        return self.tools_after_system and self._accepts(turns) and self._declares(turns)

    @cached_property
    def calls(self) -> CallForm | None:
        """The form in which calls and results are accepted; None if in no form."""
        forms = [CallForm(a, b, c, d) for a, b, c, d in product((False, True), repeat=4)]
        # Some templates write a call's name as part of its id only.
        numbered = [replace(form, numbered_ids="conversation") for form in forms if not form.short_ids]
        tried = product([("lookup_probe", "first_key")], [*forms, *numbered])
        for called, form in (*tried, *product([("lookup_probe",)], forms)):
            turns = [self._user(_ONE), self._calling(form, 1), _result(form, _TWO, 1)]
            if self._accepts(turns, [_TOOL], called):
                return form if form.numbered_ids else self._with_written_ids(form)
        return None

    def _with_written_ids(self, form: CallForm) -> CallForm:
        """`form` with numbered ids if the template writes them for calls, so that results have the same."""
        turns = [self._user(_ONE)]
        for number in (1, 2):
            turns += [self._calling(form, 1, number), _result(form, _TWO, number)]
        text = self._written(turns, [_TOOL])
        if _numbered("lookup_probe", 0) not in text:
            return form
        counted = _numbered("lookup_probe", 1) in text
        return replace(form, short_ids=False, numbered_ids="conversation" if counted else "message")

    @cached_property
    def parallel_calls(self) -> bool:
        """Whether a message may hold several calls."""
        if self.calls is None:
            return False
        results = [_result(self.calls, word, at) for at, word in enumerate((_TWO, _THREE), start=1)]
        turns = [self._user(_ONE), self._calling(self.calls, 2), *results]
        return self._accepts(turns, [_TOOL], ("lookup_probe", "lookup_probe"))

    @cached_property
    def thought_field(self) -> ThoughtField | None:
        """Where the template reads the thought of an earlier answer; None: nowhere."""
        probes = [[self._user(_ONE), self._answer(_TWO)]]
        if self.calls is not None:
            probes.insert(0, [self._user(_ONE), self._calling(self.calls, 1), _result(self.calls, _THREE, 1)])
        for field in _FIELDS:
            for question, answer, *result in probes:
                turns = [question, with_thought(answer, _THOUGHT, field), *result]
                if any(True for _ in _places(self._written(turns, [_TOOL]), _THOUGHT, typed=True)):
                    return field
        return None

    def keeps_thought_in_content(self, begin: str, end: str) -> bool:
        """Whether the thought of an earlier answer may stay in its content, between these tags."""
        written = f"{begin}\n{_THOUGHT}\n{end}\n\n{_TWO}"
        return self._accepts([self._user(_ONE), self._answer(written), self._user(_THREE)])

    @property
    def _turn(self) -> list[Turn]:
        return [self._user(_ONE), self._answer(_TWO)]

    def _user(self, content: str, typed: bool | None = None) -> Turn:
        return _message("user", content, self.typed_user if typed is None else typed)

    def _system(self, content: str) -> Turn:
        return _message("system", content, self.typed_system)

    def _answer(self, content: str) -> Turn:
        return _message("assistant", content, self.typed_answer)

    def _calling(self, form: CallForm, calls: int, first: int = 1) -> Turn:
        keys = ("first_key", "second_key")[:calls]
        called = [
            {
                "id": call_id(form, f"call_{at}", "lookup_probe", at - 1),
                "type": "function",
                "function": {
                    "name": "lookup_probe",
                    "arguments": f'{{"key": "{key}"}}' if form.text_arguments else {"key": key},
                },
            }
            for at, key in enumerate(keys, start=first)
        ]
        return {"role": "assistant", "content": "", "tool_calls": called}

    def _declares(self, turns: Sequence[Turn]) -> bool:
        return "lookup_probe" in self._written(turns, [_TOOL])

    def _accepts(self, turns: Sequence[Turn], tools: Sequence[Turn] = (), called: Sequence[str] = ()) -> bool:
        """Whether the template writes the contents of `turns` in order, and the words `called` of the second
        one equally often.
        """
        text = self._written(turns, tools)
        firsts: list[int] = []
        for turn in turns:
            if words := content_text(turn["content"]):
                found = _places(text, words, typed=not isinstance(turn["content"], str))
                firsts.append(next(found, -1))
        calls = text.partition(_ONE)[2]
        return (
            -1 not in firsts
            and firsts == sorted(firsts)
            and all(calls.count(word) >= called.count(word) for word in called)
        )

    def _written(self, turns: Sequence[Turn], tools: Sequence[Turn] = ()) -> str:
        """The template's output; empty if it refuses."""
        try:
            return self._write(turns, tools, True)
        except RefusedError:
            return ""


def _refuse(turns: Sequence[Turn], tools: Sequence[Turn], begins: bool) -> str:
    raise RefusedError("this model", "it accepts questions and answers in turn only")


def _places(text: str, words: str, *, typed: bool) -> Iterator[int]:
    """Where `words` are in `text`; of `typed` ones, not as an element of a printed Python list."""
    at = text.find(words)
    while at >= 0:
        if not typed or text[at - 1 : at] not in ("'", '"'):
            yield at
        at = text.find(words, at + 1)


# For a template that accepts only alternating questions and answers.
LEAST = TemplateSupport(_refuse)


def parts(content: str) -> list[dict[str, str]]:
    """A content as a list of parts."""
    return [{"type": "text", "text": content}]


def parts_with_images(content: str, offsets: Sequence[int]) -> list[dict[str, str]]:
    """A content as a list of parts, with an image at each of the ascending `offsets`."""
    cuts = [0, *offsets, len(content)]
    found: list[dict[str, str]] = []
    for number, (start, end) in enumerate(pairwise(cuts)):
        found += [{"type": "image"}] if number else []
        found += parts(content[start:end]) if start < end else []
    return found


def content_text(content: Any) -> str:
    """The text of a content, which may be a list of parts."""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def with_thought(turn: Turn, thought: str, field: ThoughtField) -> dict[str, Any]:
    """An assistant's `turn` with its `thought`."""
    if field != "blocks":
        return {**turn, field: thought}
    content = turn["content"]
    text = parts(content) if isinstance(content, str) and content else content or []
    return {**turn, "content": [{"type": "thinking", "thinking": thought}, *text]}


def call_id(form: CallForm, given: str, name: str, index: int) -> str:
    """The id of a call of the function `name` as the template accepts it; `index` counts the calls from 0."""
    if form.numbered_ids:
        return _numbered(name, index)
    if not form.short_ids or (len(given) == 9 and given.isalnum() and given.isascii()):
        return given
    return blake2b(given.encode(), digest_size=8).hexdigest()[:9]


def _numbered(name: str, index: int) -> str:
    return f"functions.{name}:{index}"


def _message(role: str, content: str, typed: bool = False) -> Turn:
    return {"role": role, "content": parts(content) if typed else content}


def _result(form: CallForm, content: str, number: int) -> Turn:
    id = call_id(form, f"call_{number}", "lookup_probe", number - 1)
    turn = {**_message("tool", content, form.typed_results), "tool_call_id": id}
    return {**turn, "name": "lookup_probe"} if form.named_results else turn
