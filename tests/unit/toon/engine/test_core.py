"""One engine for many requests gives each what it would get alone (proxy.toon.engine.core)."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from proxy.toon.engine.job import Failure, Job, Piece
from proxy.toon.engine.scheduler import Limits
from tests.support.toon_toy import VOCAB, Bench, ToyDecoder, ToySight, opinion, slowly, toy_job


def prompt(length: int, seed: int = 0) -> list[int]:
    return random.Random(f"{length}/{seed}").choices(range(VOCAB), k=length)


def mixed_jobs() -> list[Job]:
    """Lengths, places, sights and ways to choose, mixed."""
    return [
        toy_job(prompt(1), 20),
        toy_job(prompt(5), 9, offset=7, stride=3),
        toy_job(prompt(40), 30),
        toy_job(prompt(40, 1), 17, sight=ToySight(40, window=6)),
        toy_job(prompt(23), 25, sight=ToySight(23, is_open=True)),
        toy_job(prompt(90), 12, sight=ToySight(90, hidden=frozenset({0, 3, 50}))),
        toy_job(prompt(64), 40, temperature=1.0, seed=5),
        toy_job(prompt(17), 33, temperature=0.7, top_p=0.8, seed=6, offset=1000),
        toy_job(prompt(12), 15, sight=ToySight(12, window=3), temperature=1.5, seed=2**63 - 1),
    ]


@pytest.fixture(scope="module")
def mixed_answers() -> list[list[int]]:
    """To `mixed_jobs`, the slow way."""
    return [slowly(ToyDecoder(), job) for job in mixed_jobs()]


def test_a_batch_answers_as_each_alone(mixed_answers: list[list[int]]) -> None:
    """Mixed lengths, sights, strides and ways to choose, asked at once."""
    decoder = ToyDecoder()
    jobs = mixed_jobs()
    bench = Bench(decoder)
    assert bench.answers(jobs) == mixed_answers
    assert max(rows for rows, new in decoder.calls if new == 1) == len(jobs), "they were run together"


@pytest.mark.parametrize("seed", range(4))
def test_rows_that_come_and_go_do_not_disturb_each_other(seed: int, mixed_answers: list[list[int]]) -> None:
    """Arrivals and cancellations at any step leave every other answer as it is."""
    decoder, chance = ToyDecoder(), random.Random(seed)
    pairs = list(zip(mixed_jobs(), mixed_answers, strict=True)) * 2
    chance.shuffle(pairs)
    bench = Bench(decoder, Limits(blocks=4096, rows=5, chunk=16, step_ids=24))
    tickets = []
    for job, _ in pairs:
        tickets.append(bench.ask(job))
        bench.step(chance.randrange(4))
        if chance.random() < 0.3:
            chance.choice(tickets).is_cancelled = True
    bench.finish()
    for (_, whole), ticket in zip(pairs, tickets, strict=True):
        said = bench.heard.ids.get(ticket, [])
        assert said == (whole[: len(said)] if ticket.is_cancelled else whole)
    assert any(ticket.is_cancelled for ticket in tickets)


def test_a_cancelled_row_is_heard_of_no_more() -> None:
    """From the step on that follows; a job that still waits never begins."""
    decoder = ToyDecoder()
    bench = Bench(decoder, Limits(blocks=4096, rows=1))
    runs, waits = bench.ask(toy_job(prompt(8), 50)), bench.ask(toy_job(prompt(9), 50))
    bench.step(3)
    said = list(bench.heard.ids[runs])
    runs.is_cancelled = waits.is_cancelled = True
    bench.step()
    assert not bench.core.has_work and bench.core.memory.used == 0
    assert bench.heard.ids == {runs: said} and bench.core.tally.cancelled == 2


def test_rows_are_preempted_and_nobody_notices(mixed_answers: list[list[int]]) -> None:
    """A budget too small for all: rows leave, come back, and say what they would have said."""
    decoder = ToyDecoder()
    longer = [replace(job, max_tokens=200) for job in mixed_jobs()[1::2]]
    bench = Bench(decoder, Limits(blocks=24, rows=8))
    tight = bench.answers(longer)
    assert bench.core.tally.preempted > 0
    assert tight == Bench(decoder).answers(longer)
    wanted = mixed_answers[1::2]
    assert [said[: len(want)] for said, want in zip(tight, wanted, strict=True)] == wanted
    assert bench.core.memory.used == 0


def test_the_oldest_row_is_never_preempted() -> None:
    """Whoever came first ends first where all are alike."""
    decoder = ToyDecoder()
    bench = Bench(decoder, Limits(blocks=16, rows=4))
    tickets = [bench.ask(toy_job(prompt(20, at), 120)) for at in range(4)]
    bench.finish()
    assert list(bench.heard.ends) == tickets and bench.core.tally.preempted > 0


@pytest.mark.parametrize("chunk", [1, 7, 16, 64])
def test_prompts_read_in_parts_say_the_same(chunk: int, mixed_answers: list[list[int]]) -> None:
    """Whatever the parts; a sight that looks ahead is read in one piece all the same."""
    decoder = ToyDecoder()
    bench = Bench(decoder, Limits(blocks=4096, chunk=chunk, step_ids=2 * chunk))
    assert bench.answers(mixed_jobs()) == mixed_answers


def test_answers_go_on_while_a_long_prompt_is_read() -> None:
    """Each step gives a running row its id."""
    bench = Bench(ToyDecoder(), Limits(blocks=4096, chunk=16))
    first = bench.ask(toy_job(prompt(4), 60))
    bench.step()
    long = bench.ask(toy_job(prompt(400), 4))
    while long not in bench.heard.ids:
        before = len(bench.heard.ids[first])
        bench.step()
        assert len(bench.heard.ids[first]) == before + 1
    assert len(bench.heard.ids[first]) > 20


def test_one_seed_gives_one_answer_in_any_company() -> None:
    """Alone, with others, and after a preemption."""
    decoder = ToyDecoder()
    job = toy_job(prompt(30), 140, temperature=1.0, top_p=0.95, seed=99)
    alone = Bench(decoder).answers([job])[0]
    crowd = [toy_job(prompt(40, at), 140, temperature=1.0, seed=at) for at in range(2)]
    assert Bench(decoder).answers([*crowd, job])[-1] == alone
    tight = Bench(decoder, Limits(blocks=32))
    assert tight.answers([*crowd, job])[-1] == alone and tight.core.tally.preempted > 0
    other = toy_job(prompt(30), 140, temperature=1.0, top_p=0.95, seed=98)
    assert Bench(decoder).answers([other])[0] != alone


def test_known_beginnings_are_not_read_again_and_change_nothing() -> None:
    """Whole blocks of 16; `cached_ids` tells; a prompt that is known entirely is read from its last block on."""
    decoder = ToyDecoder()
    bench = Bench(decoder, is_caching=True)
    base = prompt(70)
    for job, cached in (
        (toy_job(base, 20), 0),
        (toy_job(base, 20), 64),
        (toy_job(base[:64], 20), 48),
        (toy_job([*base[:40], 5, 6], 20), 32),
        (toy_job(base, 20, offset=1), 0),
        (toy_job(base, 20, sight=ToySight(70, window=6)), 0),
        (toy_job(base, 20, sight=ToySight(70, window=6)), 64),
        (toy_job(base, 20, sight=ToySight(70, is_open=True)), 0),
        (toy_job(base, 20, sight=ToySight(70, is_open=True)), 0),
    ):
        read = bench.core.tally.prompt_ids
        ticket = bench.ask(job)
        bench.finish()
        assert bench.heard.ids[ticket] == slowly(decoder, job)
        assert {piece.cached_ids for piece in bench.heard.pieces[ticket]} == {cached}
        assert bench.core.tally.prompt_ids - read == len(job.plan.ids) - cached


def test_what_was_written_is_known_to_the_next_turn() -> None:
    """A prompt that goes on from an answer finds it; not where the answer saw more than a prompt would."""
    decoder = ToyDecoder()
    for sight, cached in ((None, 64), (ToySight(40, hidden=frozenset({3})), 32)):
        bench = Bench(decoder, is_caching=True)
        first = bench.answers([toy_job(prompt(40), 30, sight=sight)])[0]
        longer = [*prompt(40), *first, 1, 2, 3]
        wide = None if sight is None else ToySight(len(longer), hidden=sight.hidden)
        job = toy_job(longer, 10, sight=wide)
        ticket = bench.ask(job)
        bench.finish()
        assert bench.heard.ids[ticket] == slowly(decoder, job)
        assert bench.heard.pieces[ticket][0].cached_ids == cached


def test_cached_beginnings_give_way_to_rows() -> None:
    """Running rows are worth more; the cache never takes what they hold."""
    decoder = ToyDecoder()
    bench = Bench(decoder, Limits(blocks=40, rows=4), is_caching=True)
    jobs = [toy_job(prompt(60 + at, at), 30 + 2 * at) for at in range(12)]
    assert bench.answers(jobs) == Bench(decoder).answers(jobs)
    assert 0 < bench.core.memory.cache.blocks <= 40


def test_stop_ids_end_an_answer_and_are_not_part_of_it() -> None:
    """The last piece names the id."""
    decoder = ToyDecoder()
    whole = slowly(decoder, toy_job(prompt(20), 30))
    stop = whole[10]
    bench = Bench(decoder)
    ticket = bench.ask(toy_job(prompt(20), 30, stop_ids={stop}))
    bench.finish()
    cut = whole.index(stop)
    assert bench.heard.ids[ticket] == whole[:cut]
    assert bench.heard.ends[ticket] == Piece([], cut, None, "stop", stop, 0)


def test_max_tokens_ends_an_answer_with_its_last_id() -> None:
    """`length` comes with the id, not behind it."""
    decoder = ToyDecoder()
    bench = Bench(decoder)
    ticket = bench.ask(toy_job(prompt(20), 3))
    bench.finish()
    whole = slowly(decoder, toy_job(prompt(20), 3))
    assert bench.heard.ends[ticket] == Piece(whole[2:], 2, None, "length", None, 0)


def test_log_probabilities_are_the_models_own() -> None:
    """`log_softmax` of what it said, whatever the temperature."""
    decoder = ToyDecoder()
    job = toy_job(prompt(9), 6, temperature=1.3, seed=4, logprobs=3)
    bench = Bench(decoder)
    ticket = bench.ask(job)
    bench.ask(toy_job(prompt(11), 6))
    bench.finish()
    ids = list(job.plan.ids)
    for piece in bench.heard.pieces[ticket]:
        said = opinion(decoder, ids)
        assert piece.logprobs is not None
        told = piece.logprobs[0]
        assert told.id == piece.ids[0]
        assert told.logprob == pytest.approx(said[told.id].item())
        values, best = said.topk(3)
        assert [one for one, _ in told.top] == best.tolist()
        assert [value for _, value in told.top] == pytest.approx(values.tolist())
        ids += piece.ids


def test_a_row_without_numbers_fails_alone() -> None:
    """Others in its batch say what they would have said, and so does whoever gets its slot."""
    decoder = ToyDecoder()
    jobs = [toy_job(prompt(20, at), 30) for at in range(3)]
    want = [slowly(decoder, job) for job in jobs]
    elsewhere = {*want[0], *want[2]}.union(*(job.plan.ids for job in jobs))
    decoder.poison = next(one for one in want[1] if one not in elsewhere)
    bench = Bench(decoder)
    tickets = [bench.ask(job) for job in jobs]
    bench.finish()
    end = bench.heard.ends[tickets[1]]
    assert isinstance(end, Failure) and end.code == "invalid_logits"
    assert [bench.heard.ids[tickets[at]] for at in (0, 2)] == [want[0], want[2]]
    assert bench.core.tally.failed == 1


def test_a_forward_that_raises_fails_its_rows_and_no_others() -> None:
    """Those whose prompt was being read fail; who was writing goes on, and so does the engine."""
    decoder = ToyDecoder()
    bench = Bench(decoder)
    runs = bench.ask(toy_job(prompt(8), 10))
    bench.step()
    reads = bench.ask(toy_job(prompt(9), 10))
    decoder.error = RuntimeError("a kernel that does not exist")
    bench.step()
    assert bench.heard.ends == {reads: Failure("engine_failed", "The engine failed while it worked on this request.")}
    later = bench.ask(toy_job(prompt(10), 10))
    bench.finish()
    assert bench.heard.ids[runs] == slowly(decoder, toy_job(prompt(8), 10))
    assert bench.heard.ids[later] == slowly(decoder, toy_job(prompt(10), 10))


@pytest.mark.parametrize(
    "error", [MemoryError("no more"), RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried")]
)
def test_out_of_memory_fails_the_newest_row_and_the_others_go_on(error: Exception) -> None:
    """The step is done again without it."""
    decoder = ToyDecoder()
    bench = Bench(decoder, is_caching=True)
    jobs = [toy_job(prompt(20 + at, at), 10) for at in range(3)]
    tickets = [bench.ask(job) for job in jobs]
    bench.step(2)
    decoder.error = error
    bench.finish()
    end = bench.heard.ends[tickets[2]]
    assert isinstance(end, Failure) and end.code == "out_of_memory"
    assert [bench.heard.ids[ticket] for ticket in tickets[:2]] == [slowly(decoder, job) for job in jobs[:2]]


def test_out_of_memory_on_growing_fails_the_newest_row_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a new row needed a slot or all needed longer ones; nobody else notices."""
    decoder = ToyDecoder()
    bench = Bench(decoder, is_caching=True)
    runs = bench.ask(toy_job(prompt(20), 80))
    bench.step(3)
    real = bench.core.memory.slots.resize
    for more in (toy_job(prompt(70), 10), toy_job(prompt(5), 100)):
        with monkeypatch.context() as patched:
            patched.setattr(bench.core.memory.slots, "resize", refusing(real))
            newest = bench.ask(more)
            while newest not in bench.heard.ends:
                bench.step()
        end = bench.heard.ends[newest]
        assert isinstance(end, Failure) and end.code == "out_of_memory"
    bench.finish()
    assert bench.heard.ids[runs] == slowly(decoder, toy_job(prompt(20), 80))


def refusing(real: Callable[[int, int, Sequence[int]], None]) -> Callable[[int, int, Sequence[int]], None]:
    """Room for one row of 128 ids and no more."""

    def resize(rows: int, longest: int, used: Sequence[int]) -> None:
        if rows > 1 or longest > 128:
            raise MemoryError("no more")
        real(rows, longest, used)

    return resize


def test_what_fails_outside_a_forward_fails_all_that_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory begins anew, and the next job is served."""
    decoder = ToyDecoder()
    bench = Bench(decoder, is_caching=True)
    runs = bench.ask(toy_job(prompt(8), 10))
    bench.step()
    with monkeypatch.context() as patched:
        patched.setattr(bench.core.memory, "grow", lambda: 1 / 0)
        bench.step()
    end = bench.heard.ends[runs]
    assert isinstance(end, Failure) and end.code == "engine_failed"
    assert bench.core.memory.used == 0
    assert bench.answers([toy_job(prompt(9), 10)]) == [slowly(decoder, toy_job(prompt(9), 10))]
