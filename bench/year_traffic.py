"""A year of synthetic traffic, day by day: what five vendors were asked, said and charged.

In: a seed and a number of attempts. Out: numpy arrays for each vendor and day, the same for the same seed. The shapes
are of real traffic (working days, log-normal sizes, a few attempts that end early, retries, caches); the figures of the
vendors stand to our count by a slope and an offset of their own. Nothing here knows a fault: see `year_faults`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, timedelta

import numpy as np
import numpy.typing as npt

YEAR = 2026
FIRST = date(YEAR, 1, 1)
DAYS = 365
DAY_US = 86_400_000_000
_EPOCH_DAY = (FIRST - date(1970, 1, 1)).days

Ints = npt.NDArray[np.int64]

#: How an attempt ended, and how often of a thousand.
ENDINGS = ("completed", "vendor_error", "client_gone", "stream_cut", "timeout", "interrupted")
_SHARES = np.array([952, 22, 15, 6, 5, 0]) / 1000
_SHARES_OF_A_CRASH = np.array([932, 22, 15, 6, 5, 20]) / 1000
_CRASHES = frozenset((17, 113, 201, 340))
COMPLETED, VENDOR_ERROR, CLIENT_GONE, STREAM_CUT, TIMEOUT, INTERRUPTED = range(len(ENDINGS))
TENANTS = ("فروشگاه", "商店", "दुकान", "магазин", "shop-ελ", "お店", "עסק", "boutique")


@dataclass(frozen=True, slots=True)
class Model:
    """`prices` are nano-units a token: fresh input, cache read, cache write, output. `slope` and `offset` are how the
    vendor's input stands to our count, `made` the same of its output; `cached` the share of prompts with a cache."""

    name: str
    served: str
    prices: tuple[int, int, int, int]
    slope: float
    offset: int
    made: float
    cached: float = 0.3
    writes: float = 0.0


@dataclass(frozen=True, slots=True)
class Vendor:
    """`zone_hours` is how far its books are from UTC (0, or standard time of the Pacific: summer time is in `zone`)."""

    name: str
    share: float
    models: tuple[Model, ...]
    zone: str = "UTC"
    charges_early: bool = True


VENDORS = (
    Vendor(
        "openai",
        0.30,
        (
            Model("gpt-4o", "gpt-4o-2024-11-20", (2_500, 1_250, 2_500, 10_000), 1.0, 3, 1.0),
            Model("gpt-4o-mini", "gpt-4o-mini-2024-07-18", (150, 75, 150, 600), 1.0, 3, 1.0),
        ),
    ),
    Vendor(
        "anthropic",
        0.25,
        (
            Model(
                "claude-sonnet-4-5", "claude-sonnet-4-5-20250929", (3_000, 300, 3_750, 15_000), 1.18, 12, 1.15, 0.4, 0.3
            ),
            Model(
                "claude-haiku-4-5", "claude-haiku-4-5-20251001", (1_000, 100, 1_250, 5_000), 1.18, 12, 1.15, 0.4, 0.3
            ),
        ),
    ),
    Vendor(
        "deepseek",
        0.15,
        (
            Model("deepseek-chat", "deepseek-chat", (280, 28, 280, 420), 0.94, 5, 0.97, 0.5),
            Model("deepseek-reasoner", "deepseek-reasoner", (280, 28, 280, 420), 0.94, 5, 0.97, 0.5),
        ),
    ),
    Vendor(
        "openrouter",
        0.15,
        (
            Model(
                "meta-llama/llama-3.3-70b-instruct",
                "meta-llama/llama-3.3-70b-instruct",
                (120, 120, 120, 300),
                1.05,
                8,
                1.04,
            ),
            Model("qwen/qwen3-235b-a22b", "qwen/qwen3-235b-a22b", (200, 200, 200, 600), 0.92, 4, 0.95),
        ),
    ),
    Vendor(
        "gemini",
        0.15,
        (
            Model("gemini-2.5-pro", "gemini-2.5-pro", (1_250, 125, 1_250, 10_000), 1.02, 1, 1.01),
            Model("gemini-2.5-flash", "gemini-2.5-flash", (300, 30, 300, 2_500), 1.02, 1, 1.01),
        ),
        "America/Los_Angeles",
    ),
)


@dataclass(slots=True)
class Day:
    """The attempts of one vendor on one UTC day, in the order of their start. `counted_*` is ours, `true_*` what the
    vendor made of it (fresh input, cache read, cache write, output), whether or not its answer said so in the end."""

    vendor: Vendor
    day: date
    first: int
    model: Ints
    tenant: Ints
    started: Ints
    ending: Ints
    attempt_no: Ints
    counted_input: Ints
    counted_output: Ints
    true: Ints = field(default_factory=lambda: np.zeros((0, 4), np.int64))
    duration_us: Ints = field(default_factory=lambda: np.zeros(0, np.int64))

    @property
    def count(self) -> int:
        return len(self.started)

    @property
    def is_sure(self) -> npt.NDArray[np.bool_]:
        """Did the vendor report its usage?"""
        return np.equal(self.ending, COMPLETED)

    @property
    def is_charged(self) -> npt.NDArray[np.bool_]:
        return np.not_equal(self.ending, VENDOR_ERROR)

    def prices(self) -> Ints:
        """Nano-units a token, by attempt and kind."""
        return np.array([model.prices for model in self.vendor.models], np.int64)[self.model]


def day_of(seed: int, total: int, vendor_at: int, number: int, first: int) -> Day:
    """Day `number` of the year. `first` is the number of its first attempt, which makes ids."""
    vendor = VENDORS[vendor_at]
    chance = np.random.Generator(np.random.PCG64([seed, vendor_at, number]))
    when = FIRST + timedelta(days=number)
    rhythm = (0.55 if when.weekday() >= 5 else 1.18) * (1 + 0.25 * np.sin(number / DAYS * 2 * np.pi))
    count = max(6, int(chance.poisson(total * vendor.share / DAYS * rhythm)))
    hours = 0.35 + np.exp(-(((np.arange(24) - 14) / 5.0) ** 2))
    hour = chance.choice(24, count, p=hours / hours.sum())
    start = (_EPOCH_DAY + number) * DAY_US
    started = np.sort(start + hour * 3_600_000_000 + chance.integers(0, 3_600_000_000, count))
    model = chance.choice(len(vendor.models), count, p=_weights(len(vendor.models)))
    # a process dies on few days, and then many streams with it
    ending = chance.choice(len(ENDINGS), count, p=_SHARES_OF_A_CRASH if number in _CRASHES else _SHARES)
    asked = np.clip(chance.lognormal(6.6, 1.0, count), 12, 90_000).astype(np.int64)
    made = np.clip(chance.lognormal(5.2, 0.9, count), 3, 8_000).astype(np.int64)
    whole, output = _vendors_figures(vendor, model, asked, made, chance)
    read, written = _caches(vendor, model, whole, chance)
    is_early = (ending != COMPLETED) & (ending != VENDOR_ERROR)
    share = chance.uniform(0.05, 0.9, count)
    output = np.where(is_early, np.maximum(1, (output * share).astype(np.int64)), output)
    seen = np.where(is_early, np.maximum(1, (made * share * chance.uniform(0.9, 1.0, count)).astype(np.int64)), made)
    return Day(
        vendor,
        when,
        first,
        model,
        chance.choice(len(TENANTS), count, p=_weights(len(TENANTS))),
        started,
        ending,
        np.where((ending == COMPLETED) & (chance.random(count) < 0.03), 2, 1),
        np.where(ending == INTERRUPTED, 0, asked),
        np.where((ending == INTERRUPTED) | (ending == VENDOR_ERROR), 0, seen),
        np.stack([whole - read - written, read, written, output], axis=1),
        (chance.lognormal(8.0, 0.6, count) * 1000).astype(np.int64),
    )


def _weights(count: int) -> npt.NDArray[np.float64]:
    weights = [1.0 / place for place in range(1, count + 1)]
    return np.array(weights, np.float64) / sum(weights)


def _vendors_figures(
    vendor: Vendor, model: Ints, asked: Ints, made: Ints, chance: np.random.Generator
) -> tuple[Ints, Ints]:
    slope = np.array([one.slope for one in vendor.models])[model]
    offset = np.array([one.offset for one in vendor.models])[model]
    out = np.array([one.made for one in vendor.models])[model]
    noise = 1 + chance.normal(0, 0.008, len(asked))
    whole = np.maximum(1, np.rint(asked * slope * noise).astype(np.int64) + offset)
    return whole, np.maximum(1, np.rint(made * out * (1 + chance.normal(0, 0.008, len(made)))).astype(np.int64))


def _caches(vendor: Vendor, model: Ints, whole: Ints, chance: np.random.Generator) -> tuple[Ints, Ints]:
    reads = np.array([one.cached for one in vendor.models])[model]
    writes = np.array([one.writes for one in vendor.models])[model]
    draw = chance.random(len(whole))
    part = (whole * chance.uniform(0.3, 0.9, len(whole))).astype(np.int64)
    has_price = np.array([one.prices[0] != one.prices[1] for one in vendor.models])[model]
    read = np.where((draw < reads) & has_price, part, 0)
    written = np.where((draw >= reads) & (draw < reads + writes), part, 0)
    return read, written
