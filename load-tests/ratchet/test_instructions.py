"""What the requests are whose instructions are counted."""

import unittest

import instructions


class Kinds(unittest.TestCase):
    def test_answers_in_one_piece_state_a_limit_so_that_none_is_streamed(self):
        for name in ("plain", "auto"):
            kind = instructions.KINDS[name]
            self.assertLessEqual(kind["max_tokens"], 4096, name)
            self.assertNotIn("stream", kind)


if __name__ == "__main__":
    unittest.main()
