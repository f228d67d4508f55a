"""Work while no request runs: titles of chats, embedding of documents, chats on disk."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from core.events.answer import Generate, Message
from core.events.wire import Wire
from core.settings import Prefill

# ---- titles


class SuggestTitle(Wire, frozen=True):
    """Generates a title for a chat that begins with `messages`, a question and its answer.

    Uses an empty cache, teaches no tables, and stops at the next request and at `cancel`.
    """

    request: str
    messages: tuple[Message, ...]


class TitleSuggested(Wire, frozen=True):
    """Answer to `suggest_title`. `title`: empty if the model gave no usable one.

    `interrupted`: stopped by another request; it may be repeated.
    """

    request: str
    title: str
    interrupted: bool = False


TitleCommand = SuggestTitle
TitleEvent = TitleSuggested


# ---- embedding of documents, for sparse prefill and search by meaning
#
#     embed_document  → document_embedded* (running …, then done, stopped or failed)
#     cancel          → document_embedded(state="stopped"), if it was waiting or running
#     erase_vectors
#     find_similar    → similar_found
#     embed_texts     → texts_embedded | failed
#
# Documents are embedded in idle time, one after the other, also without a loaded model. The texts of
# `embed_texts` are embedded immediately; during an answer, between two of its events.


EmbeddingState = Literal["running", "done", "stopped", "failed"]


class EmbedDocument(Wire, frozen=True):
    """Compute the vectors of a document's passages while idle and keep them on the disk."""

    request: str
    text: str


class EraseVectors(Wire, frozen=True):
    """Erase the vectors of the texts with these SHA-256 digests (hexadecimal), or of all texts.

    A prompt holds a document without white space at its ends; the digest is that of the text so stripped.
    """

    digests: tuple[str, ...] = ()
    everything: bool = False


class FindSimilar(Wire, frozen=True):
    """Find the passages whose meaning is near `query` in embedded texts.

    `digests` name the texts as in `EraseVectors`.
    """

    request: str
    query: str
    digests: tuple[str, ...]


class EmbedTexts(Wire, frozen=True):
    """Compute the vectors of these texts. Callers send few at a time: a running answer waits for them."""

    request: str
    texts: tuple[str, ...]


class TextsEmbedded(Wire, frozen=True):
    """Answer to `embed_texts`. `vectors`: little-endian float32 [texts, 384] of unit length.

    `tokens` are those that the encoder read of each text, its first and last token included; `truncated` are
    the indexes of the texts of which it read a beginning only.
    """

    request: str
    vectors: bytes
    tokens: tuple[int, ...]
    truncated: tuple[int, ...] = ()


class SimilarPassage(Struct, frozen=True, forbid_unknown_fields=True):
    """Characters `first_char` to `last_char` (end-exclusive) of the stripped text `digest`.

    `similarity`: 0 for nothing in common to 3.
    """

    digest: str
    first_char: int
    last_char: int
    similarity: float


class SimilarFound(Wire, frozen=True):
    """Answer to `find_similar`: the nearest passages of each text, the most similar first.

    `missing` are texts that are not embedded; `problem` says in sentences why nothing can be found.
    """

    request: str
    passages: tuple[SimilarPassage, ...] = ()
    missing: tuple[str, ...] = ()
    problem: str = ""


class DocumentEmbedded(Wire, frozen=True):
    """Progress of an `embed_document` command: `fraction` of the document is done, 0 to 1.

    `running` comes at most four times a second, and first when half a second has not been enough. `problem`
    says in sentences why it `failed`.
    """

    request: str
    state: EmbeddingState
    fraction: float = 0.0
    problem: str = ""


# ---- chats on disk
#
#     open_chat
#     erase_chats, list_saved_chats → saved_chats_listed, which also follows a save
#
#     read_ahead → read_ahead_progress*
#
# A chat's cache is saved when it is left, after some idle time and at the end, and loaded when it is
# opened. Requests name their chat in `generate`.


class OpenChat(Wire, frozen=True):
    """The window shows `chat`: it is loaded while nothing else is to be done, and the previous one is saved.

    Empty: no chat, or one that is not saved. `prefill`: the chat's settings.
    """

    chat: str
    prefill: Prefill = Prefill()


class ReadAhead(Wire, frozen=True):
    """Reads while idle what `question`, as it would be asked now, begins with; null: nothing more.

    The last message is the composer's text, with its attachments. `question.request` is not used.
    """

    question: Generate | None = None


class ReadAheadProgress(Wire, frozen=True):
    """`done_tokens` of `total_tokens` of a coming question of `chat` are read; equal at the end."""

    chat: str
    done_tokens: int
    total_tokens: int


class EraseChats(Wire, frozen=True):
    """Erases the saved caches of these chats, or of all, also with models that are not loaded."""

    chats: tuple[str, ...] = ()
    everything: bool = False


class ListSavedChats(Wire, frozen=True):
    """Asks for the size of the saved chats."""


class SavedChatsListed(Wire, frozen=True):
    """Number and size of the saved files.

    `problem`: chats that were not saved or not erased, and why, without a full stop; empty if nothing failed.
    """

    files: int
    size_bytes: int
    problem: str = ""


SavedChatsCommand = OpenChat | ReadAhead | EraseChats | ListSavedChats
SavedChatsEvent = SavedChatsListed | ReadAheadProgress
EmbeddingCommand = EmbedDocument | EraseVectors | FindSimilar | EmbedTexts
EmbeddingEvent = DocumentEmbedded | SimilarFound | TextsEmbedded
