# %% [markdown]
# # From a CSV file to a certified model
#
# A table of inputs and outputs goes in; a model and a certificate come out. The table here is written by the built-in
# pH process; put the name of your own file instead.

# %%
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from echobound import identify, ph_experiment, read_csv, split
from echobound.scores import fit

folder = TemporaryDirectory()
table = Path(folder.name) / "plant.csv"
[experiment] = ph_experiment(samples=(2400,))
columns = np.column_stack([experiment.time, experiment.u, experiment.y])
np.savetxt(table, columns, delimiter=",", header="time,q3,pH", comments="")

# %% [markdown]
# Say which columns are inputs and outputs. The last part of the record is kept for a test that no choice has seen.

# %%
record = read_csv(table, inputs="q3", outputs="pH", time="time")
training, validation, test = split(record, validation=0.25, test=0.25)
print(f"{len(training)} samples to train on, {len(validation)} to pick on, {len(test)} for the test")

# %% [markdown]
# 66 networks are drawn, trained and scored: that is what epsilon = 0.1 and beta = 1e-3 ask for. (The defaults, 0.05 and
# 1e-7, ask for 315.)

# %%
result = identify(training, validation, test=test, order=50, epsilon=0.1, beta=1e-3)
print(result.certificate.statement)

# %% [markdown]
# The certificate speaks of new networks on the validation data. How the model does on new data, the test data say:

# %%
for part, scores in result.scores.items():
    print(f"{part}: FIT {scores['fit']:.1f} %, RMSE {scores['rmse']:.3f} pH")

# %% [markdown]
# The model is one file. Loaded again, it simulates the same.

# %%
from echobound import EchoStateNetwork

result.model.save(Path(folder.name) / "model.npz")
model = EchoStateNetwork.load(Path(folder.name) / "model.npz")
run = model.simulate(test)
print(f"{run.start}: FIT {float(fit(test.y[run.first :], run.y)):.1f} %")
folder.cleanup()
