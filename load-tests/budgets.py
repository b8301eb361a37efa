"""Measures what deciding each thinking budget saves over one budget for all, through a running gateway, at stated accuracies.

    python load-tests/budgets.py --base-url http://127.0.0.1:8080 --per-level 200 --out load-tests/results

Four routes steer for 50, 70, 85 and 92 % right answers (`success_target`). Each is first asked `--warm` problems that are not
measured, since its price has to find its level; then the held-out problems of the card, in one random order. The gateway learns
nothing (`load-tests/budgets.toml`): a route knows the shipped estimate and what that predicted of its own requests before, and of
no problem what came of it in another arm. What a route reaches is compared at the accuracy that it reached, in two readings:

    by length     the oracle knows how long each thought gets, and no more: it lets the shortest run to their ends, right or
                  wrong, and has all others answered without a thought. Beside it the best single budget for all: straight
                  lines between neighbouring budgets of a grid stand for those between them
    by outcome    the oracle knows besides which thoughts will be right where the answer without one is wrong, and lets only
                  the shortest of those run. Beside it the hull of the grid: what mixing two budgets at random comes to

and the share of what the oracle would save that is saved. What of the rest is due to the predicted lengths is told besides: these
are the medians of which `POST /v1/plan` speaks. Intervals are of a paired bootstrap over problems. With `--answers FILE` what was
answered is kept in that file, and what it has already is not asked again. Standard library only.
"""

import argparse
import itertools
import json
import math
import random
import re
import statistics
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from client import Gateway, held_out

TARGETS = (50, 70, 85, 92)
GRID = (*range(0, 108, 4), 112, 128, 160, 400)
WHOLE = GRID[-1]
DRAWS = 1000


def ask(gateway, model, problem, budget=None):
    """Was the answer right, and how many tokens were thought?"""
    body = {"model": model, "temperature": 0, "messages": [{"role": "user", "content": problem["question"]}],
            "budget": {"solution_tokens": 8}}
    if budget is not None:
        body["budget"]["thinking_tokens"] = budget
    reply = gateway.post(body)
    content = reply["choices"][0]["message"]["content"] or ""
    return content.strip() == problem["answer"], reply["budget"]["thinking"]["used"]


def foretold(gateway, problem):
    """How long its thought usually gets, before anything is asked."""
    body = {"model": "reasoner", "messages": [{"role": "user", "content": problem["question"]}],
            "budget": {"thinking_tokens": WHOLE, "solution_tokens": 8}}
    return int(re.search(r"usually about (\d+)", gateway.post(body, "/v1/plan")["why"])[1])


def problems(per_level, seed):
    listed = held_out("--per-level", per_level)
    random.Random(seed).shuffle(listed)
    return listed


def mean(numbers):
    return sum(numbers) / len(numbers)


def point(outcomes, drawn):
    return mean([outcomes[at][0] for at in drawn]), mean([outcomes[at][1] for at in drawn])


def between(low, high, accuracy):
    """Tokens on the straight line between two points."""
    (less, few), (more, many) = low, high
    return few + (many - few) * (accuracy - less) / (more - less) if more > less else few


def single(curve, accuracy):
    """Tokens where the first of the rising budgets reaches an accuracy, on the line from the one before; none where none does."""
    if accuracy <= curve[0][0]:
        return curve[0][1]
    for low, high in zip(curve, curve[1:]):
        if low[0] < accuracy <= high[0]:
            return between(low, high, accuracy)
    return None


def mixed(curve, accuracy):
    """Tokens where the hull of the budgets' points reaches an accuracy; none where none does."""
    hull = []
    for right, thought in sorted(curve):
        while len(hull) > 1 and (hull[-1][1] - hull[-2][1]) * (right - hull[-2][0]) >= (thought - hull[-2][1]) * (hull[-1][0] - hull[-2][0]):
            hull.pop()
        hull.append((right, thought))
    if accuracy < hull[0][0]:
        return hull[0][1]
    return next((between(low, high, accuracy) for low, high in zip(hull, hull[1:]) if low[0] <= accuracy <= high[0]), None)


def by_length(blind, whole, drawn, accuracy, lengths=None):
    """Tokens of the thoughts that bring so many answers right, the shortest first, by their lengths or those said; of equal ones the same share runs."""
    wanted = accuracy * len(drawn) - sum(blind[at][0] for at in drawn)
    tokens = 0
    length = lambda at: lengths[at] if lengths else whole[at][1]
    for _, equal in itertools.groupby(sorted(drawn, key=length), key=length):
        equal = list(equal)
        gain = sum(whole[at][0] - blind[at][0] for at in equal)
        share = min(1, max(wanted, 0) / gain) if gain > 0 else 1
        if wanted <= 0:
            break
        tokens, wanted = tokens + share * sum(whole[at][1] for at in equal), wanted - share * gain
    return tokens / len(drawn)


def by_outcome(blind, whole, drawn, accuracy):
    """Tokens of the shortest thoughts that bring so many answers right, of those that make a wrong answer right."""
    wanted = accuracy * len(drawn) - sum(blind[at][0] for at in drawn)
    worth = sorted(whole[at][1] for at in drawn if whole[at][0] and not blind[at][0])
    tokens = 0
    for length in worth:
        if wanted <= 0:
            break
        share = min(1, wanted)
        tokens, wanted = tokens + share * length, wanted - share
    return tokens / len(drawn)


READINGS = {"by length": (single, by_length), "by outcome": (mixed, by_outcome)}


def row(reading, curve, plan, grid, drawn):
    """What one route comes to in one reading."""
    fixed, oracle = READINGS[reading]
    accuracy, tokens = point(plan, drawn)
    one, best = fixed(curve, accuracy), oracle(grid[0], grid[WHOLE], drawn, accuracy)
    saved = (one - tokens) / (one - best) if one and one > best else float("nan")
    return {"right": accuracy, "plan": tokens, "fixed": one, "oracle": best, "share": saved}


def rows(plans, grid, drawn):
    """What all routes come to in all readings."""
    curve = [point(outcomes, drawn) for outcomes in grid.values()]
    return {(reading, target): row(reading, curve, plan, grid, drawn) for reading in READINGS for target, plan in plans.items()}


def intervals(plans, grid, count):
    """The middle 95 % of the shares over problems drawn again."""
    dice = random.Random(1)
    draws = [rows(plans, grid, [dice.randrange(count) for _ in range(count)]) for _ in range(DRAWS)]
    # A draw in which one budget for all reaches the accuracy nowhere tells nothing of what it would take.
    found = {key: sorted(draw[key]["share"] for draw in draws if draw[key]["share"] == draw[key]["share"]) for key in draws[0]}
    return {key: (shares[int(0.025 * len(shares))], shares[int(0.975 * len(shares))]) for key, shares in found.items()}


def picture(grid, plans, count):
    """Right answers against thinking tokens used: fixed budgets, the plan, the oracles."""
    every = range(count)
    least, most = (point(grid[budget], every)[0] for budget in (0, WHOLE))
    steps = [least + (most - least) * step / 100 for step in range(101)]
    lines = {
        "one budget for all": ("#888", [point(outcomes, every)[::-1] for outcomes in grid.values()]),
        "decided for each": ("#06c", sorted(point(plan, every)[::-1] for plan in plans.values())),
        "oracle, by length": ("#0a0", [(by_length(grid[0], grid[WHOLE], every, share), share) for share in steps]),
        "oracle, by outcome": ("#080", [(by_outcome(grid[0], grid[WHOLE], every, share), share) for share in steps]),
    }
    most = max(x for _, points in lines.values() for x, _ in points)
    place = lambda x, y: f"{50 + 520 * x / most:.1f},{350 - 320 * y:.1f}"
    shapes = []
    for at, (name, (colour, points)) in enumerate(lines.items()):
        path = " ".join(place(x, y) for x, y in points)
        shapes.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        shapes.append(f'<text x="420" y="{274 + 16 * at}" fill="{colour}">{name}</text>')
    for share in range(0, 101, 20):
        shapes.append(f'<text x="8" y="{354 - 3.2 * share:.0f}">{share} %</text>')
    for tokens in range(0, int(most) + 1, 20):
        shapes.append(f'<text x="{45 + 520 * tokens / most:.0f}" y="370">{tokens}</text>')
    shapes.append('<text x="250" y="390">thinking tokens used</text>')
    return ('<svg xmlns="http://www.w3.org/2000/svg" width="600" height="400" font-family="sans-serif" font-size="12">'
            '<rect width="600" height="400" fill="#fff"/>' + "".join(shapes) + "</svg>\n")


class Answers:
    """What was answered so far, arm by arm, in a file where one is named."""

    def __init__(self, path, count):
        self.path, self.count = path, count
        self.arms = json.loads(path.read_text()) if path and path.exists() else {}

    def get(self, arm, measure):
        if len(self.arms.get(arm, ())) != self.count:
            self.arms[arm] = measure()
            if self.path:
                self.path.write_text(json.dumps(self.arms))
        return self.arms[arm]


NOTE = (
    "Two readings of one measurement. In the first the oracle knows how long each thought gets and nothing else, and is held against the best single "
    "budget. It is no bound: it lets a thought run whole or not at all, while a plan may also cut one near its end, so that a share can pass 100 %. Where little "
    "is to be saved, as at high accuracies, the share is of a small difference and its interval wide. The second reading is harder on both sides: "
    "the oracle knows besides which thoughts turn a wrong answer into a right one, which no estimate of lengths can, and two budgets may be mixed."
)
TITLES = {
    "by length": "**Against the best single budget; the oracle knows each thought's length.** It lets the shortest run to their ends, right or "
                 "wrong, and has the others answered without a thought.",
    "by outcome": "**Against any mixture of two budgets; the oracle knows length and outcome.** It lets only those run that make a wrong answer right.",
}
COLUMNS = {"by length": "best single budget | oracle", "by outcome": "best mixture of budgets | oracle"}


def lost(plans, grid, lengths):
    """How good the predicted lengths are, and what better ones would save."""
    blind, whole, every = grid[0], grid[WHOLE], range(len(lengths))
    logarithms = [(math.log(max(1, said)), math.log(max(1, whole[at][1]))) for at, said in enumerate(lengths)]
    off = sorted(abs(whole[at][1] - said) / max(1, whole[at][1]) for at, said in enumerate(lengths))
    differences = [true - said for said, true in logarithms]
    wrong = [thought for right, thought in whole if not right]
    lines = [
        "**What is lost where.** Tokens for the accuracy reached: by the plan, by whole thoughts, the shortest first as predicted and as they are, and by the "
        "oracle of the second table.", "",
        "| stated | the plan | shortest as predicted | shortest | oracle of lengths and outcomes |", "|---|---|---|---|---|",
    ]
    for target, plan in plans.items():
        accuracy, tokens = point(plan, every)
        said, true = by_length(blind, whole, every, accuracy, lengths), by_length(blind, whole, every, accuracy)
        lines.append(f"| {target} % | {tokens:.1f} | {said:.1f} | {true:.1f} | {by_outcome(blind, whole, every, accuracy):.1f} |")
    return [
        *lines, "",
        f"The predicted medians (`/v1/plan` on the same problems) are off by {100 * off[len(off) // 2]:.0f} % in the median and "
        f"{100 * off[int(0.9 * len(off))]:.0f} % at the ninth decile. Between the logarithms of predicted and true lengths the correlation is "
        f"{statistics.correlation(*zip(*logarithms)):.2f}, the mean difference {mean(differences):+.2f} and its standard deviation "
        f"{statistics.pstdev(differences):.2f}. {len(wrong)} of the {len(whole)} problems stay wrong with a whole thought, which takes them "
        f"{mean(wrong):.0f} tokens on average.",
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--base-url", default="http://127.0.0.1:8080")
    parser.add_argument("--per-level", type=int, default=200)
    parser.add_argument("--warm", type=int, default=400)
    parser.add_argument("--concurrency", type=int, default=16)
    parser.add_argument("--answers", type=Path)
    parser.add_argument("--out", type=Path, default=Path("load-tests/results"))
    options = parser.parse_args()
    gateway = Gateway(options.base_url)
    # The last problems of a longer list differ from those that are measured.
    measured = problems(options.per_level, 0)
    known = {problem["question"] for problem in measured}
    warm = [p for p in problems(options.per_level + options.warm // 2, 1) if p["question"] not in known][:options.warm]

    answers = Answers(options.answers, len(measured))

    def run(listed, model, budget=None):
        print(f"{model} at {budget}", file=sys.stderr)
        with ThreadPoolExecutor(options.concurrency) as pool:
            return list(pool.map(lambda problem: ask(gateway, model, problem, budget), listed))

    def steered(target):
        run(warm, f"aim-{target}")
        return run(measured, f"aim-{target}")

    def before():
        with ThreadPoolExecutor(options.concurrency) as pool:
            return list(pool.map(lambda problem: foretold(gateway, problem), measured))

    grid = {budget: answers.get(f"reasoner {budget}", lambda: run(measured, "reasoner", budget)) for budget in GRID}
    plans = {target: answers.get(f"aim-{target}", lambda: steered(target)) for target in TARGETS}
    lengths, count = answers.get("foretold", before), len(measured)
    told, sure = rows(plans, grid, range(count)), intervals(plans, grid, count)
    lines = [
        "# What deciding each thinking budget saves", "",
        f"`make budgets` on {count} held-out problems of the card, {count // len({p['level'] for p in measured})} of each level, the embedded model, "
        "greedy; how it is measured stands in `load-tests/budgets.py`.", "", NOTE,
    ]
    for reading, title in TITLES.items():
        lines += ["", title, "", "| stated | right | thinking tokens used | " + COLUMNS[reading] + " | saved of what the oracle would save | 95 % |",
                  "|---|---|---|---|---|---|---|"]
        for target in plans:
            whole, (low, high) = told[reading, target], sure[reading, target]
            lines.append(f"| {target} % | {100 * whole['right']:.1f} % | {whole['plan']:.1f} | {whole['fixed']:.1f} | {whole['oracle']:.1f} "
                         f"| **{100 * whole['share']:.0f} %** | {100 * low:.0f} to {100 * high:.0f} |")
    lines += ["", *lost(plans, grid, lengths)]
    lines += ["", "| budget for all | right | thinking tokens used |", "|---|---|---|"]
    for budget, outcomes in grid.items():
        right, thought = point(outcomes, range(count))
        lines.append(f"| {budget} | {100 * right:.1f} % | {thought:.1f} |")
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "budgets.md").write_text("\n".join(lines) + "\n\n![the whole curve](budgets.svg)\n")
    (options.out / "budgets.svg").write_text(picture(grid, plans, count))
    print("\n".join(lines))


if __name__ == "__main__":
    main()
