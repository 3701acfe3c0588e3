"""Every dialect that is built, by its name: what `dialect:` of a rule file names, and what our clients speak.

A dialect stands here or it does not exist: the pipeline, the server, the configuration and the contract's test suite
all ask this table.
"""

from __future__ import annotations

from collections.abc import Mapping

from proxy.dialects import openai
from proxy.dialects.base import ClientDialect, VendorDialect

_VENDORS = (openai.VENDOR,)
_CLIENTS = (openai.CLIENT,)

VENDOR_DIALECTS: Mapping[str, VendorDialect] = {dialect.name: dialect for dialect in _VENDORS}
CLIENT_DIALECTS: Mapping[str, ClientDialect] = {dialect.name: dialect for dialect in _CLIENTS}
