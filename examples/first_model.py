# %% [markdown]
# # From a CSV file to a certified model
#
# A table of inputs and outputs goes in, a model and a certificate come out. The table here comes from the built-in pH
# process; replace it with a file of your own.

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
# Say which columns are inputs and which are outputs. The last part of the record is set aside as test data, which play
# no part in any choice.

# %%
record = read_csv(table, inputs="q3", outputs="pH", time="time")
training, validation, test = split(record, validation=0.25, test=0.25)
print(f"{len(training)} samples to train on, {len(validation)} to pick on, {len(test)} for the test")

# %% [markdown]
# 66 networks are drawn, trained and scored, which is the number that epsilon = 0.1 and beta = 1e-3 require. (The
# defaults, 0.05 and 1e-7, require 315.)

# %%
result = identify(training, validation, test=test, order=50, epsilon=0.1, beta=1e-3)
print(result.certificate.statement)

# %% [markdown]
# The certificate is about new networks on the validation data. The test data tell how well the model does on new data:

# %%
for part, scores in result.scores.items():
    print(f"{part}: FIT {scores['fit']:.1f} %, RMSE {scores['rmse']:.3f} pH")

# %% [markdown]
# The model is a single file. Loaded again, it simulates exactly the same.

# %%
from echobound import load_model

result.model.save(Path(folder.name) / "model.npz")
model = load_model(Path(folder.name) / "model.npz")
run = model.simulate(test)
print(f"{run.start}: FIT {float(fit(test.y[run.first :], run.y)):.1f} %")
folder.cleanup()
