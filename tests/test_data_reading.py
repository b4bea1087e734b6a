"""Reading tables: the layouts that occur, real files, and refusals that name the column and the row."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echobound.data import Record, read_csv, read_table
from echobound.data.frames import table_of_frame
from echobound.errors import DataError

DATA = Path(__file__).parents[1].parent / "shared" / "data"
Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(content: str | bytes, encoding: str = "utf-8", name: str = "plant.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode(encoding))
        return path

    return write


@pytest.mark.parametrize(
    "text",
    [
        "u,v,y\n1,2,3.5\n4,5,-6e-1\n",
        "u,v,y\r\n1,2,3.5\r\n4,5,-6e-1",
        "u,v,y\r1,2,3.5\r4,5,-6e-1\r",
        "u;v;y\n1;2;3.5\n4;5;-6e-1\n",
        "u;v;y\n1;2;3,5\n4;5;-6e-1\n",
        "u\tv\ty\n1\t2\t3.5\n4\t5\t-6e-1\n",
        "  u   v  y\n  1 2   3.5 \n  4\t5 -6e-1\n",
        "u, v, y,\n1, 2, 3.5,\n4, 5, -6e-1,\n",
        "u,v,y\n1,2,3.5,,\n4,5,-6e-1,,\n",
        '"u","v","y"\n"1","2","3.5"\n4,5,-6e-1\n,,\n,,\n',
        "# made by hand\n% twice\n\nu,v,y\n\n1,2,3.5\n\n4,5,-6e-1\n\n",
        '"u";"v";"y"\n1;"2";3,5\n4;5;-0,6\n',
        "u,v,y\n1,2,+3.5\n4,5,-.6\n\x1a",
    ],
)
def test_the_shapes_that_tables_come_in(write: Write, text: str) -> None:
    table = read_table(write(text))
    assert table.columns == ("u", "v", "y")
    assert table.signal(["u", "v", "y"]).tolist() == [[1.0, 2.0, 3.5], [4.0, 5.0, -0.6]]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
def test_encodings(write: Write, encoding: str) -> None:
    table = read_table(write("Zufluß;ü\n1,5;2\n", encoding))
    assert table.columns == ("Zufluß", "ü")
    assert table.signal("Zufluß").tolist() == [[1.5]]


def test_without_a_header_columns_have_numbers(write: Write) -> None:
    table = read_table(write("1 2 nan\n3 4 5\n"))
    assert table.columns == ("column 1", "column 2", "column 3")
    assert table.signal(["2", 1, "column 1"]).tolist() == [[2.0, 1.0, 1.0], [4.0, 3.0, 3.0]]


def test_a_name_made_of_digits_is_a_name_first() -> None:
    frame = pandas.DataFrame({"a": [10], "1": [20], "b": [30]})
    table = table_of_frame(frame)
    assert table.signal(["1", 1, "3"]).tolist() == [[20.0, 10.0, 30.0]]


def test_a_single_column_may_have_a_name_with_spaces(write: Write) -> None:
    table = read_table(write("flow rate\n1\n2\n"))
    assert table.columns == ("flow rate",)
    assert table.signal(1).tolist() == [[1.0], [2.0]]


def test_a_quoted_name_may_hold_separators_and_line_breaks(write: Write) -> None:
    path = write('"flow, acid;\n(mL/s)",y\n1,2\n3,oops\n')
    assert read_table(path).columns == ("flow, acid; (mL/s)", "y")
    assert read_table(path).signal("flow, acid;\n(mL/s)").tolist() == [[1.0], [3.0]]
    with pytest.raises(DataError, match="holds 'oops' in row 4"):
        read_table(path).signal("y")


def test_unused_columns_may_hold_anything(write: Write) -> None:
    record = read_csv(write("when,u,note,y\n2020-01-01,1,,5\nlater,2,nan,6\n"), "u", "y")
    assert (record.u.tolist(), record.y.tolist()) == ([[1.0], [2.0]], [[5.0], [6.0]])
    assert (record.input_names, record.name, record.sampling_time) == (("u",), "plant.csv", 1.0)


@given(st.lists(st.tuples(*[st.floats(allow_nan=False, allow_infinity=False)] * 2), min_size=1, max_size=20))
def test_numbers_come_back_bit_by_bit(
    tmp_path_factory: pytest.TempPathFactory, samples: list[tuple[float, float]]
) -> None:
    text = io.StringIO()
    csv.writer(text).writerows([("u", "y"), *samples])
    path = tmp_path_factory.mktemp("csv") / "r.csv"
    path.write_text(text.getvalue())
    assert read_table(path).signal(["u", "y"]).tobytes() == np.array(samples).tobytes()


@pytest.mark.parametrize(
    ("cell", "found"),
    [
        ("abc", "holds 'abc'"),
        ("nan", "holds 'nan'"),
        ("-inf", "holds '-inf'"),
        ("1e999", "holds '1e999'"),
        ("", "is empty"),
        ("NA", "holds 'NA'"),
        ("1_000", "holds '1_000'"),
        ('"1,5"', "holds '1,5'"),
        ("True", "holds 'True'"),
    ],
)
def test_what_is_no_number_is_refused_with_column_and_row(write: Write, cell: str, found: str) -> None:
    path = write(f"# comment\nu,y\n1,2\n\n3,{cell}\n4,5\n")
    with pytest.raises(DataError) as refusal:
        read_csv(path, "u", "y")
    assert f"column 'y' of plant.csv {found} in row 5: finite numbers are needed" in str(refusal.value)


def test_all_bad_cells_are_counted(write: Write) -> None:
    with pytest.raises(DataError, match=r"is empty in row 3 \(2 such cells in all: rows 3, 4\)"):
        read_csv(write("u,y\n1,2\n1\n1,\n1,1\n"), "u", "y")


def test_a_row_number_counts_from_the_first_line_without_header(write: Write) -> None:
    with pytest.raises(DataError, match=r"column 'column 2' of plant\.csv holds 'x' in row 2"):
        read_csv(write("1 2\n3 x\n"), 1, 2)


@pytest.mark.parametrize("text", ["a;b\n1,5;2\n1.234,5;3\n", "a;b\n1,5;2\n1.5;3\n"])
def test_points_and_commas_in_one_column_are_refused(write: Write, text: str) -> None:
    with pytest.raises(DataError, match="column 'a'"):
        read_table(write(text)).signal("a")


def test_an_unknown_column_lists_those_there_are(write: Write) -> None:
    table = read_table(write("u,y\n1,2\n"))
    for column in ("z", 0, 3, "3", "-1", "U", ""):
        with pytest.raises(DataError, match=f"there is no column '{column}': plant.csv has the columns u, y; give"):
            table.signal([column])
    many = read_table(write(",".join(f"c{i}" for i in range(40)) + "\n" + ",".join("1" * 40)))
    with pytest.raises(DataError, match="c28, c29 and 10 more; give"):
        many.signal("z")


def test_a_column_has_one_part_to_play(write: Write) -> None:
    path = write("u,y\n1,2\n3,4\n")
    for inputs, outputs, time in (("u", "u", None), (["u", 1], "y", None), ("u", "y", "y")):
        with pytest.raises(DataError, match="is used twice"):
            read_csv(path, inputs, outputs, time=time)
    with pytest.raises(DataError, match=r"at least one output column: plant\.csv has the columns u, y"):
        read_csv(path, "u", [])
    with pytest.raises(DataError, match="at least one input column"):
        read_csv(path, [], "y")


def test_a_name_that_stands_for_two_columns_is_refused_and_their_numbers_are_not(write: Write) -> None:
    table = read_table(write("u,y,u\n1,2,3\n"))
    with pytest.raises(DataError, match="several columns named 'u': say which by its number, 1 and 3"):
        table.signal("u")
    assert table.signal([3]).tolist() == [[3.0]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "plant.csv is empty"),
        (b"\n \n\r\n", "plant.csv is empty"),
        (b"# only a comment\n", "plant.csv is empty"),
        (b",,,\n,,\n", "plant.csv is empty"),
        (b"u,y\n", "has a header and no samples"),
        (b"u,y\n,\n\n", "has a header and no samples"),
        (b"\x00\x01\x02\x03", "is a binary file"),
        (gzip.compress(b"u,y\n1,2\n", mtime=0), "is a binary file"),
        (b"u,y\n1,2\n\x1b[0m", "is a binary file"),
        (b"u,1\n2,3\n", "row 1 of plant.csv mixes text and numbers"),
        (b"valve 1.5\nload 1.6\n", "mixes text and numbers.*transpose the table"),
        (b"2020-01-01 1.5\n2020-01-02 1.6\n", "column 'column 1' of plant.csv holds '2020-01-01' in row 1"),
        (b"u y\n1 2\n1 2 3\n", "row 3 of plant.csv has 3 cells, but its first row has 2"),
        (b"u,y\n1,1,2\n2,3,4\n", "row 2 of plant.csv has 3 cells, but its first row has 2"),
        (b"u,y\n1," + b"x" * 200_000, "is not a table of numbers"),
    ],
    ids=lambda value: repr(value[:20]),
)
def test_files_that_are_no_tables_are_refused(write: Write, content: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message) as refusal:
        read_csv(write(content), 1, 2)
    assert "\n" not in str(refusal.value)


def test_files_that_cannot_be_opened_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"there is no file .*nowhere\.csv: check"):
        read_table(tmp_path / "nowhere.csv")
    with pytest.raises(DataError, match=r"cannot read .* \(Is a directory\)"):
        read_table(tmp_path)


def timed(write: Write, times: list[str], **arguments: float) -> Record:
    text = "t,u,y\n" + "".join(f"{time},{i},{i}\n" for i, time in enumerate(times))
    return read_csv(write(text), "u", "y", time="t", **arguments)


@given(
    step=st.floats(1e-4, 1e4),
    start=st.sampled_from([0.0, -3.0, 1e5]),
    count=st.integers(2, 60),
    digits=st.integers(4, 9),
)
def test_the_printing_of_regular_times_is_forgiven(
    tmp_path_factory: pytest.TempPathFactory, step: float, start: float, count: int, digits: int
) -> None:
    """Times are printed with as many decimals as give a step `digits` significant digits."""
    decimals = max(0, digits - 1 - int(np.floor(np.log10(step))))
    rows = "".join(f"{start + i * step:.{decimals}f},{i},{i}\n" for i in range(count))
    path = tmp_path_factory.mktemp("times") / "r.csv"
    path.write_text("t,u,y\n" + rows)
    found = read_csv(path, "u", "y", time="t").sampling_time
    assert found == pytest.approx(step, abs=10.0**-decimals + 2 * np.spacing(abs(start) + count * step), rel=1e-9)


def test_the_sampling_time_comes_from_the_time_column(write: Write) -> None:
    assert timed(write, [f"{i / 10:.1f}" for i in range(101)]).sampling_time == 0.1
    assert timed(write, ["0", "0.333", "0.667", "1"]).sampling_time == pytest.approx(1 / 3)
    assert timed(write, ["5", "15", "25"], sampling_time=10.0).sampling_time == 10.0
    assert timed(write, ["0", "9.999", "19.998"], sampling_time=10.0).sampling_time == 10.0


@pytest.mark.parametrize(
    ("times", "message"),
    [
        (
            ["0", "10", "20", "40", "50"],
            "time column 't' of plant.csv is irregular at row 5: a step of 10 was expected, found 20: resample the data"
            r" to one sampling time \(resample=10, --resample 10\), split them at gaps \(missing='split',"
            r" --missing split\), or cut them there$",
        ),
        (["0", "1", "2", "4", "5", "6"], "irregular at row 5: a step of 1 was expected, found 2"),
        (["0", "1", "1", "2", "3", "4"], "irregular at row 4: a step of 1 was expected, found 0"),
        (["0", "1", "2", "1.5", "3", "4"], "irregular at row 5: a step of 1 was expected, found -0.5"),
        (["0.00", "1.00", "2.01", "3.00", "4.00", "5.001"], "irregular at row 4"),
        (["3", "2", "1"], "must increase from row to row"),
        (["1", "1", "1"], "must increase from row to row"),
        (["1"], "has one row: two are needed"),
        (["0", "noon", "2"], "column 't' of plant.csv holds 'noon' in row 3"),
    ],
)
def test_irregular_times_are_refused_with_their_row(write: Write, times: list[str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        timed(write, times)


def test_a_contradicting_sampling_time_is_refused(write: Write) -> None:
    with pytest.raises(
        DataError, match=r"the given sampling time is 9 s, but time column 't' of plant\.csv has steps of 10"
    ):
        timed(write, ["0", "10", "20"], sampling_time=9.0)


def test_a_bad_sampling_time_is_refused(write: Write) -> None:
    with pytest.raises(DataError, match="positive number of seconds"):
        read_csv(write("u,y\n1,2\n"), "u", "y", sampling_time=0.0)


@given(st.binary(max_size=60) | st.text(alphabet='01.,;\t\n\r "#-eu', max_size=60).map(str.encode))
def test_any_file_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("any") / "r.csv"
    path.write_bytes(content)
    try:
        table = read_table(path)
    except DataError as refusal:
        assert "\n" not in str(refusal)  # noqa: PT017 (either outcome is right)
        return
    try:
        assert np.isfinite(table.signal(range(1, len(table.columns) + 1))).all()
    except DataError as refusal:
        assert "\n" not in str(refusal)  # noqa: PT017


def real(name: str) -> Path:
    path = DATA / name
    if not path.exists():
        pytest.skip(f"{path} is not there")
    return path


def test_cascaded_tanks() -> None:
    path = real("cascaded_tanks/dataBenchmark.csv")
    estimation = read_csv(path, "uEst", "yEst", sampling_time=4.0)
    assert read_table(path).columns == ("uEst", "uVal", "yEst", "yVal", "Ts")
    assert len(estimation) == 1024
    assert (estimation.u[0, 0], estimation.y[0, 0]) == (3.2567, 5.205)
    with pytest.raises(DataError, match=r"column 'Ts' of dataBenchmark\.csv is empty in row 3"):
        read_csv(path, "uEst", "Ts")


@pytest.mark.parametrize(
    ("name", "samples", "columns"),
    [
        ("daisy_ph/pHdata.dat", 2001, 4),
        ("daisy_cstr/cstr.dat", 7500, 4),
        ("daisy_steamgen/steamgen.dat", 9600, 9),
        ("daisy_glassfurnace/glassfurnace.dat", 1247, 10),
        ("daisy_ballbeam/ballbeam.dat", 1000, 2),
    ],
)
def test_daisy_files_as_numpy_reads_them(name: str, samples: int, columns: int) -> None:
    path = real(name)
    signal = read_table(path).signal(range(1, columns + 1))
    assert signal.shape == (samples, columns)
    assert (signal == np.loadtxt(path)).all()


def test_daisy_and_emps_times_are_regular() -> None:
    assert read_csv(real("daisy_steamgen/steamgen.dat"), [2, 3, 4, 5], [6, 7, 8, 9], time=1).sampling_time == 3.0
    assert read_csv(real("emps/DATA_EMPS.csv"), "vir", "qm", time="t").sampling_time == pytest.approx(1e-3, rel=1e-6)


def test_silverbox_columns_that_end_after_the_first_row() -> None:
    record = read_csv(real("silverbox/Schroeder80mV.csv"), "V1", "V2", sampling_time=1 / 610.35)
    assert len(record) == 131072
    assert record.y[1, 0] == 0.040618
