"""Tencent's Hunyuan in its own API (version 3.0), for upstreams: capitalised names, signed requests."""

from proxy.dialects.base import VendorDialect
from proxy.dialects.hunyuan.read import HunyuanReader
from proxy.dialects.hunyuan.send import send_hunyuan

VENDOR = VendorDialect(
    name="hunyuan",
    native=None,
    send=send_hunyuan,
    reader=lambda _sent: HunyuanReader(),
    path=lambda _model, _stream, _sent: "/",
    headers={"x-tc-action": "ChatCompletions", "x-tc-version": "2023-09-01"},
    signing="tc3",
)
