"""The defaults on a Wiener-Hammerstein system: error against the noise-free output, relative to the noise.

    python benchmarks/wiener_hammerstein.py --seeds 5

Networks are trained on the training record and picked on the validation record; what is printed is measured on a third
one, which neither training nor selection has seen.
"""

import argparse
import time

import numpy as np

from echobound import identify
from echobound.plants import WienerHammersteinPlant, wiener_hammerstein_experiment


def relative_error(model, record, plant):
    """RMS error against the output without noise, in units of the noise's RMS; and that of the best constant."""
    run, clean = model.simulate(record), plant.response(record.u)
    noise = np.sqrt(np.mean((record.y[:, 0] - clean) ** 2))
    return float(np.sqrt(np.mean((run.y[:, 0] - clean[run.first :]) ** 2)) / noise), float(clean.std() / noise)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=40_000)
    parser.add_argument("--snr", type=float, default=50.0)
    parser.add_argument("--networks", type=int, default=315)
    parser.add_argument("--law", default=None, help="the default if not given")
    parser.add_argument("--workers", type=int, default=None)
    parser.add_argument("--seeds", default="0,1,2,3,4")
    asked = parser.parse_args()
    for seed in map(int, asked.seeds.split(",")):
        plant, start = WienerHammersteinPlant(), time.perf_counter()
        samples = (asked.samples, asked.samples // 4, asked.samples // 4)
        training, validation, test = wiener_hammerstein_experiment(samples, asked.snr, seed)
        settings = {"law": asked.law, "networks": asked.networks, "seed": seed, "workers": asked.workers}
        result = identify(training, validation, **settings)
        taken = time.perf_counter() - start
        for name, model in ((f"delivered {result.delivered}", result.model), ("network", result.network)):
            error, constant = relative_error(model, test, plant)
            print(
                f"seed {seed}, {name}: {error:.3f} of the noise (a constant: {constant:.0f}), {taken:.0f} s", flush=True
            )


if __name__ == "__main__":
    main()
