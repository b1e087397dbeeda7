"""Collectives: groups of ranks, their algorithms, one file each, and the closed forms they must meet."""

from simulator.collectives.call import Call
from simulator.collectives.group import Group

__all__ = ["Call", "Group"]
