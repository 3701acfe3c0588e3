"""Who runs, who waits, who must leave (proxy.toon.engine.scheduler)."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest

from proxy.toon.engine.scheduler import (
    GROWTH,
    Chunk,
    Limits,
    Pace,
    admitted,
    blocks_of,
    can_ever_run,
    chunks,
    companies,
    rectangle,
    victims,
)


@dataclass(eq=False)
class Fake:
    number: int
    total: int
    done: int = 0
    unbroken: int = 0
    is_plain: bool = True


def spans(wanted: list[Chunk[Fake]]) -> list[tuple[int, int, int]]:
    return [(chunk.row.number, chunk.start, chunk.stop) for chunk in wanted]


def test_a_batch_costs_its_rows_times_its_longest() -> None:
    """Slots are 1, 2 and then fours; lengths grow by 64."""
    assert [rectangle(rows, 1)[0] for rows in range(10)] == [0, 1, 2, 4, 4, 8, 8, 8, 8, 12]
    assert [rectangle(1, longest)[1] for longest in (0, 1, 64, 65)] == [0, 64, 64, 128]
    assert blocks_of(3, 65) == 4 * 128 // 16


@pytest.mark.parametrize(("blocks", "is_possible"), [(15, False), (16, True)])
def test_a_job_that_is_too_large_alone_never_runs(blocks: int, is_possible: bool) -> None:
    """193 ids take 256 places, which are 16 blocks."""
    assert can_ever_run(193, Limits(blocks=blocks)) is is_possible


def test_who_came_first_comes_in_first() -> None:
    """One that does not fit holds up those behind it: else it might wait for ever."""
    limits = Limits(blocks=32)
    assert admitted([Fake(1, 60), Fake(2, 500), Fake(3, 10)], [Fake(0, 60)], limits) == 1
    assert admitted([Fake(2, 500)], [], limits) == 1


def test_no_more_rows_come_in_than_may_run() -> None:
    """At `rows`, whatever room there is."""
    assert admitted([Fake(at, 4) for at in range(9)], [Fake(9, 4)], Limits(blocks=999, rows=4)) == 3


def test_a_row_comes_in_with_room_to_grow_unless_it_is_alone() -> None:
    """Else it would be preempted before it has written anything."""
    limits = Limits(blocks=16)
    assert admitted([Fake(0, 255)], [], limits) == 1
    assert admitted([Fake(1, GROWTH)], [Fake(0, GROWTH)], limits) == 1
    assert admitted([Fake(1, GROWTH + 1)], [Fake(0, GROWTH)], limits) == 0


def test_the_youngest_leave_until_the_others_fit() -> None:
    """Youngest by arrival, wherever they sit; the last one stays."""
    rows = [Fake(7, 65), Fake(1, 60), Fake(5, 60), Fake(3, 60)]
    assert [row.number for row in victims(rows, Limits(blocks=16))] == [7]
    assert [row.number for row in victims(rows, Limits(blocks=8))] == [7, 5]
    assert [row.number for row in victims(rows, Limits(blocks=1))] == [7, 5, 3]
    assert victims(rows, Limits(blocks=32)) == []


def test_a_lone_prompt_gets_the_whole_step_in_chunks() -> None:
    """No more of one row than a chunk."""
    limits = Limits(blocks=999, chunk=512)
    assert spans(chunks([Fake(0, 2000, done=100)], 1024, limits)) == [(0, 100, 612)]
    assert spans(chunks([Fake(0, 2000)], 200, limits)) == [(0, 0, 200)]
    assert chunks([], 200, limits) == []


def test_short_prompts_pass_a_long_one_which_never_starves() -> None:
    """Half for the oldest, then those with the least left; one that can be read to its end is."""
    alike = [Fake(at, 90) for at in range(3)]
    assert spans(chunks(alike, 100, Limits(blocks=999))) == [(0, 0, 90), (1, 0, 10)]
    rows = [Fake(0, 2000), Fake(1, 90), Fake(2, 30), Fake(3, 60)]
    assert spans(chunks(rows, 200, Limits(blocks=999))) == [(0, 0, 100), (2, 0, 30), (3, 0, 60), (1, 0, 10)]


def test_a_sight_that_looks_ahead_is_read_in_one_piece() -> None:
    """All of it when it is the oldest, whatever a step may read; before that only if it fits."""
    limits = Limits(blocks=999, chunk=64)
    assert spans(chunks([Fake(0, 300, unbroken=300)], 100, limits)) == [(0, 0, 300)]
    assert spans(chunks([Fake(0, 300, unbroken=300), Fake(1, 10)], 100, limits)) == [(0, 0, 300)]
    assert spans(chunks([Fake(0, 80), Fake(1, 300, unbroken=300)], 100, limits)) == [(0, 0, 64)]
    assert spans(chunks([Fake(0, 400, done=300, unbroken=300)], 50, limits)) == [(0, 300, 350)]


@pytest.mark.parametrize("seed", range(20))
def test_every_prompt_is_read_once_and_in_order(seed: int) -> None:
    """Any prompts, any measure: each step reads something, nothing twice, and little more than the measure."""
    chance = random.Random(seed)
    rows = [Fake(at, total := chance.randrange(1, 900), unbroken=chance.choice([0, 0, total])) for at in range(8)]
    limits = Limits(blocks=9999, chunk=chance.choice([1, 50, 512]))
    for _ in range(10000):
        filling = [row for row in rows if row.done < row.total]
        if not filling:
            return
        wanted = chunks(filling, measure := chance.randrange(1, 400), limits)
        assert wanted
        read = sum(chunk.stop - chunk.start for chunk in wanted)
        assert read <= measure or any(chunk.row.unbroken for chunk in wanted)
        for chunk in wanted:
            assert chunk.start == chunk.row.done < chunk.stop <= chunk.row.total
            chunk.row.done = chunk.stop
        assert {id(chunk) for company in companies(wanted) for chunk in company} == {id(chunk) for chunk in wanted}
    raise AssertionError("it never ends")


def test_chunks_of_one_kind_and_like_lengths_go_together() -> None:
    """Those that need no mask apart from those that do; padding at most doubles, but for short ones."""
    plain, masked = Fake(0, 2000), Fake(1, 2000, is_plain=False)
    made = [
        Chunk(plain, 0, 500),
        Chunk(plain, 0, 300),
        Chunk(plain, 0, 200),
        Chunk(plain, 0, 2),
        Chunk(plain, 0, 30),
        Chunk(plain, 16, 400),
        Chunk(masked, 0, 400),
    ]
    assert [[made.index(chunk) for chunk in company] for company in companies(made)] == [[0, 1], [2], [3, 4], [5, 6]]


def test_a_step_reads_as_much_as_running_answers_can_wait_for() -> None:
    """By the speed that was seen; twice as much where nobody waits, and never next to nothing."""
    pace = Pace(Limits(blocks=1, step_ids=1024, stall_s=0.25))
    assert pace.step_ids(is_writing=True) == 1024
    pace.took(400, 1.0)
    assert pace.step_ids(is_writing=True) == 100
    assert pace.step_ids(is_writing=False) == 200
    pace.took(1, 10.0)
    assert pace.step_ids(is_writing=True) == 100
    for _ in range(50):
        pace.took(64, 100.0)
    assert pace.step_ids(is_writing=True) == Pace.LEAST
