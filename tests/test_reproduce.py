import numpy as np
import pytest

from echobound.errors import InputError
from echobound.kernels import get_kernel, hold_out
from echobound.network import paper
from echobound.plants import PHPlant
from echobound.reproduce import PAPER, PAPER_ORDERS, default_data_seed, paper_data, reproduce_paper
from echobound.scores import get_score


def test_the_papers_table():
    assert len(PAPER_ORDERS) == 21
    assert (PAPER_ORDERS[0], PAPER_ORDERS[-1]) == (10, 500)
    assert max(row.best_violations for row in PAPER.values()) == 3  # as the paper's text says
    assert max(row.worst_violations for row in PAPER.values()) == 4
    assert PAPER[350].best_fit == max(row.best_fit for row in PAPER.values())


def test_the_data_seed_is_the_smallest_that_the_rule_allows():
    seed = default_data_seed()
    for candidate in range(seed + 1):
        data = paper_data(candidate)
        noise = data.validation.y[:, 0] - PHPlant().response(data.validation.u)
        scored = data.validation.y[100:, 0]
        limit = 100 * (1 - np.linalg.norm(noise[100:]) / np.linalg.norm(scored - scored.mean()))
        inside = data.training.u.min() <= data.validation.u.min() and data.validation.u.max() <= data.training.u.max()
        assert (90.7 <= limit <= 91.3 and inside) == (candidate == seed)


def test_orders_are_families_of_their_own(tmp_path):
    both = reproduce_paper([6, 8], networks=20, fresh=10, data_seed=0, folder=tmp_path / "both")
    alone = reproduce_paper([8], networks=20, fresh=10, data_seed=0, folder=tmp_path / "alone")
    assert both.orders[1] == alone.orders[0]
    data = paper_data(0)
    problem = hold_out(data.training, data.validation, law=paper(8), scores=[get_score("fit")]).of_family(8, paper(8))
    assert get_kernel("cpu").evaluate(problem, range(20))["scores"].max() == both.orders[1].best_fit
    text = both.text()
    assert "Violations in all" in text
    assert f"{both.orders[0].best_fit:.2f}" in text


def test_bad_orders(tmp_path):
    for orders in ([], [0], [5, 5]):
        with pytest.raises(InputError, match="orders"):
            reproduce_paper(orders, folder=tmp_path / "x")
    with pytest.raises(InputError, match="at least 1 network"):
        reproduce_paper([5], networks=0, folder=tmp_path / "x")
