"""Measures what deciding each thinking budget saves over one budget for all, through a running gateway, at stated accuracies.

    python load-tests/budgets.py --base-url http://127.0.0.1:8080 --per-level 200 --out load-tests/results

Four routes steer for 50, 70, 85 and 92 % right answers (`success_target`). Each is first asked `--warm` problems that are not
measured, since its price has to find its level; then the held-out problems of the card, in one random order. Beside it stand

    fixed     the least thinking tokens, used on average, with which one budget for all reaches the same accuracy: straight
              lines between the budgets of a grid, which is what mixing two of them comes to
    oracle    who knows how long each thought gets and whether it will be right, and lets only the shortest of those run to
              their ends; all others are answered without a thought

and the share of what the oracle would save that is saved. Intervals are of a paired bootstrap over problems. Standard library
only.
"""

import argparse
import random
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from client import Gateway, held_out

TARGETS = (50, 70, 85, 92)
GRID = (0, 4, 8, 12, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 400)
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


def problems(per_level, seed):
    listed = held_out("--per-level", per_level)
    random.Random(seed).shuffle(listed)
    return listed


def mean(numbers):
    return sum(numbers) / len(numbers)


def point(outcomes, drawn):
    return mean([outcomes[at][0] for at in drawn]), mean([outcomes[at][1] for at in drawn])


def fixed(curve, accuracy):
    """Tokens where the upper hull of the fixed budgets' points reaches an accuracy; none where none does."""
    hull = []
    for right, thought in sorted(curve):
        while len(hull) > 1 and (hull[-1][1] - hull[-2][1]) * (right - hull[-2][0]) >= (thought - hull[-2][1]) * (hull[-1][0] - hull[-2][0]):
            hull.pop()
        hull.append((right, thought))
    for (low, few), (high, many) in zip(hull, hull[1:]):
        if low <= accuracy <= high:
            return few + (many - few) * (accuracy - low) / (high - low) if high > low else few
    return hull[0][1] if accuracy < hull[0][0] else None


def oracle(blind, whole, drawn, accuracy):
    """Tokens of the shortest thoughts that bring so many answers right."""
    wanted = accuracy * len(drawn) - sum(blind[at][0] for at in drawn)
    worth = sorted(whole[at][1] for at in drawn if whole[at][0] and not blind[at][0])
    tokens = 0
    for length in worth:
        if wanted <= 0:
            break
        share = min(1, wanted)
        tokens, wanted = tokens + share * length, wanted - share
    return tokens / len(drawn)


def row(name, plan, grid, drawn):
    accuracy, tokens = point(plan, drawn)
    curve = [point(outcomes, drawn) for outcomes in grid.values()]
    one, best = fixed(curve, accuracy), oracle(grid[0], grid[400], drawn, accuracy)
    saved = (one - tokens) / (one - best) if one and one > best else float("nan")
    return {"name": name, "right": accuracy, "plan": tokens, "fixed": one, "oracle": best, "share": saved}


def interval(make, count):
    dice = random.Random(1)
    shares = sorted(make([dice.randrange(count) for _ in range(count)])["share"] for _ in range(DRAWS))
    return shares[int(0.025 * DRAWS)], shares[int(0.975 * DRAWS)]


def picture(grid, plans, blind, count):
    """Right answers against thinking tokens used: fixed budgets, the plan, the oracle."""
    every = range(count)
    lines = {
        "one budget for all": ("#888", [point(outcomes, every)[::-1] for outcomes in grid.values()]),
        "decided for each": ("#06c", sorted(point(plan, every)[::-1] for plan in plans.values())),
        "oracle": ("#0a0", [(oracle(grid[0], grid[400], every, share / 100), share / 100) for share in range(3, 97)]),
    }
    most = max(x for _, points in lines.values() for x, _ in points)
    place = lambda x, y: f"{50 + 520 * x / most:.1f},{350 - 320 * y:.1f}"
    shapes = []
    for at, (name, (colour, points)) in enumerate(lines.items()):
        path = " ".join(place(x, y) for x, y in points)
        shapes.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        shapes.append(f'<text x="420" y="{290 + 16 * at}" fill="{colour}">{name}</text>')
    for share in range(0, 101, 20):
        shapes.append(f'<text x="8" y="{354 - 3.2 * share:.0f}">{share} %</text>')
    for tokens in range(0, int(most) + 1, 20):
        shapes.append(f'<text x="{45 + 520 * tokens / most:.0f}" y="370">{tokens}</text>')
    shapes.append('<text x="250" y="390">thinking tokens used</text>')
    return ('<svg xmlns="http://www.w3.org/2000/svg" width="600" height="400" font-family="sans-serif" font-size="12">'
            '<rect width="600" height="400" fill="#fff"/>' + "".join(shapes) + "</svg>\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--base-url", default="http://127.0.0.1:8080")
    parser.add_argument("--per-level", type=int, default=200)
    parser.add_argument("--warm", type=int, default=400)
    parser.add_argument("--concurrency", type=int, default=16)
    parser.add_argument("--out", type=Path, default=Path("load-tests/results"))
    options = parser.parse_args()
    gateway = Gateway(options.base_url)
    # The last problems of a longer list are other ones than those that are measured.
    measured = problems(options.per_level, 0)
    known = {problem["question"] for problem in measured}
    warm = [p for p in problems(options.per_level + options.warm // 2, 1) if p["question"] not in known][:options.warm]

    def run(listed, model, budget=None):
        print(f"{model} at {budget}", file=sys.stderr)
        with ThreadPoolExecutor(options.concurrency) as pool:
            return list(pool.map(lambda problem: ask(gateway, model, problem, budget), listed))

    grid = {budget: run(measured, "reasoner", budget) for budget in GRID}
    plans = {}
    for target in TARGETS:
        run(warm, f"aim-{target}")
        plans[target] = run(measured, f"aim-{target}")
    count = len(measured)
    lines = [
        "# What deciding each thinking budget saves", "",
        f"`make budgets` on {count} held-out problems of the card, {count // len({p['level'] for p in measured})} of each level, the embedded model, "
        "greedy; how it is measured stands in `load-tests/budgets.py`.", "",
        "| stated | right | thinking tokens used | one budget for all | oracle | saved of what the oracle would save | 95 % |",
        "|---|---|---|---|---|---|---|",
    ]
    for target, plan in plans.items():
        make = lambda drawn, plan=plan, target=target: row(target, plan, grid, drawn)
        whole, (low, high) = make(range(count)), interval(make, count)
        lines.append(f"| {target} % | {100 * whole['right']:.1f} % | {whole['plan']:.1f} | {whole['fixed']:.1f} | {whole['oracle']:.1f} "
                     f"| **{100 * whole['share']:.0f} %** | {100 * low:.0f} to {100 * high:.0f} |")
    lines += ["", "| budget for all | right | thinking tokens used |", "|---|---|---|"]
    for budget, outcomes in grid.items():
        right, thought = point(outcomes, range(count))
        lines.append(f"| {budget} | {100 * right:.1f} % | {thought:.1f} |")
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "budgets.md").write_text("\n".join(lines) + "\n\n![the whole curve](budgets.svg)\n")
    (options.out / "budgets.svg").write_text(picture(grid, plans, grid[0], count))
    print("\n".join(lines))


if __name__ == "__main__":
    main()
