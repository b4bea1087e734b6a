# %% [markdown]
# # Why violations are few
#
# With confidence 1 - 1e-7, at most 5 % of all networks beat the best of 645. Yet among 500 fresh networks it is not 25
# that do, but usually none or one. Training is not the reason: the law of the number of violations follows from ranks
# alone. Here it is compared with dice and with networks.

# %%
import numpy as np

from echobound import paper, ph_experiment
from echobound.draws import VERIFICATION
from echobound.kernels import get_kernel, hold_out
from echobound.scenario import ViolationLaw, verify_counts
from echobound.scores import get_score

law = ViolationLaw(645)
print(f"P(a new network beats the best of 645): mean {law.mean:.3%}, 95 % quantile {law.quantile(0.95):.3%}")
expected = [verify_counts(networks=645, fresh=500, violations=x).probability for x in range(5)]

# %% [markdown]
# Dice: the "score" is a random number.

# %%
generator = np.random.default_rng(0)
dice = [(generator.random(500) > generator.random(645).max()).sum() for _ in range(5000)]

# %% [markdown]
# Networks: 100 small searches, each with its own networks. To be quick, a search has 60 networks and 46 are fresh: the
# expected number of violations is nearly the same as above, 46 / 61 = 0.75 instead of 500 / 646 = 0.77.

# %%
training, validation = ph_experiment(samples=(400, 300))
kernel = get_kernel("cpu")
counts = []
for seed in range(100):
    problem = hold_out(training, validation, law=paper(8), scores=[get_score("fit")], seed=seed)
    best = kernel.evaluate(problem, range(60))["scores"].max()
    fresh = kernel.evaluate(problem.on(stream=VERIFICATION), range(46))["scores"]
    counts.append(int((fresh > best).sum()))

# %%
print("violations   theory    dice")
for x, probability in enumerate(expected):
    print(f"{x:10d} {probability:8.1%} {np.mean(np.equal(dice, x)):7.1%}")
print(f"mean of the networks: {np.mean(counts):.2f}, expected {46 / 61:.2f}")
