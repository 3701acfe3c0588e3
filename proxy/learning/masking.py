"""What may stand in a recording of a live exchange: the answer without keys, accounts and addresses (contract L3, R1).

In: an answer's headers and reads, and the secrets that were in use. Out: headers from a list of those allowed, and the
same reads with an asterisk for each byte that is nobody's business: lengths, cuts and lines stay as they came, so the
recording still shows what the vendor did. What a secret looks like across the edge of two reads is found too. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

from proxy.learning.secret_forms import places_of
from proxy.semantics.rule import VendorProfile
from proxy.semantics.sameness import TELLING_HEADER
from proxy.stores.recordings import Read

#: Headers whose values say what kind of answer it is.
_ALLOWED: Final = re.compile(
    r"content-type|server|via|retry-after(-ms)?|(x-|anthropic-)?ratelimit-[\w-]+|x-should-retry|x-ms-retry-after-ms"
    r"|www-authenticate"
)
#: Of these it matters only that they were there.
_IDS: Final = re.compile(r"(x-)?(amzn-)?request-?id|apim-request-id|x-ms-request-id|cf-ray|x-trace-id|trace-id")

_BODY: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        # accounts and those who own them, in the ways in which vendors write their ids
        rb"\b(?:org|proj|user|acct|account|team|workspace|wrkspc|tenant)[-_](?P<id>(?=[a-z]*\d)[a-z0-9]{8,})",
        rb'"(?:(?:org(?:anization)?|account|user|tenant|team|project|workspace|owner)_?id|organization)"\s*:\s*"(?P<id>[^"]{4,})"',
        rb"\borganization (?P<id>org-\w+)",
        rb"\barn:aws[\w-]*:[\w-]*:[\w-]*:(?P<id>\d{12})\b",
        rb"(?P<id>[\w.+-]{1,64}@[a-z0-9-]+(?:\.[a-z0-9-]+)+)",
        rb"(?<![\w.])(?P<id>(?:\d{1,3}\.){3}\d{1,3})(?![\w.])",
        # keys that are not ours, as `recordings` refuses them
        rb"\b(?:sk|gsk|xai|fw|pk|rk|tgp|nvapi)[-_](?P<id>[a-z0-9_-]{20,})",
        rb"\bbearer\s+(?P<id>[a-z0-9._~+/-]{16,})",
        rb"\bAIza(?P<id>[a-z0-9_-]{30,})",
    )
)
#: A key shown in part: `sk-ab****wxyz`.
_SHORTENED: Final = re.compile(rb"(?P<head>[\w-]{0,24})(?:\*{2,}|\.{3,}|\xe2\x80\xa6)(?P<tail>[\w-]{0,24})")
_SHORTEST_PART: Final = 3


def headers_of(
    headers: Mapping[str, str], profile: VendorProfile, mask: Callable[[bytes], bytes]
) -> list[tuple[str, str]]:
    """Those that may be recorded, which are also all that this vendor's rules ask for."""
    asked = {name for rule in profile.rules for name, _ in rule.when.header}
    kept = []
    for name, value in headers.items():
        if _IDS.fullmatch(name):
            kept.append((name, "*" * len(value)))
        elif name in asked or _ALLOWED.fullmatch(name) or TELLING_HEADER.search(name):
            kept.append((name, mask(value.encode("utf-8", "replace")).decode("utf-8", "replace")))
    return kept


def masked_reads(reads: Sequence[Read], secrets: Collection[str]) -> tuple[Read, ...]:
    """The same reads, masked as one text."""
    whole = mask(b"".join(read.data for read in reads), secrets)
    made, start = [], 0
    for read in reads:
        made.append(Read(read.t, whole[start : start + len(read.data)]))
        start += len(read.data)
    return tuple(made)


def mask(text: bytes, secrets: Collection[str]) -> bytes:
    """The text with asterisks, as long as it was."""
    masked = bytearray(text)
    for start, end in _places(text, secrets):
        masked[start:end] = b"*" * (end - start)
    return bytes(masked)


def _places(text: bytes, secrets: Collection[str]) -> Iterable[tuple[int, int]]:
    yield from places_of(text, secrets)
    for found in _SHORTENED.finditer(text):
        head, tail = found["head"].decode(errors="replace"), found["tail"].decode(errors="replace")
        for secret in secrets:
            if len(head) >= _SHORTEST_PART and secret.startswith(head[-len(secret) :]):
                yield found.span("head")
            if len(tail) >= _SHORTEST_PART and secret.endswith(tail):
                yield found.span("tail")
    for pattern in _BODY:
        for found in pattern.finditer(text):
            yield found.span("id")
