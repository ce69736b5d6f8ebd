"""Comparing a measured number with a threshold, in one way everywhere: the ledger and every gate use this."""

from __future__ import annotations

from enum import StrEnum

TOLERANCE = 1e-9
"""Numbers that differ by no more are equal, so that 0.1 + 0.2 is at least 0.3."""


class Operator(StrEnum):
    """How a measured number is compared with a threshold."""

    GT = "gt"
    GTE = "gte"
    LT = "lt"
    LTE = "lte"
    EQ = "eq"

    @property
    def symbol(self) -> str:
        """The operator as it is printed.

        >>> Operator.GTE.symbol
        '>='
        """
        return {"gt": ">", "gte": ">=", "lt": "<", "lte": "<=", "eq": "="}[self]

    @property
    def wants_small(self) -> bool:
        """Whether smaller numbers are the better ones."""
        return self in {Operator.LT, Operator.LTE}


def holds(measured: float, operator: Operator, threshold: float) -> bool:
    """Whether the measured number is on the right side of the threshold, equal within `TOLERANCE`."""
    match operator:
        case Operator.GT:
            return measured > threshold + TOLERANCE
        case Operator.GTE:
            return measured >= threshold - TOLERANCE
        case Operator.LT:
            return measured < threshold - TOLERANCE
        case Operator.LTE:
            return measured <= threshold + TOLERANCE
        case Operator.EQ:
            return abs(measured - threshold) <= TOLERANCE
