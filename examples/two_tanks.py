# %% [markdown]
# # A plant, a law and a score of your own
#
# Two cascaded tanks: a pump fills the upper one, which drains into the lower one; each outflow is proportional to the
# square root of the level. One input, two outputs.

# %%
import numpy as np

from echobound import LeastSquares, LogUniform, Record, ReservoirLaw, Score, Uniform, identify, register_score
from echobound.plants import gaussian, multilevel


def two_tanks(samples: int, index: int, noise: float = 0.02) -> Record:
    """Simulate one experiment on the tanks, with noise on both levels."""
    pump = multilevel(samples, period=60, low=0.5, high=2.0, index=index)
    upper, lower, levels = 1.0, 1.0, []
    for inflow in pump:
        levels.append((upper, lower))
        between = np.sqrt(upper)
        upper += 0.1 * (inflow - between)
        lower += 0.1 * (between - np.sqrt(lower))
    errors = [gaussian(samples, noise, family=output, index=index) for output in range(2)]
    return Record(
        u=pump,
        y=np.array(levels) + np.column_stack(errors),
        sampling_time=2.0,
        input_names=("pump",),
        output_names=("upper", "lower"),
        input_units=("L/s",),
        output_units=("m", "m"),
        name=f"tanks {index}",
    )


training, validation, test = (two_tanks(samples, index) for index, samples in enumerate((1200, 600, 600)))

# %% [markdown]
# The score: the error that is exceeded in one sample out of twenty, for the worse of the two levels. Smaller is better.


# %%
def error_95(measured, simulated):
    """Return the 95 % quantile of the absolute error, for the worse output."""
    return np.quantile(np.abs(measured - simulated), 0.95, axis=0).max()


register_score(Score("95 % error", error_95, direction="min", unit="m"))

# %% [markdown]
# The law: slow units, because the tanks are slow, and a small bias, because levels are not symmetric around zero.

# %%
law = ReservoirLaw(
    order=40,
    norm=Uniform(0.4, 0.95),
    leak=LogUniform(0.1, 1.0),
    bias_scale=0.3,
    constant=True,
    training=LeastSquares(ridges=(1e-8, 1e-6)),
    name="tanks",
)

# %%
result = identify(training, validation, test=test, law=law, scores=["95 % error", "fit"], epsilon=0.1, beta=1e-3)
print(result.certificate.statement)
for part, scores in result.scores.items():
    for name, entry in scores["per_output"].items():
        print(f"{part}, {name}: FIT {entry['fit']:.1f} %, RMSE {entry['rmse']:.3f} m")
