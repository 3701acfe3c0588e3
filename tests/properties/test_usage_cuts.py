"""Usage of answers that were cut, wherever that was: no figure passes for more than it is (contract L2).

Each recorded answer is ended after each of its reads, and within them, in every way in which an attempt can end. What
the row then says is final only if it is what the whole answer says.
"""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import Final

import pytest

from proxy.canon.ending import Ending, Stop
from proxy.stores.recordings import Recording
from tests.support.pipelines import Transcript, asked_by, recordings, run
from tests.support.usage import line_of

pytestmark = pytest.mark.clause("L2")

ANSWERS: Final = [recording for recording in recordings() if recording.status == 200 and recording.reads]
#: States in which a figure counts as it stands.
COUNTS: Final = ("final", "estimated", "total_only")
MOST_PLACES: Final = 24
STOPS: Final = (Stop.CUT, Stop.GONE, Stop.IDLE, Stop.SHUTDOWN)


@pytest.mark.parametrize("recording", ANSWERS, ids=lambda recording: recording.key)
def test_figures_of_a_cut_answer_count_only_if_they_are_those_of_the_whole(recording: Recording) -> None:
    """Whatever the vendor said so far; where it said nothing, the row does not say that there is nothing."""
    whole = b"".join(read.data for read in recording.reads)
    complete = ended(recording, whole, Stop.EOF)
    wanted = line_of(complete.pipeline.normal_usage())

    for place in places_in(recording):
        for stop in STOPS:
            cut = ended(recording, whole[:place], stop)
            normal = cut.pipeline.normal_usage()
            if normal.state in COUNTS:
                assert line_of(normal) == wanted
            elif normal.state == "absent":
                assert cut.closing.ending in (Ending.COMPLETED, Ending.VENDOR_ERROR)


def ended(recording: Recording, data: bytes, stop: Stop) -> Transcript:
    return run(
        [data],
        asked_by(recording),
        stop=stop,
        vendor=recording.vendor,
        headers=dict(recording.headers),
        dialect=recording.dialect or None,
        sent=recording.request.get("body") or {},
    )


def places_in(recording: Recording) -> list[int]:
    """After each read, and in the middle of each; of many reads every so manieth."""
    ends = [0, *accumulate(len(read.data) for read in recording.reads)]
    places = sorted({*ends[:-1], *((a + b) // 2 for a, b in pairwise(ends))})
    return places[:: -(-len(places) // MOST_PLACES)] + ends[-1:]
