"""Recordings: what a file may say, how errors are told, what is never written, and that the shipped set is sound."""

from __future__ import annotations

import base64
import errno
import json
from dataclasses import replace
from pathlib import Path

import pytest

from proxy.stores.recordings import (
    Read,
    Recording,
    RecordingError,
    dump_recording,
    find_recordings,
    load_recording,
    scrub_recording,
)

HEAD = {
    "recording": 1,
    "vendor": "openai",
    "name": "salam",
    "obtained": "composed",
    "basis": "a test",
    "odd": "a letter is cut",
    "at": "2026-11-30",
    "request": {"method": "POST", "path": "/v1/chat/completions", "body": {"model": "m", "stream": True}},
    "response": {"status": 200, "headers": [["Content-Type", "text/event-stream"]]},
    "end": "close",
}


def write(path: Path, *lines: object) -> Path:
    path.write_text(
        "".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines), encoding="utf-8"
    )
    return path


def test_a_file_is_read_as_it_is(tmp_path: Path) -> None:
    """Head, reads, times and bytes come back as written, header names in lower case."""
    half = base64.b64encode("سلام".encode()[:3]).decode()
    path = write(tmp_path / "salam.jsonl", HEAD, {"t": 0.01, "text": "data: ["}, {"t": 0.5, "b64": half})

    recording = load_recording(path)

    assert recording.key == "openai/salam"
    assert recording.headers == (("content-type", "text/event-stream"),)
    assert recording.is_event_stream
    assert recording.reads == (Read(0.01, b"data: ["), Read(0.5, b"\xd8\xb3\xd9"))
    assert recording.body == b"data: [\xd8\xb3\xd9"
    assert (recording.status, recording.end, recording.end_at) == (200, "close", 0.5)


def test_writing_and_reading_give_the_same_recording(tmp_path: Path) -> None:
    """Any bytes survive: half letters, all line breaks, nothing at all; text stays readable where it is text."""
    reads = (
        Read(0.0, b""),
        Read(0.001, "data: 你好\r".encode()),
        Read(0.002, b"\n\r\n"),
        Read(0.25, "\u2028\u2029\u0085\ufeff नमस्ते".encode()),
        Read(0.25, b"\xf0\x9f\x87"),
        Read(1.5, bytes(range(256))),
    )
    wanted = replace(
        load_recording(write(tmp_path / "a.jsonl", HEAD)), reads=reads, end="reset", end_at=2.0, expect={"text": "你好"}
    )
    path = tmp_path / "new" / "b.jsonl"

    dump_recording(wanted, path)

    written = path.read_text(encoding="utf-8")
    assert replace(load_recording(path), path=wanted.path) == wanted
    assert '"text": "data: 你好\\r"' in written
    assert len(written.splitlines()) == 1 + len(reads), "no editor may see a line break inside a line"


@pytest.mark.parametrize(
    ("lines", "line", "reason"),
    [
        ([], 1, "is empty"),
        (["{"], 1, "is not JSON"),
        ([[1]], 1, "not a JSON object"),
        ([{**HEAD, "recording": 2}], 1, '"recording": 1'),
        ([{key: HEAD[key] for key in HEAD if key not in ("odd", "end")}], 1, "lacks odd, end"),
        ([{**HEAD, "ods": ""}], 1, "unknown keys: ods"),
        ([{**HEAD, "end": "eof"}], 1, "close, reset, abort, hang"),
        ([{**HEAD, "obtained": "guessed"}], 1, "captured, simulated, composed"),
        ([{**HEAD, "response": {"status": "200"}}], 1, "response.status must be a number"),
        ([{**HEAD, "response": {"status": 200, "headers": {"a": "b"}}}], 1, "list of"),
        ([{**HEAD, "request": "POST"}], 1, "request must be an object"),
        ([{**HEAD, "end_at": 0.1}, {"t": 0.2, "text": ""}], 1, "end_at"),
        ([HEAD, {"t": 0, "text": ""}, {"t": -1, "text": ""}], 3, "t must be"),
        ([HEAD, {"t": 2, "text": ""}, {"t": 1, "text": ""}], 3, "t goes back from 2.0 to 1.0"),
        ([HEAD, {"t": 1}], 2, "either text or b64"),
        ([HEAD, {"t": 1, "text": "", "b64": ""}], 2, "either text or b64"),
        ([HEAD, {"t": 1, "b64": "§"}], 2, "cannot be told"),
        ([HEAD, {"t": 1, "text": "\ud83d"}], 2, "cannot be told"),
        ([HEAD, {"t": 1, "text": 5}], 2, "must be strings"),
        ([HEAD, {"t": 1, "text": "", "wait": 3}], 2, "unknown keys: wait"),
    ],
)
@pytest.mark.clause("R1")
def test_a_wrong_file_is_refused_with_its_place(tmp_path: Path, lines: list[object], line: int, reason: str) -> None:
    """File, line and reason are told, for whoever edits recordings by hand."""
    path = write(tmp_path / "wrong.jsonl", *lines)

    with pytest.raises(RecordingError) as caught:
        load_recording(path)

    assert (caught.value.file, caught.value.line) == (str(path), line)
    assert reason in caught.value.reason


def test_folders_are_searched_and_missing_paths_told(tmp_path: Path) -> None:
    """A folder stands for all below it in order; a path given twice counts once."""
    (tmp_path / "b").mkdir()
    second = write(tmp_path / "b" / "two.jsonl", {**HEAD, "name": "two"})
    write(tmp_path / "a.jsonl", {**HEAD, "name": "one"})

    assert [each.name for each in find_recordings([tmp_path, second])] == ["one", "two"]
    with pytest.raises(RecordingError, match="no such file"):
        find_recordings([tmp_path / "none"])


@pytest.mark.clause("L3")
def test_credential_headers_are_scrubbed(tmp_path: Path) -> None:
    """Keys and cookies in headers are replaced on writing, in both directions; the rest stays."""
    recording = replace(
        load_recording(write(tmp_path / "a.jsonl", HEAD)),
        request={"method": "POST", "headers": [["Authorization", "Bearer " + "k" * 30], ["accept", "*/*"]]},
        headers=(("set-cookie", "session=1"), ("x-request-id", "r-1")),
    )
    path = tmp_path / "b.jsonl"

    dump_recording(recording, path)

    back = load_recording(path)
    assert back.request["headers"] == [["Authorization", "***"], ["accept", "*/*"]]
    assert back.headers == (("set-cookie", "***"), ("x-request-id", "r-1"))
    assert scrub_recording(replace(recording, request={"headers": {"api-key": "k"}})).request == {
        "headers": {"api-key": "***"}
    }


@pytest.mark.parametrize(
    ("reads", "secrets"),
    [
        ((b'{"error":"Bearer abcdefghij0123456789"}',), ()),
        ((b"sk-proj-abcdefgh", b"ijklmnop0123456789"), ()),
        (("ключ: тайна-42".encode(),), ("тайна-42",)),
        ((base64.b64encode(b"my-own-key"),), ("my-own-key",)),
    ],
    ids=["bearer", "key cut between two reads", "known value", "known value as base64"],
)
@pytest.mark.clause("L3")
def test_a_body_with_a_credential_is_not_written(
    tmp_path: Path, reads: tuple[bytes, ...], secrets: tuple[str, ...]
) -> None:
    """Whoever takes the recording has to look: evidence is not edited; the reason does not repeat the secret."""
    recording = load_recording(write(tmp_path / "a.jsonl", HEAD))
    path = tmp_path / "b.jsonl"

    with pytest.raises(RecordingError, match="not written") as caught:
        dump_recording(replace(recording, reads=tuple(Read(0.0, data) for data in reads)), path, secrets)

    assert not path.exists()
    assert not any(secret in str(caught.value) for secret in ("abcdefghij", "0123456789", *secrets))


SHIPPED = find_recordings([Path(__file__).parents[3] / "recordings"])


@pytest.mark.clause("R1")
@pytest.mark.parametrize("recording", SHIPPED, ids=lambda each: each.key)
def test_shipped_recordings_say_what_they_are(recording: Recording, tmp_path: Path) -> None:
    """Each lies under its vendor and name, says what is odd and on what it is based, and survives being rewritten."""
    assert recording.path.as_posix().endswith(f"recordings/{recording.key}.jsonl")
    assert recording.odd
    assert recording.basis
    assert recording.at
    copy = tmp_path / "copy.jsonl"
    dump_recording(recording, copy)
    assert replace(load_recording(copy), path=recording.path) == recording


def test_shipped_recordings_have_names_of_their_own() -> None:
    """The simulator finds a recording by `vendor/name`."""
    keys = [each.key for each in SHIPPED]
    assert len(keys) == len(set(keys))
    streams = [each for each in SHIPPED if "/" not in each.name]
    assert len(streams) >= 26, "the streams, beside the error answers under errors/"


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk leaves what was there, and nothing beside it."""
    recording = load_recording(write(tmp_path / "a.jsonl", HEAD, {"t": 0.1, "text": "سلام"}))
    before = recording.path.read_bytes()

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("proxy.stores.whole_file.os.fsync", full)
    with pytest.raises(RecordingError, match=r"a\.jsonl: cannot be written: No space left on device"):
        dump_recording(replace(recording, odd="另一个"), recording.path)
    assert recording.path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [recording.path]
