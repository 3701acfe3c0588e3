"""The inbox's folder: every occurrence counted, the limits held, read while others write (contract E)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from proxy.canon.verdict import Observation, Phase
from proxy.stores import inbox_folder as module
from proxy.stores.inbox import Inbox
from proxy.stores.inbox_folder import read_inbox, remove, times_seen
from proxy.stores.recordings import RecordingError

pytestmark = pytest.mark.clause("E")

NOON = 1_795_996_800.0


def said(text: str, vendor: str = "openai") -> Observation:
    body = json.dumps({"error": text}, ensure_ascii=False).encode()
    return Observation(vendor, Phase.HEAD, 418, {"content-type": "application/json"}, body)


def keep(folder: Path, texts: Sequence[str], at: float = NOON, **limits: int) -> None:
    """These answers, a second apart."""
    inbox = Inbox(folder, [], **limits)
    for number, text in enumerate(texts):
        inbox.keep(said(text), upstream="main", trace_id="t", at=at + number)
    inbox.close()


def told(folder: Path) -> dict[str, int]:
    """How often each answer came, by what it said."""
    return {json.loads(one.recording.body)["error"]: one.count for one in read_inbox(folder)}


def test_every_answer_is_counted(tmp_path: Path) -> None:
    """Over restarts too; with its first day and its last moment, what came most often first."""
    keep(tmp_path, ["خطا", "错误", "错误"])
    keep(tmp_path, ["错误", "गलती"], at=NOON + 90_000)
    assert told(tmp_path) == {"错误": 3, "خطا": 1, "गलती": 1}
    first = read_inbox(tmp_path)[0]
    assert (first.first, first.last) == ("2026-11-30", datetime.fromtimestamp(NOON + 90_000, UTC))


def test_several_processes_count_without_losing_one(tmp_path: Path) -> None:
    """Four workers meet the same answer forty times each, and one of its own."""
    code = (
        "import sys; from pathlib import Path; from tests.unit.stores import test_inbox_folder as t\n"
        "t.keep(Path(sys.argv[1]), ['同じ'] * 40 + [sys.argv[2]])"
    )
    root = Path(__file__).resolve().parents[3]
    names = ["یک", "two", "три", "四"]
    workers = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path), name], cwd=root) for name in names]
    assert [worker.wait(50) for worker in workers] == [0] * 4
    assert told(tmp_path) == {"同じ": 160, **dict.fromkeys(names, 1)}


def test_counts_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to the limit they are exact; then they stand still."""
    monkeypatch.setattr(module, "LIMIT_COUNT", 3)
    for times, count in ((2, 2), (1, 3), (1, 3)):
        keep(tmp_path, ["بس"] * times)
        assert told(tmp_path) == {"بس": count}


def test_in_a_full_inbox_what_came_once_and_longest_ago_makes_room(tmp_path: Path) -> None:
    """A flood of answers that are never the same drives out itself, not what comes again. It is told once."""
    with capture_logs() as logs:
        keep(
            tmp_path,
            ["هر روز", "हर दिन", "old", "हर दिन", "هر روز", *(f"flood {letter}" for letter in "abcde")],
            limit_files=4,
        )
    assert told(tmp_path) == {"هر روز": 2, "हर दिन": 2, "flood d": 1, "flood e": 1}
    assert [line["event"] for line in logs if line["log_level"] == "warning"] == ["the inbox is full"]
    assert len(list(tmp_path.glob("*/*"))) == 8


def test_where_all_came_again_the_one_unseen_for_longest_makes_room(tmp_path: Path) -> None:
    """Nothing stays for ever because it was once frequent; exactly the limit is no overflow."""
    keep(tmp_path, ["a", "a", "b", "b", "a"], limit_files=2)
    assert told(tmp_path) == {"a": 3, "b": 2}
    keep(tmp_path, ["c"], at=NOON + 60, limit_files=2)
    assert told(tmp_path) == {"a": 3, "c": 1}


def test_the_inbox_is_bounded_in_bytes(tmp_path: Path) -> None:
    """As many as needed go for one large answer."""
    keep(tmp_path, ["a", "b", "c"])
    size = sum(path.stat().st_size for path in tmp_path.glob("*/*"))
    keep(tmp_path, ["a", "b", "c", "x" * 400], at=NOON + 60, limit_bytes=size + 3 + 500)
    assert sorted(told(tmp_path)) == ["b", "c", "x" * 400]
    assert sum(path.stat().st_size for path in tmp_path.glob("*/*")) <= size + 3 + 500


def test_what_is_left_of_dead_processes_goes(tmp_path: Path) -> None:
    """A count without its answer, and a file that was begun an hour ago; one begun just now stays."""
    keep(tmp_path, ["a"])
    folder = tmp_path / "openai"
    for name in ("orphan.count", ".old.jsonl.1", ".new.jsonl.2"):
        (folder / name).write_bytes(b"..")
    os.utime(folder / ".old.jsonl.1", (NOON - 9e6, NOON - 9e6))
    keep(tmp_path, ["b"])
    assert {path.name for path in folder.iterdir() if "418" not in path.name} == {".new.jsonl.2"}


def test_an_answer_is_removed_with_its_count_and_may_come_anew(tmp_path: Path) -> None:
    """Removing what is gone already is no failure."""
    keep(tmp_path, ["a", "a", "b"])
    path = next(one.recording.path for one in read_inbox(tmp_path) if one.count == 2)
    remove(path)
    remove(path)
    assert told(tmp_path) == {"b": 1}
    keep(tmp_path, ["a"])
    assert told(tmp_path) == {"a": 1, "b": 1}


def test_reading_leaves_out_what_goes_meanwhile_and_refuses_what_is_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that is not there holds nothing; a file that is no recording is told with its place."""
    assert read_inbox(tmp_path / "none") == []
    keep(tmp_path, ["a", "b"])
    gone, stays = tmp_path.glob("*/*.jsonl")
    monkeypatch.setattr(Path, "glob", lambda *_: [gone, stays])
    gone.unlink()
    assert len(read_inbox(tmp_path)) == 1
    gone.write_text("no recording")
    with pytest.raises(RecordingError, match=r"jsonl:1: is not JSON"):
        read_inbox(tmp_path)
    assert times_seen(tmp_path / "none.jsonl") == 1


@pytest.mark.parametrize("kind", ["pipe", "folder", "long"])
def test_what_the_proxy_did_not_write_is_refused_unread(tmp_path: Path, kind: str) -> None:
    """A pipe would be waited for, for ever."""
    keep(tmp_path, ["a"])
    path = tmp_path / "openai" / "غریبه.jsonl"
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case _:
            path.write_bytes(b" " * (1024 * 1024 + 1))
    with pytest.raises(RecordingError, match=r"غریبه\.jsonl: is none that the proxy wrote"):
        read_inbox(tmp_path)
