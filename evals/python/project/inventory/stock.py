"""Reads the warehouse's files."""

import csv
from dataclasses import dataclass
from decimal import Decimal
from typing import Iterable, List


@dataclass(frozen=True)
class Item:
    """One line of the warehouse's file."""

    sku: str
    name: str
    quantity: int
    price: Decimal


class BadLine(ValueError):
    """A line that can't be read, with its number."""

    def __init__(self, number: int, why: str) -> None:
        super().__init__(f"line {number}: {why}")
        self.number = number


def load(lines: Iterable[str]) -> List[Item]:
    """Reads all items. Empty lines are skipped; a bad one raises BadLine."""
    items = []
    for number, row in enumerate(csv.reader(lines), start=1):
        if not row:
            continue
        if len(row) != 4:
            raise BadLine(number, f"{len(row)} fields instead of 4")
        sku, name, quantity, price = (field.strip() for field in row)
        if not quantity.isdigit():
            raise BadLine(number, f"{quantity!r} is no quantity")
        items.append(Item(sku, name, int(quantity), parse_price(price)))
    return items


def parse_price(text: str) -> Decimal:
    """Reads a price such as 12.50 or 1,250.00."""
    return Decimal(text.replace(",", "."))
