"""What is scored, chosen by the data where nothing is given."""

import numpy as np
import pytest

from echobound.data import Record
from echobound.errors import DataError, InputError
from echobound.plan.validation import settle_validation


def record(length, start=0, **more):
    k = np.arange(start, start + length)
    return Record(u=np.sin(0.3 * k), y=np.cos(0.2 * k), **more)


@pytest.mark.parametrize(
    ("length", "blocks", "washout"),
    [(60, 4, 3), (1024, 4, 51), (3000, 4, 100), (19_999, 4, 100), (20_000, None, 100), (80_000, None, 100)],
)
def test_short_data_in_blocks_long_data_held_out(length, blocks, washout):
    scheme = settle_validation(record(length))
    assert (scheme.blocks, scheme.washout) == (blocks, washout)
    assert len(scheme.folds) == (blocks or 1)
    if blocks is None:
        [held] = scheme.experiments.validation
        assert len(held) == min(length // 4, 10_000)
        assert len(held) + len(scheme.experiments.training[0]) == length
        assert f"since {length} samples leave enough" in scheme.chosen[0]
    else:
        assert len(scheme.experiments.training[0]) == length
        assert not scheme.experiments.validation
        assert f"since {length} samples are too few" in scheme.chosen[0]


def test_what_is_given_is_taken_and_not_called_chosen():
    scheme = settle_validation(record(1000), record(500), washout=20)
    assert (scheme.blocks, scheme.washout, scheme.chosen) == (None, 20, ())
    assert len(scheme.experiments.validation[0]) == 500
    scheme = settle_validation(record(1000), blocks=5, washout=20)
    assert (scheme.blocks, scheme.chosen) == (5, ())
    scheme = settle_validation(record(1000), blocks=0, washout=20)
    assert [len(r) for _, r in scheme.experiments.roles] == [750, 250]
    with pytest.raises(InputError, match="validation data and 4 blocks"):
        settle_validation(record(1000), record(500), blocks=4)


def test_blocks_that_cannot_be_scored_are_not_chosen():
    y = np.concatenate([np.full(300, 5.0), np.sin(np.arange(700.0))])
    still = Record(u=np.sin(np.arange(1000.0)), y=y)
    scheme = settle_validation(still)
    assert scheme.blocks is None
    assert "an output does not move in one of 4 blocks" in scheme.chosen[0]
    with pytest.raises(DataError, match="block-1"):
        _ = settle_validation(still, blocks=4).folds
    scheme = settle_validation(record(300), washout=60)
    assert scheme.blocks is None
    assert "too short for a washout of 60" in scheme.chosen[0]


def test_the_washout_is_short_enough_for_every_record():
    assert settle_validation(record(1000), record(200)).washout == 40
    assert (
        settle_validation(record(1000), record(800), test=[record(900, start=2000), record(55, start=3000)]).washout
        == 11
    )
    assert settle_validation([record(3000), record(400)]).washout == 20, "a fifth of its blocks of 100"
    assert settle_validation([record(100)] * 6).washout == 20, "whole experiments are blocks"


def test_test_data_are_checked():
    with pytest.raises(DataError, match="test"):
        settle_validation(record(1000), test=record(10), washout=50)
    with pytest.raises(DataError, match="same channels"):
        settle_validation(record(1000), test=record(500, output_names=("z",)))
    with pytest.raises(DataError, match="test is among the training data"):
        settle_validation(record(1000), test=record(500, name="test"))
