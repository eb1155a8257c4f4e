"""What the office wants to know."""

from decimal import Decimal
from typing import Iterable, List

from .stock import Item


def total_value(items: Iterable[Item]) -> Decimal:
    """What all items together are worth."""
    return sum((item.price * item.quantity for item in items), Decimal(0))


def low_stock(items: Iterable[Item], least: int = 5) -> List[str]:
    """The names of the items of which fewer than `least` are left, the fewest first."""
    low = [item for item in items if item.quantity < least]
    return [item.name for item in sorted(low, key=lambda item: item.quantity)]
