r"""How time and memory are measured."""

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

from torch.profiler import ProfilerActivity, profile


def peak_bytes(call: Callable[[], object]) -> int:
    r"""Most memory that tensors made by a call took at one time, its result included, in bytes.

    Added up from the allocations and releases that torch's own allocator reports, so it is exact and the same
    in every run; scratch memory inside BLAS is not in it.
    """
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        result = call()
    results: Any = recorded.profiler and recorded.profiler.kineto_results
    events = [event for event in results.events() if event.name() == "[memory]"]
    held = peak = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        held += event.nbytes()
        peak = max(peak, held)
    del result
    return peak


def interleaved_times(
    calls: Sequence[Callable[[], object]], rounds: int, clock: Callable[[], float] = time.process_time
) -> list[list[float]]:
    r"""Seconds of each call in each round, in which all have a turn: what disturbs a round disturbs all."""
    seconds: list[list[float]] = [[] for _ in calls]
    for call in calls:
        call()
    for _ in range(rounds):
        for call, times in zip(calls, seconds, strict=True):
            start = clock()
            call()
            times.append(clock() - start)
    return seconds


def median_ratio(times: Sequence[float], base: Sequence[float]) -> float:
    r"""Median over the rounds of one call's time over another's in the same round."""
    return statistics.median(a / b for a, b in zip(times, base, strict=True))
