"""Which ids of a prompt are citations: those whose text a client's pattern covers.

In: the text of each id, and a regular expression that anybody may have sent. Out: indices, or why the pattern is not
taken. A pattern may be made so that it takes all memory to compile, or all time to match. So it is compiled first in a
process of its own, which may have neither; and matching gives up after `MATCH_S`, with the interpreter free meanwhile.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Final

import regex

from proxy.errors import SluiceError

MATCH_S: Final = 0.2
#: Patterns that were looked at, good or bad; clients send the same ones again and again.
_REMEMBERED: Final = 256
_COMPILE_S: Final = 5.0
#: What a pattern calls again within itself grows by itself while it matches.
_RECURSION: Final = re.compile(r"\(\?(?:R|[+-]?\d|&|P>)")
#: It may take a tenth of a second and 16 MiB, since it is compiled here too once it has passed; the hard limits are for
#: what would never come to an end. What a pattern only warns of is an error too.
_COMPILE: Final = """
import sys, time
from resource import RLIMIT_AS, RLIMIT_CPU, RUSAGE_SELF, getrusage, setrlimit
import regex
setrlimit(RLIMIT_AS, (1 << 27, 1 << 27))
setrlimit(RLIMIT_CPU, (1, 1))
pattern = sys.stdin.buffer.read().decode("utf-8", "surrogatepass")
started, held = time.process_time(), getrusage(RUSAGE_SELF).ru_maxrss
try:
    regex.compile(pattern, cache_pattern=False)
except MemoryError:
    sys.exit(4)
except (regex.error, Warning, ValueError, RecursionError, OverflowError) as error:
    sys.stdout.buffer.write((str(error) or type(error).__name__).encode("utf-8", "backslashreplace"))
    sys.exit(3)
if time.process_time() - started > 0.1 or getrusage(RUSAGE_SELF).ru_maxrss - held > 16 * 1024:
    sys.exit(4)
"""


class BadPattern(SluiceError):
    """A pattern that is not taken, and why."""


def citations(pattern: str, texts: Sequence[str]) -> tuple[int, ...]:
    """Indices in order. An id without text of its own, a part of a character, goes with the id that ends it. Raises
    `BadPattern`. May take as long as a process takes to start: not for an event loop."""
    compiled = _compiled(pattern)
    ends = list(accumulate(len(text) for text in texts))
    found: list[int] = []
    for start, stop in _spans(compiled, "".join(texts)):
        first, last = bisect_right(ends, start), bisect_right(ends, stop - 1)
        while first > 0 and not texts[first - 1]:
            first -= 1
        found += range(max(first, found[-1] + 1 if found else 0), last + 1)
    return tuple(found)


def _spans(compiled: regex.Pattern[str], text: str) -> Iterator[tuple[int, int]]:
    try:
        for match in compiled.finditer(text, timeout=MATCH_S, concurrent=True):
            if match.end() > match.start():
                yield match.span()
    except TimeoutError as late:
        raise BadPattern(f"matching it takes longer than {MATCH_S} s") from late
    except MemoryError as large:
        raise BadPattern("matching it takes too much memory") from large


def _compiled(pattern: str) -> regex.Pattern[str]:
    try:
        refusal = _refusal(pattern)
    except subprocess.TimeoutExpired as late:
        raise BadPattern(f"compiling it takes longer than {late.timeout} s") from late
    if refusal is not None:
        raise BadPattern(refusal)
    return regex.compile(pattern, cache_pattern=False)  # kept by nobody: it may be large


@lru_cache(_REMEMBERED)
def _refusal(pattern: str) -> str | None:
    """What is wrong with it; None where it may be compiled here."""
    if _RECURSION.search(pattern):
        return "it calls itself"
    done = subprocess.run(
        [sys.executable, "-I", "-W", "error", "-c", _COMPILE],
        input=pattern.encode("utf-8", "surrogatepass"),
        capture_output=True,
        timeout=_COMPILE_S,
        env={**os.environ, "LC_ALL": "C"},  # a mapped locale would count as its memory
        check=False,
    )
    if done.returncode == 3:
        return done.stdout.decode()
    if done.returncode == 4 or done.returncode < 0:  # killed by a limit
        return "it takes too much memory or time to compile"
    done.check_returncode()
    return None
