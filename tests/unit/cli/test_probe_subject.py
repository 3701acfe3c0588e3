"""Whom `sluice probe` asks, and with which key: ours, a wrong one in the same place, or none (contracts C3, Q2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pytest

from proxy.cli.probe import _key_of, _subject
from proxy.config.settings import Secret, UpstreamSettings
from proxy.learning.catalogue import wrong_keys
from proxy.upstream.attempts import Upstream
from tests.support.pipelines import shipped_rules

pytestmark = pytest.mark.clause("C3", "Q2")

KEY: Final = "sk-ours-Zx9Yw8Vu7Ts6"
PAIR: Final = "AKIAZX9YW8VU7TS6:q0W9e8R7t6Y5u4I3o2P1"
BASE: Final = "https://bedrock-runtime.eu-west-1.amazonaws.com/v1"


def told(upstream: Upstream) -> str:
    """All that goes out with a request and may hold a key."""
    headers: Mapping[str, str] = upstream.headers
    if upstream.signer is not None:
        headers = upstream.signer.sign(upstream.base, headers, b"{}", 1_795_996_800.0)
    return f"{upstream.base} {dict(headers)}"


@pytest.mark.parametrize(
    ("vendor", "place"),
    [
        ("openai", "'authorization': 'Bearer {}'"),
        ("anthropic", "'x-api-key': '{}'"),
        ("azure_openai", "'api-key': '{}'"),
        ("gemini", "'x-goog-api-key': '{}'"),
        ("baidu_qianfan_v1", "access_token={}"),
        ("groq", "'authorization': 'Bearer {}'"),
    ],
)
def test_a_wrong_key_stands_where_ours_does(vendor: str, place: str) -> None:
    """And no key stands nowhere."""
    one = UpstreamSettings("main", vendor, "https://api.example.invalid/v1", Secret(KEY))
    subject = _subject(one, shipped_rules(), "m")
    wrong = wrong_keys(KEY)[0]
    assert place.format(KEY) in told(subject.upstream)
    assert place.format(wrong) in told(subject.with_key(wrong))
    assert KEY not in told(subject.with_key(wrong))
    bare = told(subject.with_key(None))
    assert place.split("{", maxsplit=1)[0] not in bare
    assert KEY not in bare


def test_a_signed_request_is_signed_with_the_wrong_secret() -> None:
    """The key's id is another one too; without a key nothing is signed."""
    one = UpstreamSettings("main", "bedrock", BASE, Secret(PAIR))
    subject = _subject(one, shipped_rules(), "m")
    wrong = wrong_keys(PAIR)[0]
    signatures = [told(subject.upstream), told(subject.with_key(wrong))]
    assert all("AWS4-HMAC-SHA256 Credential=AKIA" in signature for signature in signatures)
    assert "AKIAZX9YW8VU7TS6" in signatures[0]
    assert "AKIAZX9YW8VU7TS6" not in signatures[1]
    assert "authorization" not in told(subject.with_key(None)).lower()


def test_a_key_in_a_configured_header_is_the_key() -> None:
    """With the word before it; other headers stay, and those that may hold a secret are kept out of recordings."""
    headers = {"Authorization": f"Token {KEY}", "x-project": "a", "x-gateway": "ein-langes-geheimes-wort"}
    one = UpstreamSettings("main", "openai_compatible", "https://api.example.invalid/v1", headers=headers)
    subject = _subject(one, shipped_rules(), "m")
    assert _key_of(one) == KEY
    assert subject.with_key("no-key-of-ours").headers["authorization"] == "Token no-key-of-ours"
    assert subject.with_key(None).headers.keys() == {"user-agent", "x-project", "x-gateway"}
    assert {KEY, "ein-langes-geheimes-wort"} <= set(subject.secrets)


def test_an_upstream_without_a_key_has_none() -> None:
    """A server of one's own."""
    one = UpstreamSettings("main", "ollama", "http://127.0.0.1:11434")
    assert _key_of(one) is None
    assert _subject(one, shipped_rules(), "m").secrets == ()
