"""Server-sent events: bytes to frames, by the WHATWG rules with two leniencies (contracts W1, W2, W7).

In: the reads of one response body, cut anywhere. Out: one `Frame` per event that has data. Where readers of the
standard differ, this one does the following.

- One byte order mark at the very start is dropped. Lines end at CR, LF and CRLF only.
- One space after the colon is dropped; several `data` lines are joined by LF; the last `event` field of an event
  counts; `id` and `retry` are counted and ignored, since nothing here ever reconnects.
- An event without data, or with empty data only, is counted and not returned: it is somebody's heartbeat.
- Comments are counted. The last few wait for the next frame, for some vendors write a status into them
  (`:HTTP_STATUS/429`); alone they dispatch nothing.
- Leniency: at end of input an event without its blank line is returned, marked as not terminated.
- Leniency: lines that are none of the four fields are kept aside, whole, and not dropped: a failing server prints a
  bare JSON object or a page of HTML into the stream, and at end of input somebody will want to know what it said.

Never decodes or parses the data, never raises but for `LimitExceeded`, never holds more than one line and one event.
"""

from __future__ import annotations

from collections import deque

from proxy.errors import LimitExceeded
from proxy.wire.frame import Frame
from proxy.wire.lines import BomFilter, LineBuffer

# Enough for the one status a vendor writes; the last ones count, since heartbeats may have piled up in front of it.
MAX_COMMENTS = 8
MAX_COMMENT_BYTES = 256

_COLON = 0x3A
_SPACE = 0x20


class SseDecoder:
    """`over` is set as soon as a limit is known to be exceeded. Frames in front of that point are returned first; then
    the same call, if it had none to return, or the next one raises it.

    `at_boundary` says whether the next byte begins a new event and nothing that is held belongs to it: exactly then
    whole events may go past this decoder. (Not at the very start, where a byte order mark may come; not after a CR,
    whose LF may; not while comments wait for their frame.)
    """

    __slots__ = (
        "_aside",
        "_bom",
        "_comments",
        "_data",
        "_event",
        "_has_field",
        "_is_between",
        "_lines",
        "_lines_of_data",
        "_max_aside_bytes",
        "_max_event_bytes",
        "_more_data",
        "_shortcut_bytes",
        "aside_dropped",
        "at_boundary",
        "comments",
        "empty_events",
        "fields_ignored",
        "over",
    )

    def __init__(self, max_line_bytes: int, max_event_bytes: int, max_aside_bytes: int = 65536) -> None:
        self._max_event_bytes = max_event_bytes
        self._max_aside_bytes = max_aside_bytes
        self._shortcut_bytes = min(max_line_bytes, max_event_bytes)
        self._bom = BomFilter()
        self._lines = LineBuffer(max_line_bytes)
        self._aside = bytearray()
        self._comments: deque[bytes] = deque(maxlen=MAX_COMMENTS)
        # The open event. Its first data line stays apart: there is seldom a second, and then nothing is copied.
        self._has_field = False
        self._event: str | None = None
        self._data = b""
        self._more_data = bytearray()
        self._lines_of_data = 0
        # Between two events: no partial line, no field seen.
        self._is_between = True
        self.at_boundary = False
        self.comments = 0
        self.empty_events = 0
        self.fields_ignored = 0
        self.aside_dropped = 0
        self.over: LimitExceeded | None = None

    @property
    def aside(self) -> bytes:
        """The lines that are no field, joined by LF, up to `max_aside_bytes`; those beyond count in `aside_dropped`."""
        return bytes(self._aside)

    def feed(self, data: bytes) -> list[Frame]:
        if self.over is not None:
            raise self.over
        frames: list[Frame] = []
        text = self._lines.unify(data if self._bom.settled else self._bom.feed(data))
        if not (self._is_between and text.endswith(b"\n\n") and self._by_event(text, frames)):
            try:
                self._feed(text, frames)
            except LimitExceeded as exceeded:
                self.over = exceeded
                if not frames:
                    raise
            self._is_between = not (self._has_field or self._lines.pending)
        self.at_boundary = self._is_between and self._bom.settled and not (self._comments or self._lines.after_cr)
        return frames

    def finish(self) -> list[Frame]:
        """What the end of input leaves: the open event, if it has data. An unterminated last line counts as a line."""
        if self.over is not None:
            raise self.over
        frames: list[Frame] = []
        self._by_line(self._bom.finish(), frames)
        last = self._lines.finish()
        if last is not None:
            self._line(last, frames)
        self._dispatch(frames, terminated=False)
        return frames

    def _feed(self, text: bytes, frames: list[Frame]) -> None:
        """The rest of an open event line by line, then the whole events at one go, then what is left line by line."""
        if not self._is_between:
            end = text.find(b"\n\n") + 2
            if end > 1:
                self._by_line(text[:end], frames)
                text = text[end:]
        if not (self._has_field or self._lines.pending):
            end = text.rfind(b"\n\n") + 2
            if end > 1 and self._by_event(text[:end], frames):
                text = text[end:]
        if text:
            self._by_line(text, frames)

    def _by_event(self, text: bytes, frames: list[Frame]) -> bool:
        """The shortcut: `text` is nothing but events of one data line each, written one way; else False, nothing done.

        The values are what stands between the separators if and only if no further LF stands in them. Three scans in C
        and one object per event cost a third of the way line by line.
        """
        field = b"data: " if text.startswith(b"data: ") else b"data:"
        if len(text) > self._shortcut_bytes or not text.startswith(field):
            return False
        values = text[len(field) : -2].split(b"\n\n" + field)
        if text.count(b"\n") != 2 * len(values) or b"" in values:
            return False
        if len(field) == 5 and b"\ndata: " in text:
            return False
        first = len(frames)
        frames += map(Frame, values)
        if self._comments:
            frames[first].comments = self._take_comments()
        return True

    def _by_line(self, text: bytes, frames: list[Frame]) -> None:
        for line in self._lines.split(text):
            self._line(line, frames)
        if self._lines.over is not None:
            raise self._lines.over

    def _line(self, line: bytes, frames: list[Frame]) -> None:
        if not line:
            self._dispatch(frames, terminated=True)
        elif line.startswith(b"data:"):
            self._data_line(line[6:] if line[5:6] == b" " else line[5:])
        elif line[0] == _COLON:
            self.comments += 1
            self._comments.append(line[:MAX_COMMENT_BYTES])
        else:
            self._other_line(line)

    def _other_line(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        if name == b"event":
            self._has_field = True
            self._event = value.removeprefix(b" ").decode("utf-8", "replace") or None
        elif name == b"data":
            self._data_line(b"")
        elif name in (b"id", b"retry"):
            self._has_field = True
            self.fields_ignored += 1
        else:
            self._put_aside(line)

    def _data_line(self, value: bytes) -> None:
        self._has_field = True
        self._lines_of_data += 1
        if self._lines_of_data == 1:
            self._data = value
        else:
            self._more_data += b"\n" + value
        size = len(self._data) + len(self._more_data)
        if size > self._max_event_bytes:
            raise LimitExceeded("event", self._max_event_bytes, size)

    def _put_aside(self, line: bytes) -> None:
        separator = b"\n" if self._aside else b""
        room = self._max_aside_bytes - len(self._aside) - len(separator)
        # The line that crosses the limit is kept as far as it goes: its beginning says most of what it is.
        if room > 0:
            self._aside += separator + line[:room]
        if len(line) > room:
            self.aside_dropped += 1

    def _dispatch(self, frames: list[Frame], *, terminated: bool) -> None:
        if not self._has_field:
            return
        data = self._data + self._more_data if self._more_data else self._data
        if data.strip(b"\n"):
            frames.append(Frame(data, self._event, self._take_comments(), self._lines_of_data, terminated))
        else:
            self.empty_events += 1
        self._has_field = False
        self._event = None
        self._data = b""
        self._more_data.clear()
        self._lines_of_data = 0

    def _take_comments(self) -> tuple[bytes, ...]:
        if not self._comments:
            return ()
        taken = tuple(self._comments)
        self._comments.clear()
        return taken
