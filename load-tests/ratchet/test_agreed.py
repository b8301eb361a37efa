"""What the ratchet says of a change."""

import unittest

import agreed

AGREED = {"allocations.plain": {"count": 1000, "bytes": 50_000}}


def said(**measured):
    return [str(change) for change in changes(**measured)]


def changes(**measured):
    return list(agreed.changes(AGREED, {"allocations.plain": measured}))


class Ratchet(unittest.TestCase):
    def test_three_percent_either_way_are_chance(self):
        self.assertEqual(said(count=1030, bytes=48_500), [])

    def test_more_is_named_as_worse(self):
        [change] = said(count=1031, bytes=50_000)
        self.assertIn("allocations.plain.count: 1,031 where 1,000 is agreed, 3.1 % worse", change)

    def test_less_is_to_be_kept(self):
        [change] = said(count=1000, bytes=38_000)
        self.assertIn("24.0 % better", change)
        self.assertIn("make ratchet-set", change)

    def test_only_what_is_worse_or_new_breaks_anything(self):
        for measured, breaks in ({"count": 1031}, True), ({"count": 900}, False), ({"events": 3}, True):
            [change] = changes(**measured)
            self.assertEqual(change.breaks, breaks, measured)

    def test_a_number_that_nobody_agreed_on_is_told(self):
        [change] = said(events=3)
        self.assertIn("nothing agreed", change)


if __name__ == "__main__":
    unittest.main()
