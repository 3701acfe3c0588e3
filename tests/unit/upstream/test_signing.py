"""Signatures held to those that the clouds' own libraries write, over what aiohttp really sends."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from types import SimpleNamespace

import botocore.auth  # type: ignore[import-untyped]  # it has no types
import pytest
from aiohttp import web
from botocore.awsrequest import AWSRequest  # type: ignore[import-untyped]  # it has no types
from botocore.credentials import Credentials  # type: ignore[import-untyped]  # it has no types
from multidict import CIMultiDictProxy
from tencentcloud.common import credential  # type: ignore[import-untyped]  # it has no types
from tencentcloud.common.abstract_client import AbstractClient  # type: ignore[import-untyped]  # it has no types
from yarl import URL

from proxy.errors import ConfigError
from proxy.upstream.attempts import Signer, address
from proxy.upstream.session import Session, Timeouts
from proxy.upstream.signing import signer_of

Handler = Callable[[web.Request], Awaitable[web.Response]]

WALL = 1_796_000_000.9
BODY = '{"messages":[{"role":"user","content":[{"text":"سلام 東京 👩‍👧"}]}]}'.encode()
HEADERS = {
    "content-type": "application/json",
    "accept": "application/vnd.amazon.eventstream",
    "user-agent": "sluice",
    "x-request-id": "r-1",
    "traceparent": "00-1-2-01",
    "authorization": "Bearer left over",
}
AWS = URL("https://bedrock-runtime.eu-central-1.amazonaws.com")
MODEL_PATH = (
    "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A123456789012%3Ainference-profile%2Fus.anthropic.claude-v2%3A0/converse"
)
TENCENT = URL("https://hunyuan.tencentcloudapi.com/")


def signer(kind: str, secret: str, base: URL, region: str | None = None) -> Signer:
    made = signer_of(kind, secret, base, region)
    assert made is not None
    return made


# ---- which signer ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["aws", "tc3"])
def test_a_secret_without_a_colon_is_a_bearer_key(kind: str) -> None:
    """Both clouds have such keys: nothing is signed."""
    assert signer_of(kind, "ABSKQmVkcm9ja0FQSUtleQ==", AWS, None) is None


@pytest.mark.parametrize("secret", [":", "AKID:", ":secret", "::token"])
def test_half_a_secret_is_told_at_start(secret: str) -> None:
    """An empty id or key can never sign."""
    with pytest.raises(ConfigError, match="ID:SECRET"):
        signer_of("aws", secret, AWS, None)


@pytest.mark.parametrize(
    ("host", "region"),
    [
        ("bedrock-runtime.us-east-1.amazonaws.com", "us-east-1"),
        ("bedrock-runtime-fips.us-gov-west-1.amazonaws.com", "us-gov-west-1"),
        ("bedrock-runtime.cn-north-1.amazonaws.com.cn", "cn-north-1"),
        ("vpce-0a1b2c.bedrock-runtime.ap-southeast-2.vpce.amazonaws.com", "ap-southeast-2"),
        ("bedrock-runtime.eu-west-3.api.aws", "eu-west-3"),
    ],
)
def test_the_host_names_the_region(host: str, region: str) -> None:
    """And what is configured wins."""
    base = URL(f"https://{host}")
    assert f"/{region}/bedrock/aws4_request" in signed("aws", base)["authorization"]
    assert "/il-central-1/bedrock/" in signed("aws", base, region="il-central-1")["authorization"]


def test_a_host_without_a_region_is_told_at_start() -> None:
    """A gateway of one's own says nothing about where the request will be checked."""
    with pytest.raises(ConfigError, match="region"):
        signer_of("aws", "AKID:secret", URL("https://gateway.example.com"), None)


def test_without_botocore_it_is_said_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is needed by nobody else."""
    monkeypatch.setitem(sys.modules, "botocore.auth", None)
    with pytest.raises(ConfigError, match=r"pip install 'sluice-proxy\[bedrock\]'"):
        signer_of("aws", "AKID:secret", AWS, None)


def test_an_unknown_way_is_refused() -> None:
    """A dialect that names one has a mistake."""
    with pytest.raises(ConfigError, match="hmac"):
        signer_of("hmac", "AKID:secret", AWS, None)


# ---- AWS -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("secret", ["AKIDEXAMPLE:wJalrXUtnFEMI/K7MDENG+bPx", "ASIAEXAMPLE:secret:session/token+=="])
@pytest.mark.parametrize(
    "base", ["https://bedrock-runtime.eu-central-1.amazonaws.com", "http://127.0.0.1:8099", "http://[::1]:8099/v?a=1"]
)
def test_aws_signatures_are_botocores(secret: str, base: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same signature as `SigV4Auth.add_auth` writes for the same request at the same time."""
    url = address(URL(base), MODEL_PATH)
    headers = signer("aws", secret, URL(base), "eu-central-1").sign(url, HEADERS, BODY, WALL)

    assert headers["authorization"] == by_botocore(url, secret, monkeypatch)
    assert headers["x-amz-date"] == datetime.fromtimestamp(WALL, UTC).strftime("%Y%m%dT%H%M%SZ")
    assert headers.get("x-amz-security-token") == (secret.split(":")[2] if secret.count(":") == 2 else None)
    assert {name: value for name, value in headers.items() if name in HEADERS and name != "authorization"} == {
        name: value for name, value in HEADERS.items() if name != "authorization"
    }


def by_botocore(url: URL, secret: str, monkeypatch: pytest.MonkeyPatch) -> str:
    identity, key, token = (*secret.split(":"), None)[:3]
    assert identity is not None
    assert key is not None
    monkeypatch.setattr(botocore.auth, "get_current_datetime", lambda: datetime.fromtimestamp(WALL, UTC))
    request = AWSRequest("POST", str(url), headers={"content-type": "application/json"}, data=BODY)
    botocore.auth.SigV4Auth(Credentials(identity, key, token), "bedrock", "eu-central-1").add_auth(request)
    authorization = request.headers["Authorization"]
    assert isinstance(authorization, str)
    # It signs the host without writing the header.
    assert "SignedHeaders=content-type;host;x-amz-date" in authorization
    return authorization


def test_headers_that_proxies_change_are_not_signed() -> None:
    """A trace id, an encoding, a user agent: none of them may break a signature on its way."""
    names = signed("aws", AWS)["authorization"].split("SignedHeaders=")[1].split(",")[0]
    assert names == "content-type;host;x-amz-date"


@pytest.mark.parametrize("path", [MODEL_PATH, "/model/anthropic.claude-3-haiku-20240307-v1%3A0/converse-stream"])
async def test_what_is_signed_is_what_is_sent(path: str) -> None:
    """The server sees the very path, host, body and headers that the signature was made over."""
    seen: list[tuple[str, CIMultiDictProxy[str], bytes]] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append((request.raw_path, request.headers, await request.read()))
        return web.Response(text="ok")

    async with serving(answer) as base:
        url = address(base, path)
        headers = signer("aws", "AKID:secret", base, "us-east-1").sign(url, HEADERS, BODY, WALL)
        session = Session()
        exchange = await session.open(url, headers, BODY, Timeouts())
        exchange.close()
        await session.close()

    [(raw_path, got, body)] = seen
    assert raw_path == path
    assert body == BODY
    assert got.getall("host") == [f"{base.host}:{base.port}"]
    assert got.getall("authorization") == [headers["authorization"]]
    again = signer("aws", "AKID:secret", base, "us-east-1").sign(
        URL(f"http://{got['Host']}{raw_path}", encoded=True), {"content-type": got["Content-Type"]}, body, WALL
    )
    assert again["authorization"] == got["Authorization"]


# ---- Tencent ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "secret", ["AKIDz8krbsJ5yKBZQpn74WFkmLPx3:Gu5t9xGARNpq86cd98joQYCN3", "AKID:key:session-token"]
)
@pytest.mark.parametrize("region", [None, "ap-guangzhou"])
@pytest.mark.parametrize("path", ["", "/"])
def test_tencent_signatures_are_those_of_its_sdk(
    secret: str, region: str | None, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same signature, credential scope and headers as `tencentcloud.common` writes."""
    headers = {**HEADERS, "x-tc-action": "ChatCompletions", "x-tc-version": "2023-09-01"}
    url = address(TENCENT, path)
    made = signer("tc3", secret, TENCENT, region).sign(url, headers, BODY, WALL)

    theirs = by_tencent(secret, region, monkeypatch)
    for name in ("authorization", "x-tc-timestamp", "x-tc-region", "x-tc-token", "x-tc-action", "x-tc-version", "host"):
        assert made.get(name) == theirs.get(name), name


def by_tencent(secret: str, region: str | None, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setattr("tencentcloud.common.abstract_client.time.time", lambda: WALL)
    client = AbstractClient(credential.Credential(*secret.split(":")), region or "")
    client._service, client._apiVersion = "hunyuan", "2023-09-01"
    client._endpoint = str(TENCENT.host)
    request = SimpleNamespace(method="POST", uri="/", header={}, data=BODY)
    # Its own JSON has other blanks than ours: the body to be signed is put in its place.
    monkeypatch.setattr("tencentcloud.common.abstract_client.json.dumps", lambda _params: BODY.decode())
    client._build_req_with_tc3_signature("ChatCompletions", {}, request)
    return {name.lower(): value for name, value in request.header.items()}


def signed(kind: str, base: URL, region: str | None = None) -> Mapping[str, str]:
    return signer(kind, "AKID:secret", base, region).sign(base / "x", HEADERS, BODY, WALL)


@asynccontextmanager
async def serving(handler: Handler) -> AsyncIterator[URL]:
    """A server of one handler on loopback, for as long as the block lasts."""
    app = web.Application()
    app.router.add_post("/{any:.*}", handler)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield URL.build(scheme="http", host="127.0.0.1", port=runner.addresses[0][1])
    finally:
        await runner.cleanup()
