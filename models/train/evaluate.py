"""Accuracy at every thinking budget on held-out problems, and beside it what others would get.

    python evaluate.py --out out --per-level 2000

At equal total tokens, which is the cap of the divided budget (thought + hand-off + solution):

    undivided     one limit for everything; the answer counts if it ended before the limit
    no thinking   the thought is closed before it starts, by the chat template
    uncut         the same hand-off on a model that was never trained on cut thoughts
"""

import argparse
import os

import numpy as np

import decode
import problems
import reasoner
import train
import vocabulary as v

BUDGETS = (0, 8, 16, 32, 64, 128)
SOLUTION = 8
UNLIMITED = "unlimited"


class Transcript:
    """One model's thoughts on a list of problems, and what it answers from any part of them."""

    def __init__(self, weights, asked):
        self.weights, self.asked = weights, asked
        self.prompts = [v.prompt(p.question) for p in asked]
        self.thoughts = decode.think(weights, self.prompts)
        self.full = self._answers(
            [p + t + list(v.HAND_OFF[1:]) for p, t in zip(self.prompts, self.thoughts)]
        )

    def at(self, budget):
        """Answers and thought lengths. A thought that ended by itself needs no hand-off, and its
        answer is the one it has without a budget."""
        answers = list(self.full)
        used = [len(t) for t in self.thoughts]
        if budget != UNLIMITED:
            cut = [i for i, t in enumerate(self.thoughts) if len(t) >= budget]
            starts = [self.prompts[i] + self.thoughts[i][:budget] + list(v.HAND_OFF) for i in cut]
            for i, short in zip(cut, self._answers(starts)):
                answers[i], used[i] = short, budget
        return answers, used

    def without_thinking(self):
        return self._answers([p + [v.THINK_END, v.BLANK_LINE] for p in self.prompts])

    def right(self, answers):
        return np.array([v.decode(a) == p.answer for a, p in zip(answers, self.asked)])

    def _answers(self, starts):
        return decode.answer(self.weights, starts, SOLUTION)


def table(weights, uncut, asked):
    """One row per budget; accuracies are arrays over the problems. `uncut` may not be there yet."""
    ours = Transcript(weights, asked)
    theirs = uncut and Transcript(uncut, asked)
    full, used = ours.at(UNLIMITED)
    # thought, </think>, blank line, answer, <|im_end|>
    whole = np.array(used) + 2 + np.array([len(a) for a in full]) + 1
    direct = ours.right(ours.without_thinking())
    rows = []
    for budget in (*BUDGETS, UNLIMITED):
        answers, used = ours.at(budget)
        cap = np.inf if budget == UNLIMITED else budget + len(v.HAND_OFF) + SOLUTION
        rows.append({
            "budget": budget, "used": np.array(used), "divided": ours.right(answers),
            "undivided": ours.right(full) & (whole <= cap), "direct": direct,
            "uncut": theirs and theirs.right(theirs.at(budget)[0]),
        })
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="out")
    parser.add_argument("--per-level", type=int, default=2000)
    parser.add_argument("--levels", default=",".join(map(str, problems.CARD_LEVELS)))
    options = parser.parse_args()
    like = reasoner.fresh(0)
    weights = train.load(f"{options.out}/reasoner.npz", like)
    uncut_path = f"{options.out}/uncut.npz"
    uncut = train.load(uncut_path, like) if os.path.exists(uncut_path) else None
    asked = [p for level in map(int, options.levels.split(","))
             for p in problems.held_out_problems(level, options.per_level)]
    levels = np.array([p.level for p in asked])
    names = [f"level {n}" for n in sorted(set(levels))]
    print("| thinking budget | " + " | ".join(names)
          + " | all | thought, tokens | undivided | no thinking | uncut |")
    print("|---" * (len(names) + 6) + "|")
    for row in table(weights, uncut, asked):
        cells = [f"{100 * row['divided'][levels == n].mean():.1f}" for n in sorted(set(levels))]
        cells += [f"**{100 * row['divided'].mean():.1f}**", f"{row['used'].mean():.1f}"]
        cells += ["–" if row[c] is None else f"{100 * row[c].mean():.1f}"
                  for c in ("undivided", "direct", "uncut")]
        print(f"| {row['budget']} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
