"""What the paper prints: 21 orders, best FIT, violations among 500 fresh networks."""

from typing import NamedTuple


class PaperRow(NamedTuple):
    """One row of the paper's table."""

    order: int
    best_violations: int
    worst_violations: int
    best_fit: float


PAPER = {
    row.order: row
    for row in (
        PaperRow(10, 0, 0, 82.30),
        PaperRow(20, 0, 0, 84.57),
        PaperRow(30, 1, 0, 85.40),
        PaperRow(40, 1, 1, 86.10),
        PaperRow(50, 0, 0, 87.08),
        PaperRow(60, 3, 4, 87.10),
        PaperRow(70, 0, 1, 87.73),
        PaperRow(80, 0, 1, 88.06),
        PaperRow(90, 3, 0, 87.79),
        PaperRow(100, 0, 0, 87.95),
        PaperRow(120, 0, 3, 88.42),
        PaperRow(140, 0, 4, 88.75),
        PaperRow(160, 0, 0, 89.04),
        PaperRow(180, 0, 4, 89.20),
        PaperRow(200, 1, 2, 89.15),
        PaperRow(250, 0, 0, 89.88),
        PaperRow(300, 0, 3, 90.15),
        PaperRow(350, 0, 2, 90.16),
        PaperRow(400, 0, 1, 90.11),
        PaperRow(450, 3, 0, 89.85),
        PaperRow(500, 0, 1, 90.08),
    )
}
PAPER_ORDERS = tuple(PAPER)
