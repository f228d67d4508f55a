"""What `auto` learned about its own guesses, as a file: counts only, no token of any chat.

    state    float64 [KINDS · 3 + 1]   as `Calibration.state` gives it

The counts correct given weights: where these have changed since, a state is out of date.
"""

from __future__ import annotations

import hashlib
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from core.drafting.evidence.calibration import WEIGHTS, WEIGHTS_LEARNED, Calibration
from core.tables.container import Refused, checked, decode, encode
from core.tables.table_file import Fingerprint

FORMAT = "draftlight-calibration"
VERSION = 1
MOST_BYTES = 64 * 1024


class CalibrationHeader(Struct, frozen=True, forbid_unknown_fields=True):
    """`basis` names the weights that the counts correct."""

    format: str
    version: int
    family: Fingerprint
    family_name: Annotated[str, Meta(max_length=200)]
    basis: str
    updated_s: float


def basis() -> str:
    """A name for the weights of this Draftlight."""
    return hashlib.sha256(msgspec.json.encode((WEIGHTS, WEIGHTS_LEARNED))).hexdigest()[:16]


def encode_calibration(
    state: NDArray[np.float64], *, family: str, family_name: str, updated_s: float
) -> bytes:
    """The file's content."""
    header = CalibrationHeader(FORMAT, VERSION, family, family_name[:200], basis(), updated_s)
    return encode(header, {"state": state})


def decode_calibration(content: bytes) -> tuple[CalibrationHeader, NDArray[np.float64] | None]:
    """Header and state; None if it is whole but corrects other weights. Raises `Refused`."""
    header, arrays = decode(content, CalibrationHeader, FORMAT, VERSION)
    if header.basis != basis():
        return header, None
    state: NDArray[Any] = Calibration().state()
    checked(arrays, {"state": (np.float64, state.shape)})
    try:
        Calibration().restore(arrays["state"])
    except ValueError as error:
        raise Refused(f"holds counts that cannot be ({error})") from None
    return header, arrays["state"]
