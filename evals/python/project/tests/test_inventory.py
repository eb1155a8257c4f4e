import unittest
from decimal import Decimal

from inventory import load, low_stock, total_value

LINES = [
    "A1,Hammer,12,9.90",
    "",
    'A2,Lathe,2,"1,250.00"',
    "A3,Nail,0,0.02",
]


class InventoryTest(unittest.TestCase):
    def test_thousands_are_read(self):
        self.assertEqual(load(LINES)[1].price, Decimal("1250.00"))

    def test_the_total(self):
        self.assertEqual(total_value(load(LINES)), Decimal("2618.80"))

    def test_low_stock_begins_with_the_fewest(self):
        self.assertEqual(low_stock(load(LINES)), ["Nail", "Lathe"])

    def test_a_bad_line_says_where_it_is(self):
        with self.assertRaisesRegex(ValueError, "line 2: 'many' is no quantity"):
            load(["A1,Hammer,12,9.90", "A2,Lathe,many,1.00"])


if __name__ == "__main__":
    unittest.main()
