"""The journal's lines and locks."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from proxy.stores.segments import (
    CLOSE,
    OPEN,
    Line,
    encode_header,
    encode_line,
    hold_lock,
    is_alive,
    list_locks,
    list_segments,
    read_lines,
    segment_of,
    take_over,
    writer_id,
)


def lines_of(blob: bytes, offset: int = 0, limit: int = 1 << 20) -> list[Line]:
    return list(read_lines(lambda size, place: blob[place : place + size], offset, limit))


def test_what_was_written_is_read_with_its_places() -> None:
    """Each line comes back with its kind and the offset behind it, from any line on."""
    first, second = encode_line(OPEN, b'{"a":1}'), encode_line(CLOSE, '[{},{"b":"سلام"}]'.encode())
    assert lines_of(first + second) == [
        Line(OPEN, b'{"a":1}', len(first)),
        Line(CLOSE, '[{},{"b":"سلام"}]'.encode(), len(first + second)),
    ]
    assert lines_of(first + second, offset=len(first)) == lines_of(first + second)[1:]


@pytest.mark.clause("L1")
def test_a_last_line_torn_at_any_byte_is_left_alone() -> None:
    """Whatever of the last line is missing, all lines before it are read and it is not."""
    whole, torn = encode_line(OPEN, b'{"a":1}'), encode_line(CLOSE, b'[{"a":1},{"b":2}]')
    for size in range(len(torn)):
        assert [line.payload for line in lines_of(whole + torn[:size])] == [b'{"a":1}'], size
    assert len(lines_of(whole + torn)) == 2


@pytest.mark.clause("L1")
def test_a_line_with_any_byte_changed_is_recognised_and_those_around_it_are_kept() -> None:
    """A wrong byte anywhere in a line costs that line (two, if it was its line feed) and no other."""
    around, middle = encode_line(OPEN, b'{"a":1}'), encode_line(CLOSE, b'[{"a":1},{"b":2}]')
    for place in range(len(middle)):
        for wrong in (middle[place] ^ 1, 0):
            blob = around + middle[:place] + bytes([wrong]) + middle[place + 1 :] + around + around
            kinds = [line.kind for line in lines_of(blob)]
            assert kinds.count(CLOSE) == 0
            assert kinds[0] == kinds[-1] == OPEN


def test_a_line_longer_than_one_read_is_read_whole() -> None:
    """The size of a read is no limit on a line."""
    long = encode_line(OPEN, b'"' + b"x" * 600_000 + b'"')
    assert [len(line.payload) for line in lines_of(long + encode_line(OPEN, b"{}"))] == [600_002, 2]


def test_reading_stops_near_the_limit_and_goes_on_from_there() -> None:
    """A batch is bounded; the next begins where it ended."""
    blob = encode_line(OPEN, b"{}") * 100
    seen, offset = 0, 0
    while lines := lines_of(blob, offset, limit=1):
        seen, offset = seen + len(lines), lines[-1].end
    assert (seen, offset) == (100, len(blob))


@pytest.mark.clause("L1")
def test_a_held_lock_is_alive_and_cannot_be_taken_and_a_released_one_can(tmp_path: Path) -> None:
    """Alive while held, dead when released, and taken over by one only."""
    assert is_alive(tmp_path, "w") is None
    held = hold_lock(tmp_path, "w")
    assert is_alive(tmp_path, "w") is True
    assert take_over(tmp_path, "w") is None
    os.close(held)
    assert is_alive(tmp_path, "w") is False
    taken = take_over(tmp_path, "w")
    assert taken is not None
    assert take_over(tmp_path, "w") is None
    os.close(taken)
    assert list_locks(tmp_path) == ["w"]


def test_a_lock_that_was_cleared_away_while_waiting_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who opens a lock file just before its owner removes it gets nothing."""
    os.close(hold_lock(tmp_path, "w"))
    really_open = os.open

    def open_then_lose(path: Path, flags: int, mode: int = 0o777) -> int:
        descriptor = really_open(path, flags, mode)
        (tmp_path / "w.lock").unlink()
        return descriptor

    monkeypatch.setattr(os, "open", open_then_lose)
    assert take_over(tmp_path, "w") is None


def test_segments_without_a_lock_file_belong_to_a_dead_writer(tmp_path: Path) -> None:
    """A restored copy of a journal can be taken over; its lock file is made on the way."""
    segment_of(tmp_path, "w", 1).path.write_bytes(encode_header("w", 1))
    taken = take_over(tmp_path, "w")
    assert taken is not None
    assert is_alive(tmp_path, "w") is True
    os.close(taken)


def test_segments_are_listed_oldest_first_and_other_files_are_not(tmp_path: Path) -> None:
    """Names decide: writer, then number."""
    for name in ("b.00000001.journal", "a.00000010.journal", "a.00000002.journal", "a.journal", "a.00000001.txt"):
        (tmp_path / name).touch()
    assert [segment.name for segment in list_segments(tmp_path)] == [
        "a.00000002.journal",
        "a.00000010.journal",
        "b.00000001.journal",
    ]


def test_a_writer_is_a_new_name_each_time_and_safe_in_a_file_name() -> None:
    """Instance and worker stand in it, whatever the host is called; two boots differ."""
    name = writer_id("host/../é a.b", "3")
    assert name.startswith("host_a_b-3-")
    assert name != writer_id("host/../é a.b", "3")
