"""A recording played through the pipeline: what becomes of the exchange by a vendor's rules (contract R4).

In: a profile and a `Recording`. Out: the `Facts` of its closing, with the verdict and the `Observation` that was
judged. Two runs say the same: hints that are dates are reckoned from a fixed moment.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from proxy.canon.ending import Stop
from proxy.pipeline.stream import Pipeline
from proxy.pipeline.values import Asked, Facts, Setup
from proxy.semantics.rule import VendorProfile
from proxy.stores.recordings import Recording

#: Any fixed moment will do (contract L4).
WALL: Final = 1_795_996_800.0
_STOPS: Final = {"close": Stop.EOF, "reset": Stop.CUT, "abort": Stop.CUT, "hang": Stop.STALL}


def replay(profile: VendorProfile, recording: Recording) -> Facts:
    """What the pipeline makes of a recording, with the clock of its reads."""
    return play(profile, recording).facts


def play(profile: VendorProfile, recording: Recording) -> Pipeline:
    """A pipeline that a recording has run through to its end: `facts`, and the whole `verdict` if it was an error."""
    dialect = recording.dialect or profile.dialect
    sent = _body_of(recording)
    setup = Setup(profile, "replay", "m-test", "0" * 32, "check", WALL, dialect=dialect, sent=sent)
    pipeline = Pipeline(setup, Asked(stream=recording.asks_stream))
    pipeline.head(recording.status, dict(recording.headers))
    for read in recording.reads:
        if pipeline.over:
            break
        pipeline.feed(read.data, read.t)
    pipeline.finish(_STOPS[recording.end], recording.end_at)
    return pipeline


def _body_of(recording: Recording) -> Mapping[str, object]:
    body = recording.request.get("body")
    return body if isinstance(body, dict) else {}
