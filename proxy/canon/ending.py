"""How an attempt stopped (contract C5 `ending`). Every attempt ends exactly once, by one of these."""

from __future__ import annotations

from enum import StrEnum


class Ending(StrEnum):
    COMPLETED = "completed"
    VENDOR_ERROR = "vendor_error"
    STREAM_CUT = "stream_cut"
    TIMEOUT = "timeout"
    CLIENT_GONE = "client_gone"
    LIMIT = "limit"
    INTERRUPTED = "interrupted"


class Stop(StrEnum):
    """Why reading stopped, as the shell saw it; the pipeline makes an `Ending` of it. The values are stable codes."""

    EOF = "eof"  # the body ended as HTTP says it should
    CUT = "stream_cut"  # reset, or a body that ended before HTTP says it should
    CONNECT_FAILED = "connect_failed"
    CONNECT = "connect_timeout"
    FIRST_BYTE = "first_byte_timeout"
    STALL = "stall_timeout"
    IDLE = "idle_timeout"
    TOTAL = "total_timeout"
    AFTER_FINISH = "after_finish"  # nothing more is waited for: the finish or the end mark came
    GONE = "client_gone"
    SHUTDOWN = "shutting_down"
    INTERNAL = "internal_error"


TIMEOUTS = frozenset((Stop.CONNECT, Stop.FIRST_BYTE, Stop.STALL, Stop.IDLE, Stop.TOTAL))
