"""The problems: what is asked, in which words, how hard it is, and who may see it.

A problem is *held out* when the hash of its expression says so. Training never asks a held-out
expression in any wording, nor a longer one that contains it; the card asks nothing else.

Run as a script it prints held-out problems as JSON lines, the same ones on every machine:

    python problems.py --per-level 2000 > problems.jsonl
"""

import argparse
import hashlib
import json
import random
from dataclasses import dataclass

from arithmetic import Number, Product, Total, Unwieldy, composites, identity, steps, work_out, write

THOUGHT_LONGEST = 120  # tokens; every character of a thought is one token
HELD_OUT_ONE_IN = 20
STEPS_BY_LEVEL = {0: (1, 3), 1: (2, 3), 2: (4, 5), 3: (6, 7), 4: (8, 10), 5: (11, 14)}
TERMS_BY_LEVEL = {0: (1, 2), 1: (1, 3), 2: (1, 4), 3: (1, 5), 4: (2, 6), 5: (3, 8)}
CARD_LEVELS = (1, 2, 3, 4, 5)

ASKING = (
    "What is {}?", "What is {}?", "{}=?", "Calculate {}.", "How much is {}?", "{}",
    "Compute {}.", "What's {}?", "Evaluate {}.", "Solve {}.", "{} = ?", "Please calculate {}.",
)
COMPARING = {
    "max": ("Which is larger, {} or {}?", "Which is bigger, {} or {}?", "Which is greater, {} or {}?",
            "What is larger: {} or {}?"),
    "min": ("Which is smaller, {} or {}?", "What is smaller: {} or {}?"),
}
NAMES = ("Anna", "Ben", "Carla", "David", "Emma", "Tom", "Maria", "Paul")
THINGS = ("apples", "pens", "coins", "cards", "eggs", "books", "stamps")
# Each story with the shape of its expression; letters are filled with numbers.
STORIES = (
    ("{N} has {a} {T}, buys {b} more and gives {c} away. How many are left?", "a+b-c"),
    ("{N} buys {a} boxes of {b} {T} and {c} single {T}. How many {T} is that?", "a*b+c"),
    ("A book has {a} pages. {N} reads {b} pages a day for {c} days. How many pages are left?", "a-b*c"),
    ("{N} saves {a} coins a week for {b} weeks and spends {c}. How many coins are left?", "a*b-c"),
    ("A bus carries {a} people. {b} get off and {c} get on. How many people are on the bus?", "a-b+c"),
    ("There are {a} rows of {b} red chairs and {c} rows of {d} blue ones. How many chairs is that?",
     "a*b+c*d"),
)


@dataclass(frozen=True)
class Problem:
    question: str
    answer: str
    thought: str  # every line ends in a newline
    level: int
    identity: str
    held_out: bool
    contains_held_out: bool


def held_out(name):
    """Whether the expression of this identity belongs to the card and never to training."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") % HELD_OUT_ONE_IN == 0


def draw(rng, level):
    """One problem of the level, held out or not."""
    while True:
        try:
            problem = _draw_any(rng, level)
        except Unwieldy:
            continue
        if problem is not None:
            return problem


def draw_for_training(rng, level):
    while True:
        problem = draw(rng, level)
        if not (problem.held_out or problem.contains_held_out):
            return problem


def held_out_problems(level, count, seed=1):
    """The card's problems of one level: distinct expressions, the same in every run."""
    rng, seen, problems = random.Random(f"card {seed} {level}"), set(), []
    while len(problems) < count:
        problem = draw(rng, level)
        if problem.held_out and problem.identity not in seen:
            seen.add(problem.identity)
            problems.append(problem)
    return problems


def _draw_any(rng, level):
    kind = rng.random()
    if kind < 0.11:
        return _comparison(rng, level)
    if kind < 0.25 and 1 <= level <= 4:
        return _story(rng, level)
    return _plain(rng, level)


def _plain(rng, level):
    expression = _expression(rng, level)
    if level > 0 and _is_one_sum(expression):
        return None
    if level == 1 and isinstance(expression, Product) and rng.random() < 0.6:
        return None  # else most of the level would be such products
    asked = rng.choice(ASKING).format(write(expression, _gap(rng)))
    value, lines = work_out(expression)
    return _problem(level, asked, value, lines, identity(expression), composites(expression), rng)


def _comparison(rng, level):
    """The answer is the larger (or smaller) value itself."""
    left, right = _expression(rng, rng.randint(0, level)), _expression(rng, rng.randint(0, level))
    if level == 0 or rng.random() < 0.1:
        right = Number(_term(rng))
    if level == 0:
        left = Number(_term(rng))
    if rng.random() < 0.5:
        left, right = right, left
    (a, lines_a), (b, lines_b) = work_out(left), work_out(right)
    lines = lines_a + lines_b + [f"{a}{'<' if a < b else '>' if a > b else '='}{b}"]
    pick = rng.choice(("max", "min"))
    gap = _gap(rng)
    asked = rng.choice(COMPARING[pick]).format(write(left, gap), write(right, gap))
    name = f"{pick}({','.join(sorted((identity(left), identity(right))))})"
    parts = [*composites(left), *composites(right)]
    return _problem(level, asked, {"max": max, "min": min}[pick](a, b), lines, name, parts, rng)


def _story(rng, level):
    story, shape = rng.choice(STORIES)
    numbers = {letter: rng.randint(2, 99) for letter in "abcd"}
    if shape == "a-b*c":
        numbers["a"] = rng.randint(50, 999)
    if shape == "a*b+c*d" or rng.random() < 0.6:
        numbers["b"] = min(numbers["b"], rng.randint(2, 20))
    expression = _shaped(shape, numbers)
    value, lines = work_out(expression)
    if value < 0:
        return None
    asked = story.format(N=rng.choice(NAMES), T=rng.choice(THINGS), **numbers)
    return _problem(level, asked, value, lines, identity(expression), composites(expression), rng)


def _shaped(shape, numbers):
    terms, sign = [], "+"
    for piece in shape.replace("+", " + ").replace("-", " - ").split():
        if piece in "+-":
            sign = piece
            continue
        factors = tuple(Number(numbers[letter]) for letter in piece.split("*"))
        terms.append((sign, factors[0] if len(factors) == 1 else Product(factors)))
    return Total(tuple(terms))


def _problem(level, question, value, lines, name, parts, rng):
    """None when it turned out easier or harder than the level asked for."""
    low, high = STEPS_BY_LEVEL[level]
    thought = "".join(f"{line}\n" for line in lines)
    if not low <= steps(lines) <= high or len(thought) > THOUGHT_LONGEST:
        return None
    if "-" in str(value) and rng.random() < 0.8:
        return None  # negative results stay the exception they are in life
    inner = any(held_out(identity(part)) for part in parts)
    return Problem(question, str(value), thought, level, name, held_out(name), inner)


def _expression(rng, level):
    low, high = TERMS_BY_LEVEL[level]
    count = rng.randint(low, high)
    if count == 1:
        return _product(rng, level)
    terms = [("+", _part(rng, level))]
    terms += [(rng.choice("+-"), _part(rng, level)) for _ in range(count - 1)]
    return Total(tuple(terms))


def _is_one_sum(expression):
    terms = getattr(expression, "terms", ())
    return len(terms) == 2 and all(isinstance(term, Number) for _, term in terms)


def _part(rng, level):
    kind = rng.random()
    if level == 0 or kind < 0.62:
        return Number(_term(rng))
    if kind < 0.90:
        return _product(rng, level)
    return _small_total(rng)


def _product(rng, level):
    """Mostly by a digit; two digits by two from level 3 on; sometimes with a bracket."""
    left = Number(rng.randint(2, 9) if level == 0 else rng.randint(2, 99))
    digit = level < 3 or rng.random() < 0.7
    right = Number(rng.randint(2, 9) if digit else min(rng.randint(11, 99), rng.randint(11, 99)))
    if level > 0 and rng.random() < 0.25:
        left = _small_total(rng)
    factors = (left, right) if rng.random() < 0.6 else (right, left)
    if level > 1 and rng.random() < 0.06:
        factors = tuple(Number(rng.randint(2, 9)) for _ in range(3))
    return Product(factors)


def _small_total(rng):
    count = 2 if rng.random() < 0.8 else 3
    terms = [("+", Number(rng.randint(1, 99)))]
    terms += [(rng.choice("+-"), Number(rng.randint(1, 99))) for _ in range(count - 1)]
    return Total(tuple(terms))


def _term(rng):
    kind = rng.random()
    return rng.randint(1, 9) if kind < 0.20 else rng.randint(10, 99) if kind < 0.93 else rng.randint(100, 999)


def _gap(rng):
    return " " if rng.random() < 0.35 else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--per-level", type=int, default=2000)
    parser.add_argument("--levels", default=",".join(map(str, CARD_LEVELS)))
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    for level in map(int, options.levels.split(",")):
        for p in held_out_problems(level, options.per_level, options.seed):
            print(json.dumps({"question": p.question, "answer": p.answer, "level": p.level}))


if __name__ == "__main__":
    main()
