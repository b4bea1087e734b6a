import numpy as np
import pytest

from echobound import RunFolder
from echobound.draws import SEARCH, VERIFICATION
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


def test_an_interrupted_reproduction_is_resumed(tmp_path):
    options = {"networks": 20, "fresh": 10, "data_seed": 0, "workers": 1}
    whole = reproduce_paper([6, 8], **options, folder=tmp_path / "whole")

    class Enough(Exception):
        pass

    def stop_at(count):
        def look(progress):
            if progress.done >= count:
                raise Enough

        return look

    for count, stream in ((25, SEARCH), (15, VERIFICATION)):  # in the second family of each
        with pytest.raises(Enough):
            reproduce_paper([6, 8], **options, folder=tmp_path / "run", on_progress=_only(stream, stop_at(count)))
        assert count <= len(RunFolder(tmp_path / "run").rows(stream)) < (40 if stream == SEARCH else 20)
    resumed = reproduce_paper([6, 8], **options, folder=tmp_path / "run")
    assert resumed.orders == whole.orders
    for file in ("networks.csv", "table.txt"):
        texts = [(tmp_path / name / file).read_text().replace(f"/{name}:", ":") for name in ("run", "whole")]
        assert texts[0] == texts[1]


def _only(stream, look):
    """Look at the progress of the search (40 networks in all), or at that of the verification (20)."""
    planned = 40 if stream == SEARCH else 20
    return lambda progress: look(progress) if progress.planned == planned else None


def test_more_fresh_networks_than_asked_for_all_count(tmp_path):
    options = {"networks": 15, "data_seed": 0, "folder": tmp_path / "run"}
    assert reproduce_paper([5], fresh=0, **options).orders[0].best_violations == 0
    more = reproduce_paper([5], fresh=12, **options)
    fewer = reproduce_paper([5], fresh=4, **options)
    assert fewer == more, "what was drawn is not forgotten"
    assert more.fresh == len(RunFolder(tmp_path / "run").fresh) == 12
