"""Baidu's Qianfan in its first version (ERNIE), for upstreams: the model in the path, the token in the query."""

from proxy.dialects.baidu.read import BaiduReader
from proxy.dialects.baidu.send import send_baidu
from proxy.dialects.base import VendorDialect
from proxy.dialects.parts import path_of

VENDOR = VendorDialect(
    name="baidu",
    native=None,
    send=send_baidu,
    reader=lambda _sent: BaiduReader(),
    path=lambda model, _stream, _sent: path_of("/chat/{}", model),
    key_query="access_token",
)
