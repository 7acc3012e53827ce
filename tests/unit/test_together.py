from functools import partial
from threading import Barrier, current_thread

import pytest

from together import together


def test_results_come_in_order_and_calls_overlap() -> None:
    barrier = Barrier(3, timeout=10)

    def meet(number: int) -> int:
        barrier.wait()
        return number

    assert together([partial(meet, number) for number in range(3)]) == [0, 1, 2]


def test_one_call_stays_on_its_thread() -> None:
    assert together([current_thread]) == [current_thread()]
    assert together([]) == []


def test_a_failure_is_raised() -> None:
    def fail() -> int:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        together([fail, lambda: 1])
