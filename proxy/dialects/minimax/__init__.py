"""MiniMax's chatcompletion_pro, for upstreams. (Its chatcompletion_v2 is of the OpenAI family.)"""

from proxy.dialects.base import VendorDialect
from proxy.dialects.minimax.read import MiniMaxProReader
from proxy.dialects.minimax.send import send_minimax_pro

VENDOR = VendorDialect(
    name="minimax_pro",
    native=None,
    send=send_minimax_pro,
    reader=lambda _sent: MiniMaxProReader(),
    path=lambda _model, _stream, _sent: "/text/chatcompletion_pro",
)
