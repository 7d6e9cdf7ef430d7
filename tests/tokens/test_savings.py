"""What compactions saved: sums that can be checked by hand."""

from __future__ import annotations

import pytest

from lcc.tokens.requests import Boundary, Request, Spending
from lcc.tokens.savings import RESERVED, Savings, savings


def request(read: int, written: int, sent: float = 0.0) -> Request:
    """A request that read and wrote so many tokens, sent so many seconds after the start."""
    return Request("m", "claude", sent, sent, 0, False, 0, read, written, 0, 1)


def saved(*requests: Request, boundaries: tuple[Boundary, ...] = (), window: int = 200_000) -> Savings:
    return savings(Spending(requests, (), boundaries, ()), window)


NOTES = Boundary(1, 10.0, summary=False)


def test_a_cold_compaction_saves_the_writing_and_then_the_reading() -> None:
    """60,000 of 100,000 tokens went after ten minutes: not written (1.25 each), then not read (0.1 each), twice."""
    found = saved(
        request(0, 100_000),
        request(10_000, 30_000, sent=600.0),
        request(40_000, 1_000, sent=601.0),
        request(41_000, 1_000, sent=602.0),
        boundaries=(NOTES,),
    )

    assert found.cost == pytest.approx(125_000 + 1_000 + 37_500 + 4_000 + 1_250 + 4_100 + 1_250)
    assert found.saved == pytest.approx(60_000 * 1.25 + 2 * 60_000 * 0.1)
    assert found.without == pytest.approx(found.cost + found.saved)
    (compaction,) = found.compactions
    assert (compaction.before, compaction.first, compaction.freed) == (100_000, 40_000, 60_000)


def test_a_warm_compaction_costs_first() -> None:
    """What would have been read is written: 100,000 at 0.1 against 10,000 at 0.1 and 30,000 at 1.25."""
    found = saved(request(0, 100_000), request(10_000, 30_000, sent=60.0), boundaries=(NOTES,))

    assert found.saved == pytest.approx(10_000 - (1_000 + 37_500))


def test_a_later_cold_restart_would_have_written_all_of_it() -> None:
    """A request that found the cache gone writes what was freed, where it was not."""
    found = saved(
        request(0, 100_000),
        request(10_000, 30_000, sent=600.0),
        request(5_000, 36_000, sent=5_000.0),
        boundaries=(NOTES,),
    )

    assert found.saved == pytest.approx(60_000 * 1.25 * 2)


def test_without_a_compaction_nothing_is_said_to_be_saved() -> None:
    """However the context grows and falls."""
    found = saved(request(0, 100_000), request(0, 30_000), request(30_000, 500))

    assert (found.saved, found.compactions) == (0, ())


def test_a_summary_saves_nothing_and_ends_what_was_saved() -> None:
    """What was freed before it would have been summarised too."""
    summary = Boundary(2, 20.0, summary=True)
    found = saved(
        request(0, 100_000),
        request(10_000, 30_000, sent=600.0),
        request(20_000, 5_000, sent=601.0),
        request(25_000, 5_000, sent=602.0),
        boundaries=(NOTES, summary),
    )

    assert found.saved == pytest.approx(60_000 * 1.25)
    assert [each.summary for each in found.rounds] == [False, False, True]


def test_what_the_client_drops_itself_is_not_saved_twice() -> None:
    """A rewind by 20,000 tokens may have taken what a compaction had taken: 40,000 are left to be saved."""
    found = saved(
        request(0, 100_000),
        request(10_000, 30_000, sent=600.0),
        request(19_000, 1_000, sent=601.0),
        request(20_000, 0, sent=602.0),
        boundaries=(NOTES,),
    )

    assert found.saved == pytest.approx(60_000 * 1.25 + 2 * 40_000 * 0.1)


def test_nothing_is_counted_past_a_full_window() -> None:
    """With what was freed the window would be full: the session would not have gone on as it did."""
    full = 200_000 - RESERVED
    found = saved(
        request(0, 100_000),
        request(10_000, 30_000, sent=600.0),
        request(0, full - 60_000, sent=601.0),
        request(full - 60_000, 1, sent=602.0),
        request(full - 60_000, 2, sent=603.0),
        boundaries=(NOTES,),
    )

    assert found.saved == pytest.approx(60_000 * 1.25 * 2)


def test_the_next_compaction_is_estimated_from_the_growth() -> None:
    """10,000 tokens a request, 67,000 to go."""
    found = saved(request(0, 80_000), request(80_000, 10_000), request(90_000, 10_000))

    assert found.full_in == 7
    assert saved(request(0, 80_000)).full_in is None
    assert saved(request(0, 80_000), request(80_000, 0)).full_in is None


def test_a_session_without_requests() -> None:
    """Nothing was sent: nothing is said, also not in JSON."""
    found = saved()

    assert (found.cost, found.saved, found.saved_share, found.rounds, found.full_in) == (0, 0, 0, (), None)
    assert found.as_json()["requests"] == 0


def test_recalls_stand_in_their_round() -> None:
    """A recall by the answer to the second request comes after the compaction before it."""
    spending = Spending((request(0, 100_000), request(10_000, 30_000)), (), (NOTES,), (1, 2, 2))

    assert [each.recalls for each in savings(spending).rounds] == [1, 2]
