# %% [markdown]
# # The paper's experiment at one order
#
# Draw 645 echo state networks for the pH neutralisation process, pick the best, certify it, and test the certificate
# with 500 fresh networks.

# %%
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt

from echobound import RunFolder, identify, ph_experiment, verify
from echobound.draws import VERIFICATION

training, validation = ph_experiment(samples=(1500, 800), period=40)

# %% [markdown]
# The search: the paper's bound gives the number of networks from epsilon and beta, before anything is drawn.

# %%
folder = TemporaryDirectory()
result = identify(
    training,
    validation,
    law="paper",
    order=20,
    epsilon=0.05,
    beta=1e-7,
    bound="explicit",
    run=f"{folder.name}/run",
)
print(result.certificate.networks, "networks")
print(result.certificate.statement)

# %% [markdown]
# The test: 500 networks that were not part of the search.

# %%
outcome = verify(result.run, fresh=500)
print(outcome["statement"])

# %% [markdown]
# The figures of the paper: the picked network against the plant, and the fresh networks against the threshold.

# %%
run = result.network.simulate(validation)
fresh = RunFolder(result.run).rows(VERIFICATION)
threshold = result.certificate.threshold

figure, (above, below) = plt.subplots(2, 1, figsize=(8, 6), layout="constrained")
hours = validation.time[run.first :] / 3600
above.plot(hours, validation.y[run.first :], color="0.6", label="measured")
above.plot(hours, run.y, label=f"network {result.certificate.winner}, FIT {threshold:.1f} %")
above.set(xlabel="time (h)", ylabel="pH")
above.legend(loc="lower right")
below.plot(fresh["index"], fresh["scores"][:, 0], ".", markersize=3, label="fresh networks")
below.axhline(threshold, color="C3", label="best of the search")
below.set(xlabel="network", ylabel="FIT (%)", ylim=(threshold - 5, threshold + 0.5))
below.legend(loc="lower right")
plt.show()
folder.cleanup()
