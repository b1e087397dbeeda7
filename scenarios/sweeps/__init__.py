"""Sweeps: many runs over lists of values, on this machine or on a cluster, resumed after any interruption.

`points` says which runs there are, `plan` resolves and checks them, `work` is what a worker does with one,
`local`, `dask_cluster` and `ray_cluster` hand tasks to workers, `table` and `best` are what comes out.
"""
