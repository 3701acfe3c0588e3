"""Answers that no rule knows in, recordings without secrets and without anything of the request out (contract E)."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from proxy.canon.verdict import Observation, Phase
from proxy.stores import inbox as module
from proxy.stores.inbox import MAX_BODY, Inbox
from proxy.stores.inbox_body import clean_body
from proxy.stores.recordings import Recording, find_recordings

pytestmark = pytest.mark.clause("E")

KEY = "our-own-key-with-no-known-form"
NOON = 1_795_996_800.0
HEADERS = {"content-type": "application/json"}
Keep = Callable[..., list[Recording]]


@pytest.fixture
def keep(tmp_path: Path) -> Keep:
    """Keeps these answers, one after the other, and gives what then lies in the folder."""

    def kept(*answers: Observation, limit_files: int = 500, at: float = NOON) -> list[Recording]:
        inbox = Inbox(tmp_path / "inbox", [KEY], limit_files)
        for number, answer in enumerate(answers):
            inbox.keep(answer, upstream="main", trace_id=f"trace-{number}", at=at + number)
        inbox.close()
        return find_recordings([tmp_path / "inbox"]) if (tmp_path / "inbox").exists() else []

    return kept


def head(body: object, status: int = 418, **headers: str) -> Observation:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Observation("openai", Phase.HEAD, status, HEADERS | named, raw)


def test_an_answer_becomes_a_recording(keep: Keep, tmp_path: Path) -> None:
    """Everything that a rule can be written from, and where it came from; the request is a method and a path."""
    body = {"error": {"code": "茶壶", "message": "ये चायदानी है 🫖"}}
    (kept,) = keep(head(body, retry_after="7", x_ratelimit_limit="9", set_cookie="a=b", server="s", x_request_id="r1"))
    assert kept.path.parent == tmp_path / "inbox" / "openai"
    assert kept.path.name == f"{kept.name}.jsonl"
    assert (kept.vendor, kept.status, kept.obtained, kept.end) == ("openai", 418, "captured", "close")
    assert (kept.odd, kept.at) == ("no rule knows this answer", "2026-11-30")
    assert kept.basis == "upstream main, 2026-11-30T00:00:00+00:00, trace trace-0"
    assert kept.request == {"method": "POST", "path": "/chat/completions"}
    assert dict(kept.headers) == {**HEADERS, "retry-after": "7", "x-ratelimit-limit": "9"}
    assert json.loads(kept.body) == body


def test_what_a_test_server_sent_is_not_called_captured(keep: Keep) -> None:
    """The simulator says so in a header; a rule must not claim more."""
    (kept,) = keep(head({"error": "?"}, x_sluice_simulated="true"))
    assert kept.obtained == "simulated"


def test_no_secret_is_kept(keep: Keep) -> None:
    """Our own key to the letter, also in base64 and in a header; what looks like a key; addresses."""
    said = f"{KEY} and sk-live-0123456789abcdefghij at https://internal.example.com/v1 from 10.1.2.3"
    (kept,) = keep(head({"error": said, "b64": "b3VyLW93bi1rZXktd2l0aC1uby1rbm93bi1mb3Jt"}, retry_after=KEY))
    text = kept.path.read_text()
    assert json.loads(kept.body) == {"error": "[key] and [key] at [url] from [address]", "b64": "[key]"}
    assert KEY not in text
    assert "b3VyLW93" not in text


@pytest.mark.parametrize(
    "body",
    [
        b'{"detail":[{"loc":["body","messages"],"msg":"Bad","input":{"role":"user","content":"PROMPT"}}]}',
        b'{"error":"Bad","messages":[{"role":"user","content":"PROMPT"}]}',
        b"{\"error\":{\"message\":\"Bad body: {'messages': [{'content': 'PROMPT'}]}\"}}",
        b'{"error":{"message":"Bad body: {\\"messages\\": [{\\"content\\": \\"PROMPT\\"}]}"}}',
        b'{"error":"Bad","request":{"prompt":"PROMPT","messages":[{"content":"PRO',
        b'data: {"error":"Bad","prompt":"PROMPT"}\n\n',
        b'{\n "error": "Bad",\n "input":\n  "PROMPT"',
        b'{"error":"Bad","choices":[{"message":{"content":"PROMPT"}}]}',
    ],
)
def test_nothing_of_the_request_or_of_an_answer_is_kept(keep: Keep, body: bytes) -> None:
    """Validators quote the messages: as JSON, as a repr inside a message, cut off in the middle."""
    (kept,) = keep(head(body))
    assert b"Bad" in kept.body
    assert b"PRO" not in kept.body


def test_a_body_is_bounded_at_a_whole_character(keep: Keep) -> None:
    """A page of a megabyte costs 16 KiB, and no letter is cut."""
    (kept,) = keep(head(b"<html>" + "خطا ".encode() * 200_000))
    assert MAX_BODY - 8 < len(kept.body) <= MAX_BODY
    assert kept.body.decode().startswith("<html>خطا خطا")


def test_the_same_answer_is_kept_once_and_shows_when_it_came_last(keep: Keep) -> None:
    """Ids and moments make no new answer; another code, status or phase does."""
    body = {"error": {"code": "E17", "id": "req_0123456789abcdef", "at": "2026-11-30T10:11:12Z"}}
    again = {"error": {"code": "E17", "id": "req_fedcba9876543210", "at": "2026-11-30T23:59:59Z"}}
    (kept,) = keep(head(body), head(again), at=NOON)
    assert (kept.basis[-7:], os.stat(kept.path).st_mtime) == ("trace-0", NOON + 1)
    assert len(keep(head({"error": {**body["error"], "code": "E18"}}), head(body, 419), at=NOON + 9)) == 3
    (same,) = (one for one in keep(head(again), at=NOON + 99) if one.path == kept.path)
    assert os.stat(same.path).st_mtime == NOON + 99


def test_an_event_is_kept_as_it_stood_in_its_stream(keep: Keep) -> None:
    """With its name and its comments; a line of another framing is a line; an answer told by its JSON alone has it."""
    headers = {"content-type": "text/event-stream"}
    event = Observation(
        "qwen_compat", Phase.MID, 200, headers, b'{"oops":1}', {"oops": 1}, None, "error", ("HTTP_STATUS/599",)
    )
    line = Observation("openai", Phase.FIRST, 200, {"content-type": "application/x-ndjson"}, b'{"oops":2}')
    told = Observation("openai", Phase.END, 200, headers, b"", {"oops": 3}, "weird")
    kept = {str(one.expect["phase"]): one for one in keep(event, line, told)}
    assert kept["mid"].body == b': HTTP_STATUS/599\nevent: error\ndata: {"oops":1}\n\n'
    assert kept["first"].body == b'{"oops":2}\n'
    assert kept["end"].body == b'{"oops":3}'
    assert kept["mid"].path.name.startswith("200-mid-")


def test_a_disk_that_refuses_is_told_once_and_nothing_fails(tmp_path: Path) -> None:
    """A file lies where the folder should be: no exception, one warning."""
    (tmp_path / "inbox").write_text("in the way")
    inbox = Inbox(tmp_path / "inbox", [])
    with capture_logs() as logs:
        for letter in "abc":
            inbox.keep(head({"error": letter}), upstream="main", trace_id="t", at=NOON)
        inbox.close()
        inbox.keep(head({"error": "too late"}), upstream="main", trace_id="t", at=NOON)
    assert [line["event"] for line in logs] == ["an answer that no rule knows could not be kept"]
    assert (tmp_path / "inbox").read_text() == "in the way"


def test_answers_that_come_too_fast_are_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits for the disk is bounded; nobody waits with it."""
    monkeypatch.setattr(module, "_MAX_WAITING", 0)
    inbox = Inbox(tmp_path / "inbox", [])
    with capture_logs() as logs:
        inbox.keep(head({"error": "a"}), upstream="main", trace_id="t", at=NOON)
    inbox.close()
    assert [line["event"] for line in logs] == ["answers come faster than they can be kept"]
    assert not (tmp_path / "inbox").exists()


@pytest.mark.parametrize(
    ("body", "cleaned"),
    [
        (b"", b""),
        (b"\xff\xfe teapot", "\ufffd\ufffd teapot".encode()),
        (b'{"a": "\\ud83d"}', b'{"a":"?"}'),
        (b"[" * 100_000, b"[" * 64),
        (b'{"content": null, "input": [], "n": 1e400}', b'{"content":null,"input":[],"n":null}'),
    ],
)
def test_any_bytes_become_something_that_can_be_kept(body: bytes, cleaned: bytes) -> None:
    """Bad UTF-8, half surrogates, depth without an end, numbers that no JSON holds."""
    assert clean_body(body, 64) == cleaned
