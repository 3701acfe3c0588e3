"""Google's Gemini API and Vertex AI, for vendors alone: the same payloads, told apart by where our key goes.

Base URLs: `https://generativelanguage.googleapis.com/v1beta`, and for Vertex AI
`https://{region}-aiplatform.googleapis.com/v1/projects/{project}/locations/{region}/publishers/google` with an OAuth
token.
"""

from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import quote

from proxy.dialects.base import Framing, VendorDialect
from proxy.dialects.gemini.read import GeminiReader
from proxy.dialects.gemini.send import send_gemini


def _path(model: str, stream: bool, _sent: Mapping[str, object]) -> str:
    method = "streamGenerateContent?alt=sse" if stream else "generateContent"
    return f"/models/{quote(model.removeprefix('models/'), safe='')}:{method}"


VENDOR = VendorDialect(
    name="gemini",
    native=None,
    send=send_gemini,
    reader=lambda _sent: GeminiReader(),
    path=_path,
    key_header="x-goog-api-key",
    framings=frozenset((Framing.SSE, Framing.ARRAY)),
)

VERTEX = replace(VENDOR, name="vertex", key_header=None)

VENDORS = (VENDOR, VERTEX)
