"""What a vendor's answers show of its ways, beside what its errors mean: the findings of a probe.

In: recordings of exchanges with one vendor, and its profile. Out: `Ways`, plain values; what they propose for the rule
file (`way_changes`), what moved from one of them to another (`moved_ways`), and lines for a person (`describe`). Only
answered requests are looked at; errors are for the rules. Never: does I/O, or finds what a single short answer cannot
show. (contract R1)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from proxy.learning.ways_changes import way_changes
from proxy.learning.ways_cuts import cuts_of
from proxy.learning.ways_ends import end_of, finishes_of
from proxy.learning.ways_exchange import Exchange, play
from proxy.learning.ways_signs import signs_of
from proxy.learning.ways_texts import text_way
from proxy.learning.ways_told import describe, moved_ways
from proxy.learning.ways_usage import usage_way
from proxy.learning.ways_values import Ways
from proxy.semantics.rule import VendorProfile
from proxy.stores.recordings import Recording

__all__ = ["Ways", "describe", "findings", "moved_ways", "way_changes"]


def findings(recordings: Iterable[Recording], profile: VendorProfile) -> Ways:
    """What these recordings show. Of several dialects the one with most answers is looked at."""
    answered = [recording for recording in recordings if 200 <= recording.status < 300]
    dialects = Counter(recording.dialect or profile.dialect for recording in answered)
    dialect = dialects.most_common(1)[0][0] if dialects else profile.dialect
    spoken = profile.speaking(dialect)
    exchanges = [play(each, spoken) for each in answered if (each.dialect or profile.dialect) == dialect]
    return _ways(profile, dialect, exchanges)


def _ways(profile: VendorProfile, dialect: str, exchanges: list[Exchange]) -> Ways:
    return Ways(
        vendor=profile.vendor,
        dialect=dialect,
        streams=sum(exchange.is_stream for exchange in exchanges),
        plain=sum(exchange.body is not None for exchange in exchanges),
        cuts=cuts_of(exchanges),
        signs=signs_of(exchanges, profile),
        end=end_of(exchanges),
        finishes=finishes_of(exchanges, profile),
        text=text_way(exchanges),
        usage=usage_way(exchanges, profile.speaking(dialect).ways.usage),
    )
