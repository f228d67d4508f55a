"""A worker without a model: speaks the real protocol over its pipes and does as it is asked.

What happens is written in the last question, as words:

    write N      N tokens, in steps of accepted, accepted, bonus, after one normal step
    say B64      the words of a text, which `said` encodes so that they are not in the question
    read N       N chunks of prompt before the first token
    skim         look through the attachments and read every fifth passage of them, in two seconds
                 if slowly; reads all instead when sparse prefill is off
    unmatched    say that nothing in the attachments matches the question
    slowly       20 ms between steps
    die N        end by SIGKILL after N tokens
    refuse       fail the request before the first token
    break N      fail the request after N tokens
    over N       the tokens begin again after N of them, and the answer ends like one that repeats itself
    mute N       stop, heart and all, after N tokens
    garble       send a line that is no event first

With tools, a text that is said may have calls: `<tool_call>` with JSON. What happens after them is written
in the last result.

A model with “eyes” in its reference sees; others refuse a question with an image, and leave out all others.
Each answer is `ECHO <number of messages>: ` and then numbered words; one that has begun goes on with
the numbers. Environment:
FAKE_LOAD=fail makes loading fail (unless FAKE_LOAD_ONCE names a file, which is made then),
FAKE_LOAD=die ends the process instead of loading (only the model FAKE_LOAD_ONLY, if it is set),
FAKE_START=exit before saying hello.
FAKE_SUGGESTED: list the starter and suggest models for a memory of so many GB, of which one sees;
FAKE_FREE_GB: free disk space. FAKE_EYES: a model that sees is installed, too.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import signal
import sys
import threading
import time

from msgspec.structs import replace

from core.answer_format import AnswerFormat
from core.decoding.repetition import Repetition
from core.events import (
    Cancel,
    Change,
    CountTokens,
    DocumentEmbedded,
    DownloadModel,
    DownloadProgress,
    Effective,
    EmbedDocument,
    Event,
    Failed,
    FindSimilar,
    Finished,
    FinishReason,
    Gauges,
    Generate,
    Heartbeat,
    Hello,
    ListModels,
    LoadModel,
    LoadProgress,
    MemoryNeed,
    ModelEntry,
    ModelInfo,
    ModelList,
    ModelLoaded,
    Occupancy,
    Origin,
    Passage,
    PrefillProgress,
    ReadingMap,
    ReadingPace,
    Shutdown,
    SimilarFound,
    SimilarPassage,
    Stats,
    SuggestTitle,
    TakeTurn,
    TitleSuggested,
    Token,
    TokenCount,
    TurnTaken,
    decode_command,
    encode,
)
from core.events.answer import PrefillPhase
from core.prefill.forecast import PrefillClock, chosen_passages
from core.worker.queue import CommandQueue, Entry

INFO = ModelInfo(
    "Fake 1M", "fake", "f" * 64, "Fake", "fake", "float32", "", 10**6, 4 * 10**6, 8192, 256, 2, True
)
GB = 2**30
CALLS = AnswerFormat(calls=("hermes",))
ORIGINS: tuple[Origin, ...] = ("accepted", "accepted", "bonus")

_lock = threading.Lock()
_muted = threading.Event()
_scored: set[str] = set()  # questions
_documents: dict[str, int] = {}
_texts: dict[str, str] = {}
_downloads: list[DownloadProgress] = []
_loaded = [""]


def send(event: Event) -> None:
    with _lock:
        sys.stdout.buffer.write(encode(event))
        sys.stdout.buffer.flush()


_commands = CommandQueue(send)


def beat() -> None:
    while not _muted.wait(0.1):
        send(Heartbeat("ready", 0.0, 500_000_000, 2_000_000_000))


def read() -> None:
    for line in sys.stdin.buffer:
        command = decode_command(line)
        if isinstance(command, Shutdown):
            os._exit(0)
        if isinstance(command, Cancel) and (found := _commands.cancel(command.request)):
            if isinstance(found, Entry) and isinstance(found.command, Generate):
                send(Finished(command.request, "cancelled", Stats(), effective_of(found.command)))
            elif isinstance(found, Entry):
                send(Failed(command.request, "take_turn", "request", "cancelled", "Cancelled."))
            continue
        if isinstance(command, CountTokens) and command.text and _loaded[0]:  # also during an answer
            send(TokenCount(command.request, len(command.text.split())))
            continue
        _commands.put(command, time.monotonic())
    os._exit(0)


def prompt_words(prompt: Generate) -> int:
    """Words of a prompt: those of its messages and documents, and of the system prompt."""
    texts = [prompt.settings.chat.system_prompt]
    for message in prompt.messages:
        texts += [message.content, *(each.text for each in message.attachments)]
    return sum(len(text.split()) for text in texts)


def number(question: str, word: str) -> int:
    found = re.search(rf"\b{word} (\d+)", question)
    return int(found.group(1)) if found else -1


def said(text: str) -> str:
    """What a question has to contain for `text` to be its answer."""
    return f"say {base64.urlsafe_b64encode(text.encode()).decode()}"


def words_to_say(question: str) -> list[str]:
    found = re.search(r"\bsay ([\w=-]{8,})", question)
    text = base64.urlsafe_b64decode(found[1]).decode() if found else ""
    return re.findall(r"\s*\S+", text)


def load(model: str) -> None:
    mode, once = os.environ.get("FAKE_LOAD", ""), os.environ.get("FAKE_LOAD_ONCE", "")
    if once and os.path.exists(once):
        mode = ""
    elif once:
        with open(once, "w"):
            pass
    if mode == "die" and model == os.environ.get("FAKE_LOAD_ONLY", model):
        print("no room for the weights", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    if mode == "fail":
        send(
            Failed("", "load_model", "request", "bad-model", f"There is no model {model}.", "Choose another.")
        )
        return
    send(LoadProgress(model, "Reading weights", 0.5))
    _loaded[0] = model
    send(ModelLoaded(info_of(model)))


def info_of(model: str) -> ModelInfo:
    if "eyes" in model:
        return replace(INFO, reference=model, name="Fake Eyes", sees=True)
    return replace(INFO, reference=model, why_unseeing="it is a text-only model")


def image_count(command: CountTokens) -> Event:
    """One token for 32 × 32 pixels."""
    if command.image is None or not info_of(_loaded[0]).sees:
        return Failed(command.request, "count_tokens", "request", "unseen", "Fake 1M cannot see images.")
    across, down = (max(1, round(side / 32)) for side in (command.image.width, command.image.height))
    return TokenCount(command.request, across * down, scaled_px=(32 * across, 32 * down))


def answer(command: Generate) -> None:
    request, question = command.request, command.messages[-1].content
    asked = next(each for each in reversed(command.messages) if each.role == "user")
    if asked.images and not info_of(_loaded[0]).sees:
        send(Failed(request, "generate", "request", "unseen", "Fake 1M cannot see images."))
        return
    if "refuse" in question:
        message = "The prompt has 9,000 tokens, 808 more than the 8,192 that fit this model."
        send(Failed(request, "generate", "request", "prompt-too-long", message, "Shorten it.", 808))
        return
    if "garble" in question:
        with _lock:
            sys.stdout.buffer.write(b"[mlx] a stray word\n")
            sys.stdout.buffer.flush()
    chunks = number(question, "read")
    for chunk in range(max(chunks, 0)):
        send(PrefillProgress(request, 512 * chunk, 512 * chunks, 0, 1.0, fraction=chunk / chunks))
        if _commands.is_cancelled(request):
            send(Finished(request, "cancelled", Stats(), effective_of(command)))
            return
        time.sleep(0.02 if "slowly" in question else 0)
    reading = map_of(command) if "skim" in question else None
    if reading and not skim(reading, 0.1 if "slowly" in question else 0.0):
        send(Finished(request, "cancelled", Stats(), effective_of(command)))
        return
    send(PrefillProgress(request, 10, 10, 0, fraction=1.0))
    total, die, fail, mute = (number(question, word) for word in ("write", "die", "break", "mute"))
    over = number(question, "over")
    position = step = 0
    says = words_to_say(question)
    total = len(says) or total
    reason: FinishReason = "stop" if says else "length"
    counts = {"accepted": 0, "bonus": 0, "normal": 0}
    repetition = Repetition(question, patient=bool(command.continuation))
    while position < max(total, die, fail, mute, 1):
        if reason == "repetition":
            break
        step += 1
        if _commands.is_cancelled(request):
            reason, step = "cancelled", step - 1
            break
        for index, origin in enumerate(ORIGINS if step > 1 else ("normal",)):
            word = len(command.continuation) + position
            token = word % over if over > 0 else word
            if position == len(says) > 0:
                break
            text = f" w{token}" if word else f"ECHO {len(command.messages)}:"
            text = says[position] if says else text
            format = CALLS if command.tools and not position else None
            drawn = Token(request, token, text, origin, step, position, index + 1, 3, 0.1 * step)
            send(replace(drawn, format=format) if format else drawn)
            if command.stop_repeating and repetition.add(token, text):
                reason = "repetition"
            counts[origin] += 1
            position += 1
            if position == die:
                print("about to be killed", file=sys.stderr, flush=True)
                os.kill(os.getpid(), signal.SIGKILL)
            if position == fail:
                send(Failed(request, "generate", "worker", "out-of-memory", "There was not enough memory."))
                return
            if position == mute:
                _muted.set()
                time.sleep(600)
        send(gauges(request, position, 0.3 if command.continuation else 0.1))
        if "slowly" in question:
            time.sleep(0.02)
    stats = Stats(
        prompt_tokens=10,
        read_tokens=10,
        tokens=position,
        accepted=counts["accepted"],
        bonus=counts["bonus"],
        normal=counts["normal"],
        steps=step,
        tokens_per_s=50.0,
        ttft_s=0.1,
        context_used_tokens=10 + len(command.continuation) + position,
        context_tokens=8192,
    )
    if command.continuation:
        stats = replace(stats, prompt_tokens=10 + len(command.continuation), read_tokens=1)
        stats = replace(stats, reused_tokens=9 + len(command.continuation))
    effective = effective_of(command)
    if command.tools:
        effective = replace(effective, format=CALLS)
    if reading:
        read, all_of_it = reading.read_tokens, reading.prompt_tokens
        stats = replace(stats, prompt_tokens=all_of_it, read_tokens=read, skipped_tokens=all_of_it - read)
        # As the worker: a question that is in its cache already is not scored again.
        is_new = question not in _scored
        _scored.add(question)
        stats = replace(stats, prefill_s=3.0, score_s=1.0 if is_new else 0.0)
        unmatched = "unmatched" in question and is_new
        effective = replace(effective, reading="sparse", scorer="lexical", unmatched=unmatched)
    cited: tuple[Passage, ...] = ()
    if reading and "cite" in question:
        # The best twice, and one that was skipped.
        kept = [each for each in reading.passages if each.kept and each.source >= 0]
        skipped = next(each for each in reading.passages if not each.kept and each.source >= 0)
        cited = (kept[-1], kept[-1], skipped, kept[1])
    repeats_from = repetition.begins if reason == "repetition" else None
    send(Finished(request, reason, stats, effective, sources=cited, repeats_from=repeats_from))


def list_models(command: ListModels) -> None:
    starter = ModelEntry("starter", "Fake 1M", "starter", "fake", family="f" * 64)
    eyes = ModelEntry("hub/eyes", "Fake Eyes", "download", "eyes", family="f" * 64, sees=True)
    installed = (starter, eyes) if "FAKE_EYES" in os.environ else (starter,)
    suggested = [
        ModelEntry(
            f"hub/{name}",
            name,
            "download",
            "",
            parameters=size,
            disk_bytes=size,
            need=MemoryNeed(size),
            good_at="questions",
            sees=name.startswith("Three"),
        )
        for name, size in (("Nine 9B", 9 * GB), ("Three 3B", 3 * GB), ("Two 2B", 2 * GB))
    ]
    limit, free = int(os.environ["FAKE_SUGGESTED"]) * GB, int(os.environ.get("FAKE_FREE_GB", "100")) * GB
    send(ModelList(command.request, "", installed, tuple(_downloads), limit, free, tuple(suggested)))


def suggest_title(command: SuggestTitle) -> None:
    """`untitled` has none, `slowly` takes four seconds, and what comes meanwhile goes first."""
    question = command.messages[0].content
    for _ in range(400 if "slowly" in question else 1):
        time.sleep(0.01)
        if _commands.is_urgent:
            send(TitleSuggested(command.request, "", True))
            return
    title = "" if "untitled" in question else f"Title of {question.split()[-1]}"
    send(TitleSuggested(command.request, title))


def embed_a_tenth() -> None:
    """One more tenth of the first document with the word `slowly` in it; others are done at once."""
    request, tenths = next(iter(_documents.items()))
    if tenths == 10:
        del _documents[request]
        send(DocumentEmbedded(request, "done", 1.0))
    else:
        _documents[request] = tenths + 1
        send(DocumentEmbedded(request, "running", tenths / 10))


def find_similar(command: FindSimilar) -> None:
    """`ship` means as much as the sentences with `boat`; nothing else is similar to anything."""
    missing = tuple(digest for digest in command.digests if digest not in _texts)
    found = [
        SimilarPassage(digest, *match.span(), 1.0)
        for digest in command.digests
        for match in re.finditer(r"[^.]*boat[^.]*\.", _texts.get(digest, ""))
        if command.query == "ship"
    ]
    send(SimilarFound(command.request, tuple(found), missing))


def map_of(command: Generate) -> ReadingMap | None:
    """Passages of 32 tokens and 160 characters; every fifth is kept, and the question after them."""
    if command.settings.prefill.mode == "off":
        return None
    passages: list[Passage] = []
    attachments = [attachment for message in command.messages for attachment in message.attachments]
    for source, attachment in enumerate(attachments):
        for first in range(0, len(attachment.text), 160):
            number, last = len(passages), min(first + 160, len(attachment.text))
            kept = number % 5 == 0 or number % 23 < 2
            start = 32 * number
            passages.append(Passage(start, start + 32, kept, number * 7 % 10 / 10, source, first, last))
    end = 32 * len(passages)
    passages.append(Passage(end, end + 8, True, 1.0))
    kept_tokens = sum(passage.end - passage.start for passage in passages if passage.kept)
    return ReadingMap(command.request, "lexical", end + 8, kept_tokens, tuple(passages))


def skim(reading: ReadingMap, pause_s: float) -> bool:
    """Score, choose, read. False if it was cancelled."""
    request, total, kept = reading.request, reading.prompt_tokens, reading.read_tokens
    pace, begun_s = ReadingPace(1 / 300, 0.0), time.monotonic()
    clock = PrefillClock(pace)
    clock.expect_scoring(ReadingPace(pace.token_s / 10, 0.0), guess=None, attends=False)
    clock.expect_reading(kept, 0)

    def tell(phase: PrefillPhase, done: int, whole: int, scored: int, passages: int = 0) -> None:
        shown = clock.forecast(time.monotonic() - begun_s)
        sent = PrefillProgress(request, done, whole, 0, shown.seconds_left, phase, scored)
        sent = replace(sent, kept_tokens=kept if passages else 0, passages=passages)
        sent = replace(sent, time_s=time.monotonic() - begun_s, at_s=time.monotonic())
        send(replace(sent, fraction=shown.fraction, tokens_per_s=shown.tokens_per_s))

    for part in range(10):
        scored = total * part // 10
        clock.scored(total - scored, scored, time.monotonic() - begun_s)
        tell("scoring", 0, total, scored)
        time.sleep(pause_s)
        if _commands.is_cancelled(request):
            return False
    send(reading)
    for part in range(10):
        done = kept * part // 10
        clock.read(kept - done, done, time.monotonic() - begun_s)
        tell("reading", done, kept, total, chosen_passages(reading.passages))
        time.sleep(pause_s)
        if _commands.is_cancelled(request):
            return False
    return True


def effective_of(command: Generate) -> Effective:
    info, images = info_of(_loaded[0]), sum(len(each.images) for each in command.messages)
    changes = (Change("images", str(images), "0", "Fake 1M cannot see images"),)
    effective = Effective(info.name, "float32", command.settings.drafting.drafter, command.settings)
    return replace(effective, changes=changes) if images and not info.sees else effective


def gauges(request: str, position: int, ttft_s: float) -> Gauges:
    return Gauges(
        request, 50.0, ttft_s, position, 0, 0, 0.0, 1.0, (), Occupancy(), 500_000_000, 10 + position, 8192
    )


def main() -> None:
    if os.environ.get("FAKE_START") == "exit":
        print("cannot begin", file=sys.stderr, flush=True)
        sys.exit(3)
    send(Hello(os.getpid(), 1, "0.1.0", "0", "0", "cpu", "none"))
    threading.Thread(target=beat, daemon=True).start()
    threading.Thread(target=read, daemon=True).start()
    while True:
        entry = _commands.next(0.05 if _documents else None)
        if entry is None:
            embed_a_tenth()
            continue
        command = entry.command
        if isinstance(command, Generate | TakeTurn) and command.model not in ("", _loaded[0]):
            load(command.model)
        if isinstance(command, TakeTurn):
            if _commands.hold(command.request):
                send(TurnTaken(command.request, info_of(_loaded[0])))
        elif isinstance(command, LoadModel):
            load(command.model)
        elif isinstance(command, ListModels) and "FAKE_SUGGESTED" in os.environ:
            list_models(command)
        elif isinstance(command, DownloadModel):
            _downloads.append(DownloadProgress(command.model, "running", 0, GB))
            send(_downloads[-1])
        elif isinstance(command, CountTokens):
            prompt = command.prompt
            if command.image is not None:
                send(image_count(command))
                _commands.done(entry)
                continue
            words = prompt_words(prompt) if prompt else len(command.text.split())
            send(TokenCount(command.request, words))
        elif isinstance(command, Generate):
            answer(command)
        elif isinstance(command, SuggestTitle):
            suggest_title(command)
        elif isinstance(command, FindSimilar):
            find_similar(command)
        elif isinstance(command, EmbedDocument):
            text = command.text.strip()
            _texts[hashlib.sha256(text.encode()).hexdigest()] = text
            if "slowly" in command.text:
                _documents[command.request] = 0
            else:
                send(DocumentEmbedded(command.request, "done", 1.0))
        elif isinstance(command, Cancel) and _documents.pop(command.request, None) is not None:
            send(DocumentEmbedded(command.request, "stopped"))
        _commands.done(entry)


if __name__ == "__main__":
    main()
