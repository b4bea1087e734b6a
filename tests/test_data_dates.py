"""Dates as people write them: each form gives the instant it says, and what could be two is asked about."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echobound.data.dates import is_stamp, order_of, stamp
from echobound.errors import DataError

FORMS = {
    "%Y-%m-%dT%H:%M:%S.%f": "european",
    "%Y/%m/%d %H:%M:%S.%f": "european",
    "%d.%m.%Y %H:%M:%S,%f": "european",
    "%d/%m/%Y %H:%M:%S.%f": "european",
    "%m/%d/%Y %I:%M:%S.%f %p": "american",
    "%d-%b-%Y %H:%M:%S.%f": "european",
}


@given(st.datetimes(datetime(1971, 1, 1), datetime(2099, 12, 31)), st.sampled_from(sorted(FORMS)))
def test_every_form_gives_the_instant(moment: datetime, form: str) -> None:
    found = stamp(moment.strftime(form), FORMS[form])
    assert found is not None
    assert found.dated
    since = moment.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    assert found.micros == (since.days * 86400 + since.seconds) * 1_000_000 + since.microseconds


@pytest.mark.parametrize(
    "text", ["1.5", "-3", "20240501", "1e-3", "", "abc", "2024-13-01", "31/31/2024", "25:00", "a:b"]
)
def test_what_is_no_time_stamp(text: str) -> None:
    assert not is_stamp(text)


def test_zones_are_instants() -> None:
    texts = ("2024-07-01T14:00:00+02:00", "2024-07-01 12:00:00Z", "01.07.2024 08:00 -0400", "2024-07-01 12:00:00 UTC")
    assert len({stamp(text) for text in texts}) == 1
    assert stamp("2024-07-01 12:00:00").zoned is False  # type: ignore[union-attr]


def test_the_order_is_that_of_the_column() -> None:
    assert order_of(["01/02/2024", "", "25/02/2024"], "time") == "european"
    assert order_of(["01/02/2024", "02/25/2024"], "time") == "american"
    assert order_of(["01/02/2024", "02/02/2024"], "time", "american") == "american"
    assert order_of(["02/02/2024", "03/03/2024"], "time") == "european", "the same both ways"
    with pytest.raises(DataError, match="give dates='european' or 'american'"):
        order_of(["02/02/2024", "03/02/2024"], "time")
    with pytest.raises(DataError, match="must be one of european, american, got 'german'"):
        order_of([], "time", "german")
