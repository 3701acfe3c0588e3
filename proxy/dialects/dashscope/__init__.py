"""DashScope, Alibaba's own API for Qwen, for upstreams: text, and the endpoint for pictures beside it."""

from collections.abc import Mapping

from proxy.dialects.base import VendorDialect
from proxy.dialects.dashscope.read import DashScopeReader
from proxy.dialects.dashscope.send import is_multimodal, send_dashscope


def _path(_model: str, _stream: bool, sent: Mapping[str, object]) -> str:
    task = "multimodal-generation" if is_multimodal(sent) else "text-generation"
    return f"/services/aigc/{task}/generation"


VENDOR = VendorDialect(
    name="dashscope",
    native=None,
    send=send_dashscope,
    reader=DashScopeReader,
    path=_path,
    stream_headers={"x-dashscope-sse": "enable"},
)
