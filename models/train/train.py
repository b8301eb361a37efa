"""Trains in two stages: a common one without cuts, then a fork, one side with cuts and one without.

    python train.py --out out           # writes out/common.npz, out/reasoner.npz, out/uncut.npz

The fork is what makes the card's comparison fair: both sides start from the same weights, and see
the same problems for the same number of steps. Seeds are fixed. A stage that is already there is
not trained again.
"""

import argparse
import os
import time
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

import examples
import optimiser
import reasoner

ROWS = 15
WARM_UP = 50


@partial(jax.jit, donate_argnums=(0, 1))
def step(weights, state, batch, pace):
    loss, gradients = jax.value_and_grad(_loss)(weights, batch)
    weights, state = optimiser.update(weights, state, gradients, pace)
    return weights, state, loss


def _loss(weights, batch):
    scores = reasoner.logits(weights, batch["tokens"], batch["position"], _visible(batch))
    surprise = jax.nn.logsumexp(scores, -1) - jnp.take_along_axis(
        scores, batch["targets"][..., None], -1
    )[..., 0]
    return jnp.sum(surprise * batch["weights"]) / jnp.sum(batch["weights"])


def _visible(batch):
    """The same example, not later, and either the same branch or the trunk before the cut."""
    def viewer(name):
        return batch[name][:, :, None]

    def seen(name):
        return batch[name][:, None, :]

    length = batch["tokens"].shape[1]
    not_later = jnp.arange(length)[:, None] >= jnp.arange(length)[None, :]
    trunk = (seen("branch") == 0) & (seen("position") < viewer("limit"))
    same_branch = seen("branch") == viewer("branch")
    return (seen("segment") == viewer("segment")) & not_later & (same_branch | trunk)


def stage(weights, state, source, steps, pace):
    began, cpu = time.time(), time.process_time()
    for number in range(steps):
        weights, state, loss = step(weights, state, next(source), pace(number))
        if number % 50 == 49:
            print(f"{number + 1}/{steps} loss {loss:.4f} wall {time.time() - began:.0f} s "
                  f"cpu {time.process_time() - cpu:.0f} s", flush=True)
    return weights, state


def save(path, tree):
    leaves = jax.tree.leaves(tree)
    np.savez(path, *[np.asarray(leaf) for leaf in leaves])


def load(path, like):
    with np.load(path) as file:
        leaves = [jnp.asarray(file[f"arr_{i}"]) for i in range(len(file.files))]
    return jax.tree.unflatten(jax.tree.structure(like), leaves)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="out")
    parser.add_argument("--common-steps", type=int, default=1000)
    parser.add_argument("--fork-steps", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    os.makedirs(options.out, exist_ok=True)

    weights = reasoner.fresh(options.seed)
    start = (weights, optimiser.fresh(weights))
    print(f"{reasoner.parameters(weights)} parameters")
    common = f"{options.out}/common.npz"
    if not os.path.exists(common):
        done = stage(*start, examples.batches(f"{options.seed} common", ROWS, cuts=False, room_for_cuts=False),
                     options.common_steps, lambda n: min(1.0, (n + 1) / WARM_UP))
        save(common, done)
    like = jax.eval_shape(lambda: start)
    for name, cuts in (("reasoner", True), ("uncut", False)):
        if os.path.exists(f"{options.out}/{name}.npz"):
            continue
        done = stage(*load(common, like), examples.batches(f"{options.seed} fork", ROWS, cuts, shares=examples.HARDER_SHARES),
                     options.fork_steps, lambda n: max(0.02, 1 - n / options.fork_steps))
        save(f"{options.out}/{name}.npz", done[0])


if __name__ == "__main__":
    main()
