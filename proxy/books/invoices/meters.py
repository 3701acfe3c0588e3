"""What a cloud's meter counts, of which model, and how (contract C3).

In: the name of a meter as it stands on the invoice: Azure's `GPT 5 Mini cchd Inpt Glbl 1M Tokens`, Google's `Generate
content cached input token count gemini 2.5 flash short input text`, AWS's `USE1-Claude4.5Sonnet-input-tokens-batch`.
Out: a `Meter`. Meters are named for people and abbreviate as they please: the words below are those that price lists
have. What is none of them is no token, and a model that no rule here can name keeps the meter's own words, so that it
shows in the report and a mapping's `models` can say what it is.

Names: prices.azure.com/api/retail/prices (Azure), cloud.google.com/skus (Google),
docs.aws.amazon.com/bedrock/latest/userguide/cost-mgmt-understanding-cur-data.html and the AWS price list (AWS).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from proxy.books.invoice import PartKind

_THOUSAND, _MILLION = 1_000, 1_000_000
_UNIT = re.compile(r"(?<![\d.,A-Za-z])(?P<count>\d{1,4})?\s*(?P<scale>[KkMm])(?![A-Za-z])|\b(?P<words>1\d{3,6})\b")


@dataclass(frozen=True, slots=True)
class Meter:
    """`model` is None for what is no tokens. `tier` is the vendor's own word: batch, flex, priority, long context."""

    kind: PartKind
    model: str | None
    tier: str | None = None


#: In this order: a cached input is an input too, and Google's output names the length of its input.
_KINDS: Final = (
    (PartKind.OTHER, r"storage|hosting|hostng|training|trng|grader|session|search|image gen\w*|per hour"),
    (PartKind.CACHE_WRITE, r"cach\w* (?:\w+ )?(?:write|writes|creation)|(?:cchd|cd) wr\w*"),
    (PartKind.CACHE_READ, r"cached|cache|caching|cchd|cch|cd"),
    (PartKind.OUTPUT, r"output|outputs|outp|outpt|opt|response|completion"),
    (PartKind.INPUT, r"input|inputs|inp|inpt|prompt"),
)
_KIND_RES = tuple((kind, re.compile(rf"(?<![a-z])(?:{words})(?![a-z])")) for kind, words in _KINDS)
_TIERS = (
    ("batch", re.compile(r"\bbatch\b")),
    ("flex", re.compile(r"\bflex\b")),
    ("priority", re.compile(r"\b(?:priority|pp|prty)\b")),
    ("long context", re.compile(r"\b(?:long ?co(?:ntext)?|long input|l ?ctx)\b")),
)


def kind_of(words: str) -> PartKind:
    """What a meter or a usage type counts."""
    text = _spaced(words)
    return next((kind for kind, told in _KIND_RES if told.search(text)), PartKind.OTHER)


def tier_of(words: str) -> str | None:
    text = _spaced(words)
    return ", ".join(name for name, told in _TIERS if told.search(text)) or None


def _spaced(words: str) -> str:
    """`USE1_InputTokenCount-Units` and `input-tokens` as words with blanks."""
    parts = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", words)
    return re.sub(r"[-_/:,()\s]+", " ", parts).lower()


def unit_of(words: str | None) -> int:
    """How many tokens one of a quantity is: `1K`, `1M`, `1000`, `1M Tokens`, `100K`; 1 where nothing is said."""
    found = _UNIT.search(words or "")
    if found is None:
        return 1
    if found["words"]:
        return int(found["words"])
    scale = _THOUSAND if found["scale"].lower() == "k" else _MILLION
    return int(found["count"] or 1) * scale


# -- Azure ------------------------------------------------------------------------------------------------------------

#: What stands in a meter besides its model: kind, place, tier, unit. `Gl`, `Dz` and `rgnl` are where it ran.
_AZURE_WORDS = re.compile(
    r"\b(?:inp|inpt|input|opt|outp|outpt|output|out|in|cached|cchd|cache|cd|glbl|gl|global|regnl|rgnl|rg|regional|data|"
    r"zone|dz|dzn|dzone|batch|tokens?|std|pp|priority|shortco|longco|1[km])\b",
    re.IGNORECASE,
)
#: Meters that leave the maker's word out say it in their product.
_AZURE_FAMILIES: Final = (
    (re.compile(r"openai", re.IGNORECASE), re.compile(r"\d"), "gpt-"),
    (re.compile(r"deepseek", re.IGNORECASE), re.compile(r"[vr]\d"), "deepseek-"),
    (re.compile(r"grok", re.IGNORECASE), re.compile(r"\d"), "grok-"),
)


@lru_cache(maxsize=4096)
def azure_meter(meter: str, product: str = "") -> Meter:
    """`gpt 4o 0806 Inp glbl Tokens` is `gpt-4o-0806`; the year stands in no meter."""
    kind = kind_of(meter)
    if kind is PartKind.OTHER:
        return Meter(kind, None)
    name = "-".join(_AZURE_WORDS.sub(" ", meter.replace("-", " ")).lower().split())
    for told, begins, family in _AZURE_FAMILIES:
        if told.search(product) and begins.match(name):
            name = family + name
    return Meter(kind, name or meter, tier_of(meter))


# -- Google -----------------------------------------------------------------------------------------------------------

_GOOGLE_MODEL = re.compile(
    r"\b(?:gemini[ -](?P<version>\d+(?:\.\d+)?)[ -](?P<size>pro|flash|nano|ultra)(?P<lite>[ -]lite)?"
    r"(?P<preview>[ -]preview)?(?P<image>[ -]image(?= |$))?|gemini[ -](?P<old>embedding[ -]\d+))",
    re.IGNORECASE,
)
_GOOGLE_CLAUDE = re.compile(
    r"\bclaude[ -](?P<name>(?:\w+[ -])?\d+(?:\.\d+)?(?:[ -](?:sonnet|opus|haiku))?)", re.IGNORECASE
)


@lru_cache(maxsize=4096)
def google_meter(sku: str) -> Meter:
    """`Generate content input token count gemini 2.5 flash short input text` is `gemini-2.5-flash`."""
    kind = kind_of(sku)
    if kind is PartKind.OTHER:
        return Meter(kind, None)
    model = sku
    if (found := _GOOGLE_MODEL.search(sku)) is not None:
        if found["old"]:
            model = f"gemini-{found['old']}"
        else:
            # an `image` at the end is what the tokens are of, unless it stands there once more
            image = "-image" if found["image"] and re.search(r"image (?:output|image)", sku.lower()) else ""
            lite = "-lite" if found["lite"] else ""
            model = f"gemini-{found['version']}-{found['size']}{lite}{'-preview' if found['preview'] else ''}{image}"
    elif (claude := _GOOGLE_CLAUDE.search(sku)) is not None:
        model = f"claude-{claude['name']}"
    return Meter(kind, model.lower().replace(" ", "-") if model is not sku else sku, tier_of(sku))


# -- AWS --------------------------------------------------------------------------------------------------------------

_AWS_REGION = re.compile(r"^[A-Z]{2,5}\d*-")
_AWS_KIND = re.compile(
    r"[-_](?:mantle-)?(?:text-)?(?P<kind>cache-read-input-token-count|cache-write-input-token-count|"
    r"cache-write-1h-input-token-count|input-tokens?|output-tokens?|input-[a-z]+-token-count|"
    r"output-[a-z]+-token-count|input-token-count|output-token-count)(?P<rest>-[\w.-]+)?$",
    re.IGNORECASE,
)
#: Models that are sold through the marketplace: their name stands in the product, and a unit is a million tokens.
_AWS_MARKET = re.compile(
    r"(?:^|[:_-])(?P<kind>(?:cache)?_?(?:read|write)?_?(?:input|output)_?tokens?(?:count)?|"
    r"cache_?(?:read|write)\w*?)(?P<rest>_\w+)?-units$",
    re.IGNORECASE,
)
_AWS_EDITION = re.compile(r"\s*\((?:Amazon )?Bedrock[^)]*\)\s*$", re.IGNORECASE)
_AWS_CLAUDE = re.compile(r"^claude[- ]?(?P<version>[4-9](?:\.\d+)?)[- ]?(?P<size>sonnet|opus|haiku)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class AwsMeter:
    """`unit` is how many tokens one of its quantity is where the line does not say."""

    meter: Meter
    unit: int


@lru_cache(maxsize=4096)
def aws_meter(usage_type: str, product: str = "") -> AwsMeter:
    """`USE1-Claude4.5Sonnet-input-tokens` is `claude-sonnet-4-5`; `USE1-MP:USE1_InputTokenCount-Units` is the product's
    name."""
    if (found := _AWS_KIND.search(usage_type)) is not None:
        name = _aws_model(_AWS_REGION.sub("", usage_type[: found.start()]))
        return AwsMeter(Meter(kind_of(found["kind"]), name, tier_of(found["rest"] or "")), _THOUSAND)
    if (found := _AWS_MARKET.search(usage_type)) is not None and product:
        name = _aws_model(_AWS_EDITION.sub("", product))
        return AwsMeter(Meter(kind_of(usage_type), name, tier_of(usage_type)), _MILLION)
    return AwsMeter(Meter(PartKind.OTHER, None), 1)


def _aws_model(name: str) -> str:
    """As the model's id has it: from its fourth version on Claude's size comes first, and `2.0` is `2`."""
    if (found := _AWS_CLAUDE.match(name)) is not None:
        return f"claude-{found['size'].lower()}-{found['version'].replace('.', '-')}"
    return re.sub(r"(?<=[A-Za-z]\d)\.0(?=[A-Z])", "", name)
