"""Contract 2: rows of two kernels agree within a tolerance, or the row is sensitive to rounding itself."""

from echobound.kernels.sensitivity import TOLERANCE, compare_rows, relative


def agreement(problem, one, other, indices, tolerance=TOLERANCE):
    """Return (rows that agree, rows that are sensitive, rows that disagree)."""
    rows, others = one.evaluate(problem, indices), other.evaluate(problem, indices)
    for name in ("stream", "family", "index", "order"):
        assert (rows[name] == others[name]).all(), name
    agree, sensitive, disagree = 0, 0, []
    for row, twin in zip(rows, others, strict=True):
        found = compare_rows(problem, one, row, twin, tolerance)
        agree, sensitive = agree + (found == "same"), sensitive + (found == "sensitive")
        if found == "different":
            disagree.append((int(row["index"]), relative(row["scores"], twin["scores"])))
    return agree, sensitive, disagree
