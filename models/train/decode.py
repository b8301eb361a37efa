"""Greedy generation for many prompts at once, with a key-value cache.

The thought and the answer are two calls: `think` until the model closes the thought itself, then
`answer` from any prefix of it. Greedy decoding makes the prefix of a long thought equal to the
thought under a smaller budget, so every budget of the card is served by one thought.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

import reasoner
import vocabulary as v

BATCH = 256


def think(weights, prompts, longest=136):
    """The tokens of each thought, without the `</think>` that ends it."""
    return [_until(ids, v.THINK_END) for ids in generate(weights, prompts, longest, v.THINK_END)]


def answer(weights, prompts, longest=8):
    """The tokens of each answer, without the `<|im_end|>` that ends it."""
    return [_until(ids, v.END) for ids in generate(weights, prompts, longest, v.END)]


def generate(weights, prompts, count, stop):
    """`count` tokens after each prompt; what follows `stop` is meaningless."""
    out = [None] * len(prompts)
    order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
    for at in range(0, len(order), BATCH):
        chunk = order[at : at + BATCH]
        for i, ids in zip(chunk, _generate([prompts[i] for i in chunk], weights, count, stop)):
            out[i] = ids
    return out


def _until(ids, stop):
    return ids[: ids.index(stop)] if stop in ids else ids


def _generate(prompts, weights, count, stop):
    width = -(-max(map(len, prompts)) // 32) * 32
    tokens = np.zeros((BATCH, width), np.int32)
    lengths = np.ones(BATCH, np.int32)
    for row, ids in enumerate(prompts):
        tokens[row, : len(ids)] = ids
        lengths[row] = len(ids)
    live = np.arange(BATCH) < len(prompts)
    made = np.asarray(_run(weights, tokens, lengths, live, count, stop))
    return [made[row].tolist() for row in range(len(prompts))]


@partial(jax.jit, static_argnums=(4, 5))
def _run(weights, tokens, lengths, live, count, stop):
    x, cache = _prefill(weights, tokens, tokens.shape[1] + count)
    last = _scores(weights, x[jnp.arange(x.shape[0]), lengths - 1]).argmax(-1)

    def going(state):
        return (state[0] < count) & state[4].any()

    def one(state):
        made_count, last, cache, made, live = state
        made = made.at[:, made_count].set(last)
        live = live & (last != stop)
        scores, cache = _step(weights, last, lengths + made_count, cache)
        return made_count + 1, scores.argmax(-1), cache, made, live

    made = jnp.full((tokens.shape[0], count), v.PAD, last.dtype)
    return jax.lax.while_loop(going, one, (0, last, cache, made, live))[3]


def _prefill(weights, tokens, room):
    rows, width = tokens.shape
    x = weights["embedding"][tokens]
    turn = reasoner.rotation(jnp.broadcast_to(jnp.arange(width), (rows, width)))
    visible = jnp.broadcast_to(jnp.tril(jnp.ones((width, width), bool)), (rows, width, width))
    cache = []
    for layer in weights["layers"]:
        q, k, value = reasoner.project(layer, x, turn)
        x = x + reasoner.attend(q, k, value, visible) @ layer["o"]
        x = x + reasoner.feed_forward(layer, x)
        free = ((0, 0), (0, room - width), (0, 0), (0, 0))
        cache.append((jnp.pad(k, free), jnp.pad(value, free)))
    return x, cache


def _step(weights, last, position, cache):
    """One token per row; every row is at a position of its own."""
    rows = jnp.arange(last.shape[0])
    x = weights["embedding"][last][:, None]
    turn = reasoner.rotation(position[:, None])
    visible = (jnp.arange(cache[0][0].shape[1]) <= position[:, None])[:, None]
    grown = []
    for layer, (keys, values) in zip(weights["layers"], cache):
        q, k, value = reasoner.project(layer, x, turn)
        keys, values = keys.at[rows, position].set(k[:, 0]), values.at[rows, position].set(value[:, 0])
        x = x + reasoner.attend(q, keys, values, visible) @ layer["o"]
        x = x + reasoner.feed_forward(layer, x)
        grown.append((keys, values))
    return _scores(weights, x[:, 0]), grown


def _scores(weights, x):
    return reasoner.norm(x, weights["norm"]) @ weights["embedding"].T
