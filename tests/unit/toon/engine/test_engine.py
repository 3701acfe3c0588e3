"""The engine's thread: what callers see of it (proxy.toon.engine.engine)."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from proxy.toon.engine.core import Told
from proxy.toon.engine.engine import Engine, JobTooLarge, Overloaded, limits_for
from proxy.toon.engine.job import Failure, Ticket
from proxy.toon.engine.scheduler import Limits
from tests.support.toon_toy import Heard, ToyDecoder, slowly, toy_job


class Waiting(Heard):
    """Can be waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.changed = threading.Condition()
        self.calls = 0

    def deliver(self, told: Told) -> None:
        with self.changed:
            super().deliver(told)
            self.calls += 1
            self.changed.notify_all()

    def wait(self, until: Callable[[], bool]) -> None:
        with self.changed:
            assert self.changed.wait_for(until, timeout=20)


@contextmanager
def running(decoder: ToyDecoder, limits: Limits | None = None) -> Iterator[tuple[Engine, Waiting]]:
    heard = Waiting()
    engine = Engine(decoder, heard.deliver, limits or Limits(blocks=4096))
    engine.start()
    try:
        yield engine, heard
    finally:
        engine.stop()
        assert not [thread for thread in threading.enumerate() if thread.name == "toon-engine"]


def test_a_hundred_jobs_at_once_with_cancellations_at_random() -> None:
    """From several threads; every answer that was not cancelled is whole, and each piece has its index."""
    decoder = ToyDecoder()
    jobs = [toy_job([at % 97, *range(at % 23)], 4 + at % 9, temperature=at % 2, seed=at) for at in range(100)]
    want = {at: slowly(decoder, job) for at, job in enumerate(jobs) if at % 5 == 0}
    tickets: dict[int, Ticket] = {}
    with running(decoder) as (engine, heard):

        def ask(part: int) -> None:
            chance = random.Random(part)
            for at in range(part, 100, 4):
                tickets[at] = engine.submit(jobs[at])
                if at % 5 and chance.random() < 0.4:
                    engine.cancel(tickets[chance.choice([one for one in list(tickets) if one % 5])])

        threads = [threading.Thread(target=ask, args=(part,)) for part in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        heard.wait(lambda: all(ticket in heard.ends or ticket.is_cancelled for ticket in tickets.values()))
        assert {at: heard.ids[tickets[at]] for at in want} == want
        cancelled = sum(ticket.is_cancelled for ticket in tickets.values())
    state = engine.state()
    assert not state.is_alive
    assert state.running == state.waiting == 0 and 0 < cancelled < 60
    assert state.finished_total + state.cancelled_total + state.failed_total == 100
    assert heard.calls < sum(len(pieces) for pieces in heard.pieces.values()), "pieces of one step come together"


def test_a_warm_engine_has_run_before_anybody_asked() -> None:
    """And shows nothing of it."""
    decoder = ToyDecoder()
    with running(decoder) as (engine, _):
        assert decoder.calls and engine.state().is_alive
        assert engine.state().completion_ids_total == 0 and engine.state().free_blocks == 4096


def test_an_engine_that_cannot_run_does_not_start() -> None:
    """`start` raises what the model raised, and leaves no thread."""
    decoder = ToyDecoder()
    decoder.error = RuntimeError("no kernel")
    engine = Engine(decoder, Heard().deliver, Limits(blocks=64))
    with pytest.raises(RuntimeError, match="no kernel"):
        engine.start()
    assert not [thread for thread in threading.enumerate() if thread.name == "toon-engine"]
    engine.stop()


def test_stopping_tells_whoever_waits() -> None:
    """Running, waiting and just submitted; afterwards nobody can ask."""
    decoder = ToyDecoder()
    with running(decoder, Limits(blocks=4096, rows=1)) as (engine, heard):
        first = engine.submit(toy_job([1, 2], 1500))
        second = engine.submit(toy_job([3, 4], 1500))
        heard.wait(lambda: first in heard.ids)
    ends = [heard.ends[first], heard.ends[second]]
    assert [end.code for end in ends if isinstance(end, Failure)] == ["engine_stopped"] * 2
    with pytest.raises(Overloaded):
        engine.submit(toy_job([1], 1))
    engine.stop()


def test_an_engine_that_never_started_can_be_stopped() -> None:
    """Nothing hangs."""
    Engine(ToyDecoder(), Heard().deliver, Limits(blocks=64)).stop()


def test_too_many_who_wait_are_refused() -> None:
    """At the limit, not before; when one has left there is room again."""
    engine = Engine(ToyDecoder(), Heard().deliver, Limits(blocks=64, waiting=2))
    engine.submit(toy_job([1], 1))
    engine.submit(toy_job([2], 1))
    with pytest.raises(Overloaded, match="2 requests are waiting"):
        engine.submit(toy_job([3], 1))


def test_a_job_that_can_never_fit_is_refused_at_once() -> None:
    """Beyond the engine's blocks, or the model's context; what just fits is served."""
    decoder = ToyDecoder(context=200)
    with running(decoder, Limits(blocks=8)) as (engine, heard):
        with pytest.raises(JobTooLarge, match="8 blocks"):
            engine.submit(toy_job([1] * 100, 29))
        with pytest.raises(JobTooLarge, match="context of 200"):
            engine.submit(toy_job([1] * 100, 101))
        with pytest.raises(ValueError, match="at least one"):
            engine.submit(toy_job([], 5))
        for wrong in ({"seed": -1}, {"logprobs": -3}, {"temperature": -0.5}, {"top_p": 0.0}):
            with pytest.raises(ValueError, match="0 or more"):
                engine.submit(toy_job([1], 5, **wrong))
        job = toy_job([1] * 100, 28)
        ticket = engine.submit(job)
        heard.wait(lambda: ticket in heard.ends)
        assert heard.ids[ticket] == slowly(decoder, job)


def test_a_delivery_that_raises_does_not_stop_the_engine() -> None:
    """Whoever passes pieces on may be gone for a moment; what comes later arrives."""
    told: list[Told] = []
    ended = threading.Event()

    def deliver(items: Told) -> None:
        told.append(items)
        if len(told) == 1:
            raise RuntimeError("the loop is closed")
        ended.set()

    engine = Engine(ToyDecoder(), deliver, Limits(blocks=64), is_warming=False, threads=1)
    engine.start()
    engine.submit(toy_job([1], 3))
    assert ended.wait(20)
    engine.stop()


def test_a_budget_in_memory_is_blocks_of_the_model() -> None:
    """Keys and values of 2 layers of 2 heads of 8 numbers of 8 bytes: 8 KiB for 16 ids."""
    assert limits_for(ToyDecoder(), cache_mib=1).blocks == 128


def test_an_engines_state_can_be_told_as_figures() -> None:
    """For metrics: every field, a number."""
    with running(ToyDecoder()) as (engine, heard):
        ticket = engine.submit(toy_job([1], 3))
        heard.wait(lambda: ticket in heard.ends)
    figures = engine.state().figures()
    assert figures["completion_ids_total"] == 3 and figures["finished_total"] == 1 and figures["prompt_ids_total"] == 1
    assert all(isinstance(value, int | float) for value in figures.values())
