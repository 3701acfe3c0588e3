"""Requests that must be signed: a key in a header is not enough for these clouds.

In: a secret as configured (`ID:SECRET`, or `ID:SECRET:SESSION_TOKEN`), the request as it will be sent. Out: the
headers to send. AWS's Signature 4 is botocore's; Tencent's TC3 is written out here, for it is a page of HMAC and its
own library brings an HTTP client. A secret without a colon is a bearer key, which both clouds have too. Signs what no
proxy on the way has a reason to change (host, content type, the cloud's own headers), never the rest; never logs.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import time
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from yarl import URL

from proxy.errors import ConfigError
from proxy.upstream.attempts import Signer

# bedrock-runtime.eu-west-1.amazonaws.com, bedrock-runtime-fips.…, vpce-1a2b.bedrock-runtime.eu-west-1.vpce.…
_REGION = re.compile(r"(?:^|\.)bedrock[a-z-]*\.(?P<region>[a-z]{2,}(?:-[a-z]+)+-\d+)\.")
_AWS_SERVICE = "bedrock"
_TC3_SERVICE = "hunyuan"
_TC3, _TC3_SIGNED = "TC3-HMAC-SHA256", "content-type;host"


def signer_of(kind: str, secret: str, base: URL, region: str | None) -> Signer | None:
    """The signer of this kind (`aws` or `tc3`); None where the secret is a bearer key. Raises ConfigError for what
    cannot be signed with: half a secret, no region, no botocore."""
    if ":" not in secret:
        return None
    identity, key, token = (*secret.split(":", 2), "")[:3]
    if not identity or not key:
        raise _wrong("api_key must be ID:SECRET or ID:SECRET:SESSION_TOKEN, or one key without a colon")
    if kind == "aws":
        found = _REGION.search(base.host or "")
        region = region or (found["region"] if found is not None else None)
        if region is None:
            raise _wrong(f"requests to {base.host} are signed for a region, and its name says none: set `region:`")
        return AwsSigner(identity, key, token, region)
    if kind == "tc3":
        return Tc3Signer(identity, key, token, region)
    raise _wrong(f"no way of signing is called {kind}")


def _wrong(reason: str) -> ConfigError:
    return ConfigError("configuration", None, reason)


class AwsSigner:
    """AWS Signature 4 for Bedrock. Loading botocore takes a moment: it is done here, once, and not with a request."""

    def __init__(self, identity: str, key: str, token: str, region: str) -> None:
        try:
            auth = import_module("botocore.auth")
            self._request: Any = import_module("botocore.awsrequest").AWSRequest
            credentials = import_module("botocore.credentials").Credentials(identity, key, token or None)
        except ImportError as error:
            raise _wrong("requests to AWS are signed by botocore: pip install 'sluice-proxy[bedrock]'") from error
        self._token = token
        self._auth: Any = auth.SigV4Auth(credentials, _AWS_SERVICE, region)

    def sign(self, url: URL, headers: Mapping[str, str], body: bytes, wall: float) -> dict[str, str]:
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(wall))
        own = {"host": _host(url, headers), "x-amz-date": stamp}
        if self._token:
            own["x-amz-security-token"] = self._token
        kept = {name: value for name, value in headers.items() if name != "authorization" and name not in own}
        signed = {name: value for name, value in kept.items() if name == "content-type" or name.startswith("x-amz-")}
        request = self._request("POST", str(url), headers={**signed, **own}, data=body)
        request.context["timestamp"] = stamp
        auth = self._auth
        text = auth.string_to_sign(request, auth.canonical_request(request))
        names = auth.signed_headers(auth.headers_to_sign(request))
        signature = auth.signature(text, request)
        told = f"AWS4-HMAC-SHA256 Credential={auth.scope(request)}, SignedHeaders={names}, Signature={signature}"
        return {**kept, **own, "authorization": told}


class Tc3Signer:
    """Tencent Cloud's TC3-HMAC-SHA256. The dialect names action and version (`x-tc-action`, `x-tc-version`) among its
    headers; time, region, token and signature are set here."""

    def __init__(self, identity: str, key: str, token: str, region: str | None) -> None:
        self._identity, self._key, self._token, self._region = identity, key, token, region

    def sign(self, url: URL, headers: Mapping[str, str], body: bytes, wall: float) -> dict[str, str]:
        stamp = str(int(wall))
        date = time.strftime("%Y-%m-%d", time.gmtime(int(wall)))
        own = {"host": _host(url, headers), "x-tc-timestamp": stamp}
        if self._region:
            own["x-tc-region"] = self._region
        if self._token:
            own["x-tc-token"] = self._token
        kept = {name: value for name, value in headers.items() if name != "authorization" and name not in own}
        kept.setdefault("content-type", "application/json")
        request = "\n".join(
            (
                *("POST", url.raw_path or "/", url.raw_query_string),
                *(f"content-type:{kept['content-type']}", f"host:{own['host']}", ""),
                *(_TC3_SIGNED, hashlib.sha256(body).hexdigest()),
            )
        )
        scope = f"{date}/{_TC3_SERVICE}/tc3_request"
        text = "\n".join((_TC3, stamp, scope, hashlib.sha256(request.encode()).hexdigest()))
        key = f"TC3{self._key}".encode()
        for part in scope.split("/"):
            key = _hmac(key, part)
        signature = _hmac(key, text).hex()
        told = f"{_TC3} Credential={self._identity}/{scope}, SignedHeaders={_TC3_SIGNED}, Signature={signature}"
        return {**kept, **own, "authorization": told}


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def _host(url: URL, headers: Mapping[str, str]) -> str:
    """The host header as aiohttp writes it: with a port where that is not the scheme's own."""
    return headers.get("host") or url.host_port_subcomponent or ""
