"""Recordings of live answers show no key, no account and no address, and keep their lengths and cuts (contract L3)."""

from __future__ import annotations

import base64
from collections.abc import Callable
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.learning.masking import headers_of, mask, masked_reads
from proxy.semantics.rule import VendorProfile
from proxy.stores.recordings import Read
from tests.support.learning import acme

pytestmark = pytest.mark.clause("L3", "R1")

KEY = "sk-live-9f3Kq7Zt2Lm8Xw5Rb1Vn6"
text_around = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "Zs", "So")), max_size=30)


@given(text_around, text_around, st.sampled_from([KEY, "کلید-محرمانه", "ab:cd/ef+gh=="]), st.data())
def test_a_secret_is_found_wherever_it_is_cut(before: str, after: str, secret: str, data: st.DataObject) -> None:
    """Also where it lies over the edges of several reads, and the reads keep their lengths."""
    forms = [secret, quote(secret, safe=""), base64.b64encode(secret.encode()).decode()]
    whole = f"{before}«{data.draw(st.sampled_from(forms))}»{after}".encode()
    edges = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    pieces = [whole[a:b] for a, b in zip([0, *edges], [*edges, len(whole)], strict=True)]
    masked = masked_reads([Read(number / 10, piece) for number, piece in enumerate(pieces)], (secret,))
    joined = b"".join(read.data for read in masked)
    assert [len(read.data) for read in masked] == [len(piece) for piece in pieces]
    assert not any(form.encode() in joined for form in forms)
    assert "»".encode() in joined


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (f"no key {KEY}!", f"no key {'*' * len(KEY)}!"),
        (f"key {KEY[:8]}****{KEY[-4:]}", "key ****************"),
        (f"key ...{KEY[-6:]} is wrong", "key ...****** is wrong"),
        (f"part {KEY[9:22]} of it", "part ************* of it"),
        ("you are org-a1b2c3d4e5f6", "you are org-************"),
        ('{"user_id": "u-سارا"}', '{"user_id": "**********"}'),
        ("arn:aws:bedrock:eu-west-1:123456789012:model/m", "arn:aws:bedrock:eu-west-1:************:model/m"),
        ("write to sara@example.org", "write to ****************"),
        ("from 203.0.113.77 too often", "from ************ too often"),
        ("token Bearer abcdefghij0123456789", "token Bearer ********************"),
    ],
)
def test_parts_of_keys_and_whose_they_are_go_too(said: str, shown: str) -> None:
    """In the ways in which vendors quote them."""
    assert mask(said.encode(), (KEY,)).decode() == shown


@pytest.mark.parametrize(
    "said",
    [
        "Rate limit reached for model `llama-3.1-8b` on tokens per minute: Limit 6000, Used 5900",
        'data: {"id":"chatcmpl-1","choices":[{"delta":{"content":"خانه‌ی ما 🏠"}}]}',
        "the organization must be verified",
        "version 1.2.3, 3.14159265358979",
    ],
)
def test_ordinary_words_stay(said: str) -> None:
    """A recording is evidence."""
    assert mask(said.encode(), (KEY,)).decode() == said


@pytest.mark.parametrize("secret", [KEY, "کلید-محرمانه-9", "correct-horse/battery+staple"])
@pytest.mark.parametrize(
    "disguise",
    [
        lambda raw: "".join(f"\\u00{byte:02x}" for byte in raw),
        lambda raw: "".join(f"\\\\u00{byte:02X}" for byte in raw),
        lambda raw: "".join(f"%{byte:02x}" for byte in raw),
        lambda raw: "".join(f"&#{byte};" for byte in raw),
        lambda raw: "".join(f"&#x{byte:x};" for byte in raw),
        lambda raw: raw.decode().replace("/", "\\/").replace("-", "\\u002d"),
        lambda raw: raw.hex().upper(),
        lambda raw: raw.decode()[::-1],
        lambda raw: raw.decode().upper(),
        *(
            lambda raw, before=before, encode=encode: encode(b"u" * before + raw + b":x").decode()
            for before in range(4)
            for encode in (base64.b64encode, base64.urlsafe_b64encode)
        ),
    ],
)
def test_a_secret_is_found_in_disguise(secret: str, disguise: Callable[[bytes], str]) -> None:
    """A vendor may write it back in any letters; what stands around it and what base64 shares with that is left."""
    said = disguise(secret.encode())
    shown = mask(f'{{"پیام": "«{said}» 不对"}}'.encode(), (secret,)).decode()
    left = shown.partition("«")[2].partition("»")[0]
    assert len(left.replace("*", "")) <= 10
    assert "*" * (len(said) - 10) in left
    assert shown.startswith('{"پیام": "«') and shown.endswith('» 不对"}')


def test_escapes_of_other_letters_stay() -> None:
    """Models write them all the time."""
    said = rb'{"text": "\u0633\u0644\u0627\u0645 100% &#128512; a\/b %d %41"}'
    assert mask(said, (KEY,)) == said


def test_a_key_of_words_is_not_hunted_in_parts() -> None:
    """`correct-horse-battery-staple` would take ordinary words with it."""
    assert mask(b"a horse and a battery", ("correct-horse-battery-staple",)) == b"a horse and a battery"


def test_headers_pass_by_a_list() -> None:
    """What says something about the error; of ids only that they were there; what the vendor's rules ask for."""
    profile: VendorProfile = acme(
        "vendor: acme\ndialects: [openai]\nrules:\n  - id: acme.x\n    when: {header: {x-odd: '.'}}\n"
        "    then: {class: rate_limited, code: c}\n"
    )
    headers = {
        "content-type": "application/json",
        "retry-after": "7",
        "x-ratelimit-reset-tokens": "6s",
        "x-acme-reason": f"quota {KEY}",
        "x-amzn-errortype": "ThrottlingException",
        "x-request-id": "abc123",
        "x-odd": "1",
        "set-cookie": "a=b",
        "openai-organization": "org-xyz",
        "date": "Mon",
        "x-encoded": "y",
    }
    assert dict(headers_of(headers, profile, lambda text: mask(text, (KEY,)))) == {
        "content-type": "application/json",
        "retry-after": "7",
        "x-ratelimit-reset-tokens": "6s",
        "x-acme-reason": f"quota {'*' * len(KEY)}",
        "x-amzn-errortype": "ThrottlingException",
        "x-request-id": "******",
        "x-odd": "1",
    }
