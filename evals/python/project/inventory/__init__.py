"""What is in stock, from the files that the warehouse sends."""

from .report import low_stock, total_value
from .stock import Item, load

__all__ = ["Item", "load", "low_stock", "total_value"]
