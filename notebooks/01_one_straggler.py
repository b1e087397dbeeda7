# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # One straggler
#
# Sixteen workers on four servers train one model. Worker 5 is three times slower than the others. How much does each way of
# synchronising suffer, and which learns soonest?
#
# The scenario is the shipped `quickstart`: a step costs what a ResNet-18 costs on a P100; what is really learned is a small
# network on handwritten digits. This notebook runs it, looks at where the time goes, and then takes the straggler away.

# %%
import pandas as pd

from scenarios import load

study = load("quickstart")
[scenario.variant for scenario in study.scenarios]

# %% [markdown]
# ## Run all four variants
#
# Nothing is written to disk; all tables stay in memory. All variants share one seed, so they meet the same stragglers.

# %%
result = study.run()
table = pd.DataFrame([run.summary for run in result.runs]).set_index("variant")
table[["time_to_target_s", "final_accuracy", "samples_per_s", "waiting_fraction", "staleness_mean"]].round(3)

# %% [markdown]
# Synchronous SGD waits for worker 5 in every step, for about half of all worker time. Local SGD sends an eighth of the bytes, and
# waits just as long: averaging less often does not help against a worker that is *always* slow. Gossip never waits.

# %%
shares = ["compute_fraction", "exposed_communication_fraction", "waiting_fraction", "idle_fraction"]
breakdown = table[shares]
assert (breakdown.sum(axis=1) - 1).abs().max() < 1e-9  # the break-down is whole
breakdown.round(3)

# %% [markdown]
# ## Learning against simulated time

# %%
import plotly.express as px

curve = result.curve.query("model == 'method' and split == 'test'")
px.line(curve, x="time_s", y="accuracy", color="variant", labels={"time_s": "simulated time (s)"})

# %% [markdown]
# Per sample the synchronous methods are alike; per second they are not. The asynchronous server applies gradients that are many
# versions old, so it needs a small step size, and its one network link is the bottleneck.

# %%
px.line(curve, x="samples", y="loss", color="variant", labels={"samples": "samples computed"})

# %% [markdown]
# ## Who waits?

# %%
workers = result.workers.query("variant in ['sync', 'gossip']")
px.bar(workers, x="worker", y="waiting_fraction", color="variant", barmode="group")

# %% [markdown]
# ## What if worker 5 were as fast as the others?
#
# `--set` on the command line, or overrides here, change any key. Common random numbers make this a fair comparison: every other
# worker meets exactly the same jitter.

# %%
jitter_only = "stragglers=[{where: all, per: step, factor: {kind: lognormal, mean: 1.0, sigma: 0.1}}]"
even = load("quickstart", [jitter_only]).run(variants=["sync", "gossip"])
suffers = {
    run.variant: result.run(run.variant).summary["time_to_target_s"] / run.summary["time_to_target_s"]
    for run in even.runs
}
pd.Series(suffers, name="times longer because of one slow worker").round(2)

# %% [markdown]
# Synchronous SGD pays for the slow worker with nearly all the time that worker takes longer; gossip hardly notices it. What gossip
# pays instead is traffic: every step sends a model.

# %%
table[["bytes_sent", "bytes_per_link_max"]].div(1e9).round(1).rename(columns=lambda name: name + " (GB)")
