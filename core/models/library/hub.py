"""Hub: what a hub says of a model, and its files as streams. The hub client's own words end here.

huggingface_hub gives the address (HF_ENDPOINT), the login and the errors. Its download functions are
not used: since 2.0 they write to a file of a random name and remove it when they are interrupted
(`_download_to_tmp_and_move`), so a download that is paused or cut off begins again. Delete
`file_stream` when they resume.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import msgspec
from msgspec import Struct

from core.errors import DownloadError, ModelError
from core.events import HubModel
from core.models.library.naming import is_hub_name
from core.models.runtime.runtime import hush_hub

# What MLX and the tokenizers read; all of it lies in the repository's root.
_WANTED_ENDINGS = (".json", ".txt", ".jinja", ".tiktoken")
_WANTED_NAMES = ("tokenizer.model",)
_TIMEOUT_S = 20.0
_MOST_FOUND = 20


class CutOff(Exception):
    """The connection failed or ended early; trying again may help."""


class RemoteFile(Struct, frozen=True):
    """One file. `sha256` is known of large files, `git_oid` (Git's blob hash, SHA-1) of small ones."""

    name: str
    size_bytes: int
    sha256: str = ""
    git_oid: str = ""


class _Found(Struct):
    """What the hub lists; everything else of it is left out."""

    id: str
    downloads: int = 0
    gated: bool | str = False


class RemoteModel(Struct, frozen=True):
    """The files of `model` that are worth having, as they were at `commit`."""

    model: str
    commit: str
    files: tuple[RemoteFile, ...]

    @property
    def total_bytes(self) -> int:
        """Of all files."""
        return sum(file.size_bytes for file in self.files)


def endpoint() -> str:
    """The hub's address."""
    from huggingface_hub import constants

    return (os.environ.get("HF_ENDPOINT") or constants.ENDPOINT).rstrip("/")


def look_up(model: str) -> RemoteModel:
    """Which files `model` has. Raises `ModelError` if there is none, or none that MLX can load."""
    if not is_hub_name(model):
        raise ModelError(
            f"“{model}” is not a hub name.", "Write owner/name, like mlx-community/Qwen3-4B-4bit."
        )
    hush_hub()
    from huggingface_hub import HfApi

    with _in_our_words(model):
        info = HfApi(endpoint=endpoint()).model_info(model, files_metadata=True, timeout=_TIMEOUT_S)
    names = [sibling.rfilename for sibling in info.siblings or ()]
    files = tuple(
        RemoteFile(
            sibling.rfilename,
            int((sibling.lfs.size if sibling.lfs else sibling.size) or 0),
            sibling.lfs.sha256 if sibling.lfs else "",
            "" if sibling.lfs else str(sibling.blob_id or ""),
        )
        for sibling in info.siblings or ()
        if _is_wanted(sibling.rfilename)
    )
    if not any(_is_weights(file.name) for file in files):
        others = sorted(
            {name.rpartition(".")[2] for name in names if name.endswith((".gguf", ".bin", ".pt", ".npz"))}
        )
        held = f"; its weights are .{' and .'.join(others)} files" if others else ""
        raise ModelError(
            f"“{model}” holds no model*.safetensors{held}.",
            "Choose a version for MLX; mlx-community has many.",
        )
    if "config.json" not in names:
        raise ModelError(f"“{model}” holds no config.json.", "Choose a version for MLX.")
    return RemoteModel(model, str(info.sha or "main"), files)


def search(text: str) -> tuple[HubModel, ...]:
    """Models for MLX whose names contain `text`, most downloaded first. Raises `ModelError`.

    Asked for directly: the client's own listing waits without end for a hub that does not answer.
    """
    hush_hub()
    from huggingface_hub.utils import build_hf_headers, get_session, hf_raise_for_status

    wanted: dict[str, str | int] = {
        "search": text,
        "filter": "mlx",
        "sort": "downloads",
        "limit": _MOST_FOUND,
    }
    with _in_our_words(text):
        response = get_session().get(
            f"{endpoint()}/api/models", params=wanted, headers=build_hf_headers(), timeout=_TIMEOUT_S
        )
        hf_raise_for_status(response)
        found = msgspec.convert(response.json(), list[_Found])
    return tuple(
        HubModel(each.id, each.downloads, bool(each.gated)) for each in found if is_hub_name(each.id)
    )


@contextmanager
def file_stream(remote: RemoteModel, file: RemoteFile, start: int) -> Iterator[tuple[int, Iterator[bytes]]]:
    """The bytes of `file` from `start` on, with where they really start: 0 if the hub gives only all.

    Raises `DownloadError` if the hub refuses, `CutOff` if the connection fails, also while reading.
    """
    hush_hub()
    from huggingface_hub import hf_hub_url
    from huggingface_hub.utils import build_hf_headers, get_session, hf_raise_for_status

    url = hf_hub_url(remote.model, file.name, revision=remote.commit, endpoint=endpoint())
    # A compressed body could not be taken up in its middle.
    headers = {**build_hf_headers(), "Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
    with ExitStack() as stack:
        try:
            response = stack.enter_context(
                get_session().stream("GET", url, headers=headers, timeout=_TIMEOUT_S, follow_redirects=True)
            )
        except Exception as error:  # the transport's own kinds, which change with the client's version
            raise CutOff(_first_line(error)) from error
        if response.status_code >= 500:
            raise CutOff(f"the hub answered with status {response.status_code}")
        with _in_our_words(remote.model):
            hf_raise_for_status(response)
        yield _first_byte(response) if start else 0, _pieces(response)


def _pieces(response: Any) -> Iterator[bytes]:
    try:
        yield from response.iter_bytes()
    except Exception as error:  # as above
        raise CutOff(_first_line(error)) from error


def _first_byte(response: Any) -> int:
    """Where a partial answer begins, from its Content-Range; 0 for a whole one."""
    if response.status_code != 206:
        return 0
    told = str(response.headers.get("Content-Range", "")).removeprefix("bytes ").partition("-")[0]
    return int(told) if told.isdigit() else 0


def _is_wanted(name: str) -> bool:
    if "/" in name or "\\" in name or name.startswith("."):
        return False
    return _is_weights(name) or name.endswith(_WANTED_ENDINGS) or name in _WANTED_NAMES


def _is_weights(name: str) -> bool:
    return name.startswith("model") and name.endswith(".safetensors") and "/" not in name


@contextmanager
def _in_our_words(what: str) -> Iterator[None]:
    """The client's errors as ours; each says what can be done."""
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        HFValidationError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
    )

    try:
        yield
    except GatedRepoError as error:
        raise DownloadError(
            f"“{what}” is only for people who agreed to its terms.",
            f"Agree at {endpoint()}/{what} and log in with: hf auth login",
        ) from error
    except RepositoryNotFoundError as error:
        raise DownloadError(
            f"There is no model “{what}” on the hub, or it is private.",
            "Check the name; for a private model log in with: hf auth login",
        ) from error
    except HFValidationError as error:
        raise ModelError(f"“{what}” is not a hub name.", "Write owner/name.") from error
    except OfflineModeIsEnabled as error:
        raise DownloadError(
            f"“{what}” could not be downloaded: HF_HUB_OFFLINE is set.", "Unset it to use the hub."
        ) from error
    except HfHubHTTPError as error:
        status = getattr(error.response, "status_code", "")
        raise DownloadError(
            f"“{what}” could not be downloaded: the hub answered with status {status}.", "Try again later."
        ) from error
    except ModelError:
        raise
    except Exception as error:  # the transport's own kinds, which change with the client's version
        raise DownloadError(
            f"“{what}” could not be downloaded: the hub at {endpoint()} cannot be reached"
            f" ({_first_line(error)}).",
            "Check the connection and try again.",
        ) from error


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return (lines[0] if lines else type(error).__name__)[:200].rstrip(".")
