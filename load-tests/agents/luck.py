"""Luck that is the same each time: a number that depends on what it is for, and on nothing else."""

import hashlib
import math


def luck(*words):
    """At least 0 and less than 1."""
    digest = hashlib.blake2b("\x1f".join(map(str, words)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


def pick(choices, *words):
    """One of them."""
    return choices[int(luck(*words) * len(choices))]


def length(median, *words):
    """A length around its median, now and then several times as long."""
    uniform = (luck(*words, "a") or 0.5, luck(*words, "b"))
    normal = math.sqrt(-2 * math.log(uniform[0])) * math.cos(2 * math.pi * uniform[1])
    return max(1, round(median * math.exp(0.5 * normal)))
