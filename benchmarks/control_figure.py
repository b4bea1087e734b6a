"""The figure of docs/control.md: `python benchmarks/control_figure.py` draws the loops of the tutorial."""

from pathlib import Path

import numpy as np

from echobound import identify, ph_experiment
from echobound.control import MPC, PI, PHProcess, simulate_closed_loop
from echobound.control.page import figure_of

WANTED = np.repeat([7.4, 6.8, 7.7, 7.1], 100)
BUFFER = np.where(np.arange(400) < 350, 0.55, 0.65)


def main() -> None:
    network = identify(*ph_experiment(samples=(2000, 1000)), law="paper", order=30, networks=60).network
    loops = {
        name: simulate_closed_loop(
            PHProcess(), controller, WANTED, preview=preview, disturbance=BUFFER, noise=0.05
        )
        for name, controller, preview in (
            ("MPC with preview", MPC(network, horizon=20), True),
            ("PI", PI.tuned(network, y=7.0), False),
        )
    }  # fmt: skip
    path = Path(__file__).parents[1] / "docs" / "images" / "closed-loop.png"
    figure_of(loops).savefig(path, dpi=130)


if __name__ == "__main__":
    main()
