"""`sluice probe` against a vendor on loopback: plan, recordings, proposals, drift, exit codes (contract C3, R1, R3)."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from proxy.learning.asking import MAX_REFUSAL_BYTES
from proxy.learning.catalogue import BAIT
from proxy.learning.plan import SPARE
from proxy.learning.probing import BURST_AT_ONCE, ENOUGH_LIMITS
from proxy.stores.playback import Hit
from proxy.stores.recordings import End, Recording, load_recording
from proxy.stores.rules import load_rules
from tests.support.probed import KEY, MODEL, THREE_LINES, Said, cause_of, probe, probed_vendor, write_project
from tests.support.upstream import find_refusing_port

pytestmark = pytest.mark.clause("C3", "R1")


def files(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Every file below, with its moment and bytes."""
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


async def recorded(path: Path) -> Recording:
    return await asyncio.to_thread(load_recording, path)


def report(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    return told


def outcomes(told: Mapping[str, Any]) -> dict[tuple[str, int], dict[str, Any]]:
    return {(one["probe"], one["number"]): one for one in told["outcomes"]}


async def test_a_new_vendor_is_learned_and_a_second_probe_changes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Three lines and one probe: every refusal gets its class; then no file is touched, and the diff is empty."""
    async with probed_vendor() as vendor:
        config = write_project(tmp_path, vendor.base_url)
        # What those two hear depends on the moment at which we end it.
        words = ("--allow-moderation", "--json", "--skip", "deadline,hang-up")
        assert await probe(config, *words) == 1
        first = report(capsys)
        assert (tmp_path / "rules" / "acme.yaml").read_text() == THREE_LINES
        assert await probe(config, *words, "--write") == 0
        written = report(capsys)
        before = files(tmp_path)
        assert await probe(config, *words, "--write") == 0
        again = report(capsys)
        assert files(tmp_path) == before

    assert first["wrong"] > 0
    assert first["proposal"]["diff"] == written["proposal"]["diff"]
    assert (written["written"], written["wrong"]) == (True, 0)
    assert (again["written"], again["proposal"]["diff"], again["recordings"]["new"]) == (False, "", [])
    places = [{one["recording"] for one in each["outcomes"]} for each in (first, written, again)]
    assert places[0] == places[1] == places[2]
    told = {(one["probe"], one["error_class"], one["code"]) for one in again["outcomes"] if one["rule"]}
    assert {
        ("unknown-model", "model_unavailable", "model_not_found"),
        ("broken-json", "invalid_request", "invalid_request"),
        ("missing-field", "invalid_request", "invalid_request"),
        ("wrong-type", "invalid_request", "invalid_request"),
        ("too-long", "invalid_request", "context_length_exceeded"),
        ("moderation", "content_blocked", "content_filter"),
        ("no-key", "auth_failure", "invalid_credential"),
        ("wrong-key", "auth_failure", "invalid_credential"),
    } <= told
    rules = (await asyncio.to_thread(load_rules, tmp_path / "rules")).profile("acme").rules
    assert {rule.proof for rule in rules if rule.file.endswith("acme.yaml")} == {"simulated"}


async def test_each_exchange_becomes_a_recording_that_says_what_it_must_mean(tmp_path: Path) -> None:
    """Simulated where the answer says so, with its cuts, and with the words that it may quote."""
    async with probed_vendor() as vendor:
        await probe(write_project(tmp_path, vendor.base_url))
    folder = tmp_path / "recordings" / "acme" / "probes"
    stream = await recorded(folder / "probe-stream-1.jsonl")
    model = await recorded(folder / "probe-unknown-model-1.jsonl")
    assert (stream.name, stream.obtained, stream.end, stream.asks_stream) == (
        "probe-stream-1",
        "simulated",
        "close",
        True,
    )
    assert any(_ends_inside_a_letter(read.data) for read in stream.reads)
    assert b"".join(read.data for read in stream.reads).endswith(b"data: [DONE]\n\n")
    assert model.expect == {"class": ["model_unavailable"]}
    assert model.request["quoted"] == ["no-such-model-2019"]
    assert (model.status, model.asks_stream) == (500, False)
    long = json.dumps((await recorded(folder / "probe-too-long-1.jsonl")).request)
    assert "characters)" in long
    assert len(long) < 2000


def _ends_inside_a_letter(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"
    return False


@pytest.mark.parametrize("json_too", [[], ["--json"]])
async def test_a_plan_is_shown_and_nothing_is_sent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], json_too: list[str]
) -> None:
    """Number of requests, tokens, and what it costs at most."""
    async with probed_vendor() as vendor:
        config = write_project(tmp_path, vendor.base_url)
        assert await probe(config, "--plan", "--price", "2/8", *json_too, yes=False) == 0
        assert vendor.hits == []
    out = capsys.readouterr().out
    if json_too:
        plan = json.loads(out)["plan"]
        assert plan["price"] == {"input": 2.0, "output": 8.0, "is_given": True}
        assert plan["requests"] == sum(one["requests"] for one in plan["probes"])
        assert 0 < plan["cost"]["expected"] < plan["cost"]["most"]
    else:
        assert "at 2/8 for a million tokens (as given)" in out
    assert not (tmp_path / "recordings").exists()


async def test_without_a_terminal_nothing_is_sent_unless_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 2, with what to do; the plan was shown."""
    async with probed_vendor() as vendor:
        assert await probe(write_project(tmp_path, vendor.base_url), yes=False) == 2
        assert vendor.hits == []
    said = capsys.readouterr()
    assert "say --yes" in said.err
    assert "requests at most" in said.out


async def test_only_and_skip_pick_probes(tmp_path: Path) -> None:
    """The plain answer is always asked: nothing else says whether the key works."""
    async with probed_vendor() as vendor:
        config = write_project(tmp_path, vendor.base_url)
        assert await probe(config, "--only", "no-key,deadline", "--skip", "deadline") == 1
        assert [cause_of(hit) for hit in vendor.hits] == [None, "no-key", "no-key", "no-key", None]
        assert "stream" not in {json.loads(hit.body)["model"] for hit in vendor.hits}


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--only", "strems"], "there is no probe 'strems'; valid are plain, stream"),
        (["--only", "burst"], "needs --allow-burst N"),
        (["--price", "cheap"], "is no price: write dollars for a million tokens in and out, as 2.50/10"),
        (["--watch", "--write"], "--watch writes nothing"),
        (["--moderation-text", "/dev/null"], "needs --allow-moderation"),
        (["--allow-moderation", "--moderation-text", "/dev/null"], "the file holds no text"),
        (["--allow-burst", "100000"], "2<=x<=1000"),
    ],
)
async def test_what_cannot_be_done_exits_2_and_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], reason: str
) -> None:
    """Before anything is sent."""
    async with probed_vendor() as vendor:
        assert await probe(write_project(tmp_path, vendor.base_url), *words) == 2
        assert vendor.hits == []
    assert reason in capsys.readouterr().err


# ---- secrets ---------------------------------------------------------------------------------------------------------


@pytest.mark.clause("L3")
async def test_no_key_and_no_account_is_written_or_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Ours, its parts, those that were invented, and whose account it is, also across two reads."""
    leak = {"error": {"code": "K-17", "message": f"expected {KEY} or {KEY[:7]}****{KEY[-4:]}, of org-a1b2c3d4e5"}}
    middle = json.dumps(leak).index(KEY) + 9
    seen: list[str] = []

    def decide(hit: Hit) -> Said | None:
        given = hit.headers.get("authorization", "").removeprefix("Bearer ")
        if given in ("", KEY):
            return None
        seen.append(given)
        return Said(403, {**leak, "given": given}, {"x-request-id": "req-77", "set-cookie": "a=b"}, (middle,))

    async with probed_vendor() as vendor:
        vendor.decide = decide
        config = write_project(tmp_path, vendor.base_url)
        await probe(config, "--write")
    written = {name: data for name, (_, data) in files(tmp_path).items() if name != config.name}
    everything = b"".join(written.values()).decode() + "".join(capsys.readouterr())
    assert len(seen) == 3
    for secret in (KEY, KEY[8:], KEY[:7] + "****", KEY[-4:] + ",", "a1b2c3d4e5", "req-77", "a=b", *seen):
        assert secret not in everything
    recording = await recorded(tmp_path / "recordings" / "acme" / "probes" / "probe-wrong-key-1.jsonl")
    assert json.loads(recording.body)["error"]["code"] == "K-17"
    assert len(recording.reads) == 2


# ---- manners ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (Said(401, {"error": {"code": "invalid_api_key", "message": "no"}}), "refuses the configured key"),
        (Said(404, {"error": {"code": "model_not_found", "message": "no"}}), "name another with --model"),
        (Said(500, {"error": {"code": "zzz", "message": "no"}}), "a healthy request was not answered: 500 zzz no"),
        (Said(429, {"error": {"message": "slow"}}, {"retry-after": "3600"}), "is limited for 3600 seconds"),
    ],
)
async def test_nothing_is_learned_where_nothing_works(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], said: Said, reason: str
) -> None:
    """A vendor that does not answer a healthy question would teach that everything is one error."""
    async with probed_vendor() as vendor:
        vendor.decide = lambda _hit: said
        config = write_project(tmp_path, vendor.base_url)
        assert await probe(config, "--write") == 2
        assert len(vendor.hits) == 1
    assert reason in capsys.readouterr().err
    assert (tmp_path / "rules" / "acme.yaml").read_text() == THREE_LINES
    assert not (tmp_path / "recordings").exists()


async def test_a_plan_needs_no_key_and_is_the_same_with_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A variable that is not set makes no probe of the keys go missing."""
    plans: list[object] = []
    for key in (KEY, "${A_KEY_THAT_NOBODY_HAS_SET}"):
        folder = tmp_path / str(len(plans))
        folder.mkdir()
        config = write_project(folder, "http://127.0.0.1:1/v1", key=key)
        assert await probe(config, "--plan", "--json", yes=False) == 0
        plans.append(report(capsys)["plan"])
    assert plans[0] == plans[1]


async def test_a_vendor_that_is_not_there_exits_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the reason, and no recording."""
    assert await probe(write_project(tmp_path, f"http://127.0.0.1:{find_refusing_port()}/v1")) == 2
    assert "the vendor gave no answer: connect_failed" in capsys.readouterr().err
    assert not (tmp_path / "recordings").exists()


@pytest.mark.parametrize("end", ["close", "abort", "reset"])
async def test_how_the_vendor_ended_a_stream_is_recorded(tmp_path: Path, end: End) -> None:
    """A proper end, a connection closed without it, a connection broken."""
    async with probed_vendor() as vendor:
        vendor.end = end
        await probe(write_project(tmp_path, vendor.base_url), "--only", "stream")
    kept = await recorded(tmp_path / "recordings" / "acme" / "probes" / "probe-stream-1.jsonl")
    assert kept.end == end


async def test_a_limit_is_not_taken_for_the_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The vendor is limited once when a wrong model is asked for: it is asked again, and that answer counts."""
    limited: list[Hit] = []

    def decide(hit: Hit) -> Said | None:
        if cause_of(hit) == "unknown-model" and not limited:
            limited.append(hit)
            return Said(429, {"error": {"message": "Too many requests, rate limit reached"}}, {"retry-after": "1"})
        return None

    async with probed_vendor() as vendor:
        vendor.decide = decide
        await probe(write_project(tmp_path, vendor.base_url), "--only", "unknown-model", "--json")
    one = outcomes(report(capsys))["unknown-model", 1]
    assert (len(limited), one["status"], one["vendor_code"]) == (1, 500, "M-40")


async def test_a_vendor_that_refuses_everything_by_now_is_not_believed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It bans the account at the third mistake: no rule is made of the ban, and what was learned before is kept."""
    ban = Said(403, {"error": {"message": "The gate is closed to you."}})
    mistakes: list[str] = []

    def decide(hit: Hit) -> Said | None:
        if (cause := cause_of(hit)) is not None:
            mistakes.append(cause)
        return ban if mistakes.count("wrong-type") > 1 else None

    async with probed_vendor() as vendor:
        vendor.decide = decide
        config = write_project(tmp_path, vendor.base_url)
        assert await probe(config, "--only", "unknown-model,wrong-type", "--write") == 2
    said = capsys.readouterr()
    assert "after wrong-type a healthy request was refused too" in said.err
    written = (tmp_path / "rules" / "acme.yaml").read_text()
    assert "M-40" in written and "gate" not in written
    assert not any("wrong-type" in name for name in files(tmp_path))


async def test_limits_are_asked_about_so_often_and_no_more(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each limited ask costs two spare requests: one that is healthy, and the same again."""
    limit = Said(429, {"error": {"message": "Too many requests"}}, {"retry-after": "0"})
    limited: set[bytes] = set()

    def decide(hit: Hit) -> Said | None:
        if cause_of(hit) is None or hit.body in limited:
            return None
        limited.add(hit.body)
        return limit

    async with probed_vendor() as vendor:
        vendor.decide = decide
        names = "unknown-model,broken-json,missing-field,wrong-type"
        assert await probe(write_project(tmp_path, vendor.base_url), "--only", names) == 2
        assert len(vendor.hits) == 1 + SPARE // 2 * 3 + 1 + 1  # and a healthy one behind the probe that was done
    assert f"limits answered more than {SPARE} requests" in capsys.readouterr().err


async def test_what_was_heard_before_the_account_was_limited_is_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 2, for not all was asked; nothing of the limit is taken for an answer."""
    limit = Said(429, {"error": {"message": "Too many requests"}}, {"retry-after": "3600"})
    async with probed_vendor() as vendor:
        vendor.decide = lambda _hit: limit if len(vendor.hits) > 3 else None
        assert await probe(write_project(tmp_path, vendor.base_url), "--only", "unknown-model,wrong-type") == 2
        assert len(vendor.hits) == 5  # the limit, and whether it is one
    assert "the account is limited for 3600 seconds; try again later" in capsys.readouterr().err
    names = {Path(name).name for name in files(tmp_path / "recordings")}
    assert names == {"probe-plain-1.jsonl", "probe-unknown-model-1.jsonl", "probe-unknown-model-2.jsonl"}


async def test_a_burst_is_bounded_and_ends_with_the_first_limits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A few refusals are enough, sixteen requests at a time the most."""

    def decide(hit: Hit) -> Said | None:
        return Said(418, {"error": {"code": "R-1", "message": "یواش‌تر"}}) if len(vendor.hits) > 12 else None

    async with probed_vendor() as vendor:
        vendor.decide = decide
        config = write_project(tmp_path, vendor.base_url)
        assert await probe(config, "--only", "burst", "--allow-burst", "300", "--json", "--write") == 0
        assert 12 < len(vendor.hits) <= 12 + ENOUGH_LIMITS + BURST_AT_ONCE
    told = report(capsys)
    plain, *limits = [(one["wanted"], one["error_class"]) for one in told["outcomes"]]
    assert plain == (None, None)
    assert limits == [("rate_limited", "rate_limited")] * ENOUGH_LIMITS
    assert [draft["then"]["code"] for draft in told["proposal"]["rules"]] == ["rate_limited"]


async def test_an_overload_is_not_called_a_rate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What a vendor says at its end may be said to anybody."""
    overload = Said(503, {"error": {"code": "O-1", "message": "Zug überfüllt"}})
    async with probed_vendor() as vendor:
        vendor.decide = lambda _hit: overload if len(vendor.hits) > 3 else None
        config = write_project(tmp_path, vendor.base_url)
        assert await probe(config, "--only", "burst", "--allow-burst", "30", "--json") == 0
    told = report(capsys)
    assert {(one["wanted"], one["judgement"]) for one in told["outcomes"][1:]} == {(None, "unsure")}
    assert told["proposal"]["rules"] == []


async def test_what_we_end_is_closed_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A deadline of ours is an upstream_timeout; a hang-up after the first words closes the connection."""
    async with probed_vendor() as vendor:
        config = write_project(tmp_path, vendor.base_url)
        vendor.end, vendor.head_delay_s = "hang", 0.05
        assert await probe(config, "--only", "deadline,hang-up", "--json") == 0
        for hit in vendor.hits:
            await hit.wait_over()
    told = outcomes(report(capsys))
    assert told["deadline", 1]["code"] == "first_byte_timeout"
    assert told["deadline", 1]["recording"] == ""
    assert (told["deadline", 2]["error_class"], told["deadline", 2]["status"]) == ("upstream_timeout", 200)
    assert (told["hang-up", 1]["judgement"], told["hang-up", 1]["ending"]) == ("right", "client_gone")
    assert [hit.gone_at is not None for hit in vendor.hits] == [False, *[True] * (len(vendor.hits) - 1)]


@pytest.mark.parametrize("own", [True, False])
async def test_texts_for_moderation_are_sent_with_leave_alone(tmp_path: Path, own: bool) -> None:
    """Those that are published, or one of the operator's own."""
    (tmp_path / "bait.txt").write_text("  متنی که نباید بگذرد: kill \n")
    async with probed_vendor() as vendor:
        config = write_project(tmp_path, vendor.base_url)
        words = ["--moderation-text", str(tmp_path / "bait.txt")] if own else []
        await probe(config, "--only", "moderation", "--allow-moderation", *words)
        texts = [json.loads(hit.body)["messages"][0]["content"] for hit in vendor.hits[1:-1]]
    own_text = "متنی که نباید بگذرد: kill"
    assert texts == ([own_text] * 2 if own else [text for text in BAIT for _ in range(2)])


async def test_a_live_vendor_is_captured_and_what_it_compressed_is_readable(tmp_path: Path) -> None:
    """An answer without the simulator's header is `captured`; a key in a compressed body is struck out too."""
    body = json.dumps({"choices": [{"index": 0, "message": {"content": f"سلام {KEY}"}, "finish_reason": "stop"}]})
    packed = gzip.compress(body.encode())
    head = (
        f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-encoding: gzip\r\ncontent-length: {len(packed)}"
    )

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"{head}\r\n\r\n".encode() + packed)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        assert await probe(write_project(tmp_path, f"http://127.0.0.1:{port}/v1"), "--only", "plain") == 0
    recording = await recorded(tmp_path / "recordings" / "acme" / "probes" / "probe-plain-1.jsonl")
    assert recording.obtained == "captured"
    assert recording.header("content-encoding") == ""
    assert json.loads(recording.body)["choices"][0]["message"]["content"] == f"سلام {'*' * len(KEY)}"


@pytest.mark.parametrize("packed", [False, True])
async def test_of_a_refusal_no_more_is_kept_than_anybody_reads(tmp_path: Path, packed: bool) -> None:
    """A page of 4 MB, also one that is small on the line: it still means what its beginning says."""
    page = b"<html><title>" + "页面很长".encode() + b"</title>" + b"a" * (4 << 20)
    body = gzip.compress(page) if packed else page
    headers = {"content-type": "text/html", **({"content-encoding": "gzip"} if packed else {})}
    async with probed_vendor({"unknown-model": Said(500, body, headers)}) as vendor:
        await probe(write_project(tmp_path, vendor.base_url), "--only", "unknown-model")
    recording = await recorded(tmp_path / "recordings" / "acme" / "probes" / "probe-unknown-model-1.jsonl")
    assert recording.body == page[:MAX_REFUSAL_BYTES]


async def test_recordings_that_cannot_be_written_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each with the reason; no rule rests on them."""
    async with probed_vendor() as vendor:
        config = write_project(tmp_path, vendor.base_url)
        (tmp_path / "recordings").write_text("in the way")
        assert await probe(config, "--only", "unknown-model", "--write", "--json") == 1
    told = report(capsys)
    assert [one["name"] for one in told["recordings"]["unwritten"]] == [
        "probe-plain-1", "probe-unknown-model-1", "probe-unknown-model-2", "probe-unknown-model-3"
    ]  # fmt: skip
    assert {one["reason"] for one in told["recordings"]["unwritten"]} == {"cannot be written: Not a directory"}
    assert (tmp_path / "rules" / "acme.yaml").read_text() == THREE_LINES


# ---- drift -----------------------------------------------------------------------------------------------------------


@pytest.mark.clause("R4")
async def test_watching_tells_what_moved_and_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """0 while nothing moved; 1 when an error is told otherwise, with both verdicts."""
    async with probed_vendor() as vendor:
        config = write_project(tmp_path, vendor.base_url)
        assert await probe(config, "--watch") == 2
        assert "holds no probe of this vendor yet" in capsys.readouterr().err
        assert vendor.hits == []
        await probe(config, "--write")
        before = files(tmp_path)
        capsys.readouterr()
        assert await probe(config, "--watch", "--json") == 0
        assert report(capsys)["drift"] == []
        vendor.said |= {
            "unknown-model": Said(429, {"error": {"code": "rate_limit_exceeded", "message": "Rate limit"}}),
            "too-long": Said(500, {"error": {"code": "L-9", "message": "बड़ा", "limit": 5}}),
        }
        assert await probe(config, "--watch", "--json") == 1
        drift = report(capsys)["drift"]
        assert files(tmp_path) == before
    told = {(one["what"], one["kind"]): (one["before"], one["now"]) for one in drift}
    assert told["unknown-model 1", "verdict"][0].startswith("model_unavailable model_not_found (acme.")
    assert told["unknown-model 1", "verdict"][1].startswith("rate_limited")
    assert ("too-long 1", "shape") in told


async def test_a_broken_recording_is_told_before_anything_is_sent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A vendor is not asked 37 questions in vain."""
    broken = tmp_path / "recordings" / "acme" / "probes" / "probe-plain-1.jsonl"
    broken.parent.mkdir(parents=True)
    broken.write_text('{"recording": 0}\n')
    async with probed_vendor() as vendor:
        config = write_project(tmp_path, vendor.base_url)
        for words in (["--watch"], []):
            assert await probe(config, *words) == 2
            assert f"{broken}:1: the first line is not a head" in capsys.readouterr().err
    assert vendor.hits == []


async def test_an_answer_that_changed_is_learned_beside_the_old_one(tmp_path: Path) -> None:
    """Rules rest on the recordings that are there: a refusal in new words gets a file of its own."""
    async with probed_vendor() as vendor:
        config = write_project(tmp_path, vendor.base_url)
        await probe(config, "--write", "--only", "unknown-model")
        before = files(tmp_path / "recordings")
        vendor.said["unknown-model"] = Said(404, {"error": {"code": "M-41", "message": "نام دیگر"}})
        assert await probe(config, "--write", "--only", "unknown-model") == 0
        after = files(tmp_path / "recordings")
    assert before.items() <= after.items()
    assert {Path(name).name for name in after.keys() - before.keys()} == {
        f"probe-unknown-model-{number}.jsonl" for number in (4, 5, 6)
    }


# ---- who is asked, and what may be written ---------------------------------------------------------------------------


async def test_the_shipped_rules_are_not_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--write` needs a folder of one's own."""
    async with probed_vendor() as vendor:
        config = write_project(tmp_path, vendor.base_url, vendor="openai")
        config.write_text(config.read_text().replace('"rules": "rules", ', ""))
        assert await probe(config, "--write") == 2
        assert vendor.hits == []
    assert "--write needs a rules folder of your own" in capsys.readouterr().err


async def test_a_vendor_without_a_file_is_told_its_three_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The error says what to write."""
    config = write_project(tmp_path, "http://127.0.0.1:1/v1", vendor="zebra")
    assert await probe(config) == 2
    error = capsys.readouterr().err
    assert "no rule file is called zebra" in error
    assert "`vendor: NAME`, `dialects: [openai]`, `use: [_infra]`" in error


async def test_an_unknown_upstream_is_told_those_there_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit 2."""
    config = write_project(tmp_path, "http://127.0.0.1:1/v1")
    config.write_text(
        config.read_text().replace('"main": {', '"other": {').replace('"upstream": "main"', '"upstream": "other"')
    )
    assert await probe(config) == 2
    assert "there is no upstream 'main'; there are other" in capsys.readouterr().err


async def test_a_key_in_a_header_is_made_wrong_there(tmp_path: Path) -> None:
    """As configured for a vendor that wants it so; without a key no probe of keys is made."""
    async with probed_vendor() as vendor:
        config = write_project(tmp_path, vendor.base_url, key=None, headers={"Authorization": f"Bearer {KEY}"})
        await probe(config, "--only", "no-key,wrong-key")
        causes = [cause_of(hit) for hit in vendor.hits]
        given = {hit.headers.get("authorization", "Bearer").split(" ")[0] for hit in vendor.hits}
    assert causes == [None, *["no-key"] * 3, None, *["wrong-key"] * 3, None]
    assert given == {"Bearer"}


async def test_another_model_is_asked_if_told(tmp_path: Path) -> None:
    """`--model` is the vendor's own name."""
    async with probed_vendor() as vendor:
        config = write_project(tmp_path, vendor.base_url)
        assert await probe(config, "--model", MODEL, "--only", "plain") == 0
        assert await probe(config, "--model", "small", "--only", "plain") == 2
