"""Every dialect that is built, by its name: what `dialect:` of a rule file names, and what our clients speak.

A dialect stands here or it does not exist: the pipeline, the server, the configuration and the contract's test suite
all ask this table.
"""

from __future__ import annotations

from collections.abc import Mapping

from proxy.dialects import (
    anthropic,
    baidu,
    bedrock,
    cohere,
    completions,
    dashscope,
    embeddings,
    gemini,
    hunyuan,
    minimax,
    ollama,
    openai,
    responses,
    toon,
)
from proxy.dialects.base import ClientDialect, VendorDialect

_VENDORS = (
    openai.VENDOR,
    anthropic.VENDOR,
    responses.VENDOR,
    completions.VENDOR,
    bedrock.VENDOR,
    cohere.VENDOR,
    *gemini.VENDORS,
    ollama.VENDOR,
    dashscope.VENDOR,
    baidu.VENDOR,
    hunyuan.VENDOR,
    minimax.VENDOR,
)
_CLIENTS = (
    openai.CLIENT,
    anthropic.CLIENT,
    responses.CLIENT,
    completions.CLIENT,
    embeddings.CLIENT,
    toon.CLIENT,
)

#: What an upstream may be said to speak.
CHAT_DIALECTS: Mapping[str, VendorDialect] = {dialect.name: dialect for dialect in _VENDORS}
#: And how it may be asked: for embeddings and for token ids otherwise (`embeddings.EMBEDDINGS` and a vendor's
#: `token_route` say how).
VENDOR_DIALECTS: Mapping[str, VendorDialect] = {
    **CHAT_DIALECTS,
    **{dialect.name: dialect for dialect in embeddings.VENDORS},
    **toon.TOKEN_ROUTES,
}
CLIENT_DIALECTS: Mapping[str, ClientDialect] = {dialect.name: dialect for dialect in _CLIENTS}
