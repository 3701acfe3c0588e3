"""Usage objects by the shipped recipes, and how a normal usage is written in one line.

In: a vendor, its object as it came, how the attempt ended. Out: the `NormalUsage`, or the line
`state letters input/output cache_read/cache_write reasoning =total billed_input/billed_output`, with `-` for none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from proxy.canon.usage import NormalUsage
from proxy.dialects.registry import VENDOR_DIALECTS
from proxy.metering.normal import End, normalise
from proxy.pipeline.reports import recipe_of, understood
from proxy.semantics.rule import VendorProfile
from tests.support.pipelines import shipped_rules

WHOLE: Final = End(is_whole=True)
CUT: Final = End(is_whole=False)


def normal_of(told: Mapping[str, object] | None, profile: VendorProfile, dialect: str, end: End = WHOLE) -> NormalUsage:
    """What the row keeps of this object, by a profile and in one of its dialects."""
    ways = profile.speaking(dialect).ways.usage
    usage = None if told is None else understood(told, VENDOR_DIALECTS[dialect].reader({}), ways)
    return normalise(usage, recipe_of(ways), end)


def normal_by(
    vendor: str, told: Mapping[str, object] | None, end: End = WHOLE, dialect: str | None = None
) -> NormalUsage:
    """The same by a shipped recipe; in the vendor's usual dialect, if no other is named."""
    profile = shipped_rules().profile(vendor)
    return normal_of(told, profile, dialect or profile.dialect, end)


def line_of(one: NormalUsage) -> str:
    """One line for a person to compare."""
    pairs = ((one.input, one.output), (one.cache_read, one.cache_write), (one.billed_input, one.billed_output))
    paid, cached, billed = ("/".join("-" if figure is None else str(figure) for figure in pair) for pair in pairs)
    reasoning, total = ("-" if figure is None else str(figure) for figure in (one.reasoning, one.total))
    return f"{one.state} {one.told} {paid} {cached} {reasoning} ={total} {billed}"
