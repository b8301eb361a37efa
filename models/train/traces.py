"""How the model fares on problems like those it was trained on: the material for estimating, from
a question alone, how long the thought will be and what each budget buys.

    python traces.py --weights out/reasoner.npz --count 4000 > traces.jsonl

None of these problems is held out, so an estimator fitted on them can be judged by the card's.
"""

import argparse
import json
import random

import evaluate
import examples
import problems
import reasoner
import train


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weights", required=True)
    parser.add_argument("--count", type=int, default=4000)
    parser.add_argument("--seed", default="traces")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    levels = rng.choices(range(6), examples.LEVEL_SHARES, k=options.count)
    asked = [problems.draw_for_training(rng, level) for level in levels]
    ours = evaluate.Transcript(train.load(options.weights, reasoner.fresh(0)), asked)
    answers, used = ours.at(evaluate.UNLIMITED)
    correct = {str(b): ours.right(ours.at(b)[0]) for b in evaluate.BUDGETS}
    correct["full"] = ours.right(answers)
    for i, problem in enumerate(asked):
        print(json.dumps({
            "question": problem.question, "level": problem.level, "thinking_tokens": used[i],
            "solution_tokens": len(answers[i]),
            "correct": {budget: bool(right[i]) for budget, right in correct.items()},
        }))


if __name__ == "__main__":
    main()
