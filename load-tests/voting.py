"""Measures what stopping a vote early saves, through a running gateway, and writes its table as markdown.

    python load-tests/voting.py --base-url http://127.0.0.1:8080 --count 300 --sizes 5 9

Every arm asks the same held-out problems with the same seeds, so that the samples of one question are the same draws in every
arm and a vote only differs in where it stops. A vote of fixed size takes all its samples and cannot be asked of the gateway: it is
made here, of single requests with the seeds that the samples of the gateway's votes have, and counted here; of equals the answer
of the earliest sample wins. In the gateway's vote it is the answer that comes first in time, so that ties may end otherwise.
A vote without doubt (`sure`) stops where no further answer could change its winner. Intervals are of a paired bootstrap over
questions. Standard library only.
"""

import argparse
import random
import re
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from client import Gateway, held_out

TEMPERATURE = 2.0
SIZES = (5, 9)
DOUBTS = ("0.05", "0.1")
DRAWS = 4000


def mixed(number):
    """As `crates/types/src/units/rng.rs` has it."""
    number = (number ^ (number >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    number = (number ^ (number >> 27)) * 0x94D049BB133111EB % 2**64
    return number ^ (number >> 31)


def draw(seed, sample):
    """The seed of one of a vote's samples, as `src/execute/sampling.rs` has it."""
    return mixed(seed ^ mixed(sample)) if sample else seed


def ask(gateway, arm, seed, problem):
    """One question in one arm: was the answer right, how many samples and tokens did it take?"""
    body = {
        "model": arm, "seed": seed, "messages": [{"role": "user", "content": problem["question"]}],
        "budget": {"thinking_tokens": 256, "solution_tokens": 8, "preference": 1},
    }
    if arm == "reasoner":
        body["temperature"] = TEMPERATURE
    reply = gateway.post(body)
    content, budget = reply["choices"][0]["message"]["content"] or "", reply["budget"]
    samples = budget.get("samples", {"asked": 1, "most": 1})
    written = reply["usage"]["total_tokens"] + budget["other"]["tokens"]
    return {"said": content.strip(), "right": content.strip() == problem["answer"], "asked": samples["asked"], "most": samples["most"], "tokens": written}


def ask_all(gateway, size, seed, problem):
    """All samples of a vote of this size, in their order."""
    return [ask(gateway, "reasoner", draw(seed, sample), problem) for sample in range(size)]


def fixed(samples, size):
    """What the most of the first samples say; an answer without a number has no vote."""
    first = samples[:size]
    votes = Counter(one["said"] for one in first if re.search(r"\d", one["said"]))
    winner = max(first, key=lambda one: votes[one["said"]])
    is_tied = sum(count == votes[winner["said"]] for count in votes.values()) > 1
    return {"said": winner["said"], "right": winner["right"], "is_tied": is_tied, "tokens": sum(one["tokens"] for one in first)}


def mean(numbers):
    numbers = list(numbers)
    return sum(numbers) / len(numbers)


def interval(differences):
    """The middle 95 % of the mean over questions drawn again."""
    rng = random.Random(1)
    means = sorted(mean(rng.choices(differences, k=len(differences))) for _ in range(DRAWS))
    return means[int(0.025 * DRAWS)], means[int(0.975 * DRAWS) - 1]


def points(difference, bounds):
    return f"{100 * difference:+.1f} [{100 * bounds[0]:+.1f}, {100 * bounds[1]:+.1f}]"


def write(outcomes, all_samples, options):
    one = outcomes["reasoner"]
    print(f"`scripts/voting.sh --count {options.count} --sizes {' '.join(map(str, options.sizes))}`: the embedded reasoner at temperature "
          f"{TEMPERATURE:g}, {options.count} held-out problems of level {options.level} (the first {options.skip} left out: the temperature "
          "was chosen on them), through a running gateway, the local engine on lavapipe. Same questions and same draws in every arm; right answers "
          "in percent; intervals of 95 %, a paired bootstrap over questions.\n")
    print(f"One sample is right in {100 * mean(o['right'] for o in one):.1f} % of them.\n")
    print("| vote | right | against fixed n | same answer as fixed n | samples | fewer than n | tokens read and written |")
    print("|---|---|---|---|---|---|---|")
    print(f"| one sample | {100 * mean(o['right'] for o in one):.1f} | | | 1.00 | | {mean(o['tokens'] for o in one):.0f} |")
    ties = []
    for size in options.sizes:
        whole = [fixed(samples, size) for samples in all_samples]
        gain = [f["right"] - o["right"] for f, o in zip(whole, one)]
        print(f"| fixed n = {size} | {100 * mean(o['right'] for o in whole):.1f} | over one sample: "
              f"{points(mean(gain), interval(gain))} | | {size:.2f} | | {mean(o['tokens'] for o in whole):.0f} |")
        for word in ("sure", *DOUBTS):
            arm = outcomes[f"vote-{size}-{word}"]
            lost = [a["right"] - f["right"] for a, f in zip(arm, whole)]
            same = sum(a["said"] == f["said"] for a, f in zip(arm, whole))
            saved = [1 - a["asked"] / size for a in arm]
            low, high = interval(saved)
            name = "cannot change" if word == "sure" else f"doubt {word}"
            print(f"| of {size}, {name} | {100 * mean(a['right'] for a in arm):.1f} | {points(mean(lost), interval(lost))} | {same} | "
                  f"{mean(a['asked'] for a in arm):.2f} | {100 * mean(saved):.0f} % [{100 * low:.0f}, {100 * high:.0f}] | "
                  f"{mean(a['tokens'] for a in arm):.0f} |")
        other = [f["is_tied"] for a, f in zip(outcomes[f"vote-{size}-sure"], whole) if a["said"] != f["said"]]
        ties.append(f"Fixed n = {size} ends in a tie in {sum(f['is_tied'] for f in whole)} questions; where the vote that stops when nothing can change "
                    f"says something else, it is one of these in {sum(other)} of {len(other)}.")
    same = sum(samples[0]["said"] == o["said"] for samples, o in zip(all_samples, one))
    print("\nFixed n is an arm of its own, each of its samples a request of its own with the seed of a vote's sample. Its first sample says "
          f"the same as the one sample in {same} of {len(one)} questions. {' '.join(ties)}")
    planned = {name: sorted({o["most"] for o in arm}) for name, arm in outcomes.items()}
    print(f"\nSamples planned at most, by arm: {planned}.")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--base-url", default="http://127.0.0.1:8080")
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--skip", type=int, default=60)
    parser.add_argument("--level", type=int, default=5)
    parser.add_argument("--sizes", type=int, nargs="+", choices=SIZES, default=SIZES)
    parser.add_argument("--concurrency", type=int, default=8)
    options = parser.parse_args()
    problems = held_out("--levels", options.level, "--per-level", options.skip + options.count)[options.skip:]
    gateway, began, outcomes = Gateway(options.base_url), time.time(), {}
    arms = ["reasoner"] + [f"vote-{size}-{word}" for size in options.sizes for word in ("sure", *DOUBTS)]

    def run(arm, one):
        with ThreadPoolExecutor(options.concurrency) as pool:
            asked = [pool.submit(one, seed, problem) for seed, problem in enumerate(problems)]
            results = [future.result() for future in asked]
        print(f"{arm}: {time.time() - began:.0f} s", file=sys.stderr)
        return results

    all_samples = run("fixed", partial(ask_all, gateway, max(options.sizes)))
    for arm in arms:
        outcomes[arm] = run(arm, partial(ask, gateway, arm))
    write(outcomes, all_samples, options)


if __name__ == "__main__":
    main()
