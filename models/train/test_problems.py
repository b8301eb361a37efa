"""python -m unittest, in this folder; standard library only."""

import random
import re
import unittest

import problems
from arithmetic import Number, Product, Total, identity, work_out, write


def sample(level, count=300):
    rng = random.Random(f"test {level}")
    return [problems.draw_for_training(rng, level) for _ in range(count)]


class Problems(unittest.TestCase):
    def test_every_line_of_a_thought_is_true(self):
        for level in range(6):
            for problem in sample(level):
                for line in problem.thought.splitlines():
                    sides = [eval(side) for side in re.split("[=<>]", line)]
                    if "<" in line or ">" in line:
                        self.assertEqual(sides[0] < sides[1], "<" in line, line)
                    else:
                        self.assertEqual(len(set(sides)), 1, line)

    def test_a_thought_ends_in_the_answer(self):
        for level in range(6):
            for problem in sample(level):
                self.assertIn(problem.answer, re.split(r"[=<>\n]", problem.thought)[-3:])

    def test_training_never_meets_a_held_out_expression(self):
        for level in problems.CARD_LEVELS:
            card = {p.identity for p in problems.held_out_problems(level, 100)}
            self.assertFalse(card & {p.identity for p in sample(level)})
            self.assertTrue(all(problems.held_out(name) for name in card))

    def test_the_card_asks_the_same_every_time(self):
        self.assertEqual(problems.held_out_problems(3, 20), problems.held_out_problems(3, 20))

    def test_orders_of_the_same_sum_share_an_identity(self):
        one = Total((("+", Number(12)), ("+", Product((Number(34), Number(5))))))
        other = Total((("+", Product((Number(5), Number(34)))), ("+", Number(12))))
        self.assertEqual(identity(one), identity(other))

    def test_below_zero_the_other_way_round_comes_first(self):
        expression = Total((("+", Number(53)), ("-", Number(57))))
        self.assertEqual(work_out(expression), (-4, ["57-53=7-3=4", "53-57=-4"]))

    def test_products_are_worked_out_digit_by_digit(self):
        expression = Product((Number(34), Number(27)))
        self.assertEqual(write(expression), "34*27")
        self.assertEqual(work_out(expression),
                         (918, ["34*20=600+80=680", "34*7=210+28=238", "680+238=880+38=910+8=918"]))


if __name__ == "__main__":
    unittest.main()
