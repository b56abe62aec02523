"""How a data file is written: encoding, separator, header, and the forms of its times and ids."""

import codecs
import csv
import gzip
import io
import re
import zlib
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from windrow.errors import WindrowError
from windrow.pipeline.files import not_packed, times_of
from windrow.pipeline.patterns import parsed

_BYTES = 1 << 18
_YEARS = range(1900, 2101)
_TIME = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d.*)?")
_NEARLY_TIME = re.compile(
    r"\s*(\d{1,4}[-./]\d{1,2}[-./]\d{1,4}\b|\d\d?[-/ ][A-Z][a-z]{2}[-/ ]\d).*"
)
_ONE_DIGIT = r"(^|[^\d:])\d[-./:]"
_DAYS = (
    *("dd.MM.yyyy", "MM/dd/yyyy", "dd/MM/yyyy", "dd-MM-yyyy", "yyyy/MM/dd"),
    *("dd/MMM/yyyy", "dd-MMM-yyyy", "dd MMM yyyy"),
)
_CLOCKS = ("", " HH:mm", " HH:mm:ss", " hh:mm a", " hh:mm:ss a", ":HH:mm:ss", ":HH:mm:ss Z")
PATTERNS = tuple(day + clock for day in _DAYS for clock in _CLOCKS)
"""How times are written where not as 2024-01-31 17:05, by Spark's letters; American ones first."""
DIGITS = "yyyyMMdd"
_COMMA = r"-?(\d{1,3}(\.\d{3})+|\d+),\d+"
_GROUPS = r"-?\d{1,3}([,' ]\d{3})+(\.\d+)?"
_NUMBER = r"-?\d+(\.\d*)?([eE][+-]?\d+)?|NaN|nan|-?[iI]nf(inity)?"
_COINS = r"[$€£¥]\s?-?\d[\d,.]*|-?\d[\d,.]*\s?[$€£¥%]"


def csv_options(file: str) -> dict[str, Any]:
    """Spark's options with which the file can be read, by the look of its beginning.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     _ = file.write("Ann;2024-01-01;1,5\\nBob;2024-01-02;2\\n")
    ...     file.flush()
    ...     csv_options(file.name)
    {'sep': ';', 'header': False}
    """
    opened: Any = gzip.open if file.endswith(".gz") else open
    try:
        with opened(file, "rb") as stream:
            beginning = stream.read(_BYTES)
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise WindrowError(not_packed(file)) from error
    options: dict[str, Any] = {}
    encoding = _encoding(beginning)
    if encoding != "utf-8":
        options["encoding"] = encoding
    text = beginning.decode(encoding, errors="replace").removeprefix("\ufeff")
    first = text.partition("\n")[0]
    if re.fullmatch(r'"?sep=."?\s*', first):
        raise WindrowError(
            f"{file}: its first line, {first.strip()!r}, is for Excel only: remove it"
        )
    counts = {sign: first.count(sign) for sign in (",", ";", "\t", "|")}
    sign = max(counts, key=lambda sign: counts[sign])
    if sign != "," and counts[sign]:
        options["sep"] = sign
    rows = list(csv.reader(io.StringIO(text.replace("\0", ""), newline=""), delimiter=sign))
    if len(beginning) == _BYTES:
        rows = rows[:-1]  # cut off somewhere
    if rows and any(map(_is_value, rows[0])):
        options["header"] = False
    if encoding == "UTF-16" or any("\n" in cell for row in rows for cell in row):
        options["multiLine"] = True  # Spark cuts lines before it decodes them
    return options


def _encoding(beginning: bytes) -> str:
    if beginning.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "UTF-16"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(beginning)
    except UnicodeDecodeError:  # and ISO 8859-1 has nothing but controls where Windows has the €
        return "windows-1252" if re.search(rb"[\x80-\x9f]", beginning) else "ISO-8859-1"
    return "utf-8"


def _is_value(cell: str) -> bool:
    """Whether this can hardly be the name of a column; a year can be one."""
    if _TIME.fullmatch(cell.strip()):
        return True
    try:
        return float(cell) not in _YEARS
    except ValueError:
        return False


def written_as_ids(texts: pa.ChunkedArray, kind: pa.DataType) -> bool:
    """Whether digits are a name here: zeros stand in front, or ``kind`` would lose the last ones.

    >>> written_as_ids(pa.chunked_array([["0012", "0999"]]), pa.int64())
    True
    >>> written_as_ids(pa.chunked_array([["0", "12"]]), pa.int64())
    False
    """
    sure = r"^(0\d+|\d{16,})$" if pa.types.is_floating(kind) else r"^0\d+$"
    digits = pc.all(pc.match_substring_regex(texts, r"^\d+$")).as_py()
    return bool(digits and pc.any(pc.match_substring_regex(texts, sure)).as_py())


def written_as_days(texts: pa.ChunkedArray) -> bool:
    """Whether all are days of our time in eight digits, ``DIGITS``.

    >>> written_as_days(pa.chunked_array([["20240131"]]))
    True
    >>> written_as_days(pa.chunked_array([["20240132"]]))
    False
    """
    present = texts.drop_null()
    if not len(present) or not pc.all(pc.match_substring_regex(present, r"^\d{8}$")).as_py():
        return False
    days = parsed(present, DIGITS)
    return days is not None and all(
        end in _YEARS for end in pc.min_max(pc.year(days)).as_py().values()
    )


def written_as_times(texts: pa.ChunkedArray) -> bool:
    """Whether all are times as ISO 8601 has them."""
    present = texts.drop_null()
    if (
        not len(present)
        or not pc.all(pc.match_substring_regex(present, f"^{_TIME.pattern}$")).as_py()
    ):
        return False
    try:
        times_of(present)
    except pa.ArrowInvalid:
        return False
    return True


def time_pattern(texts: pa.ChunkedArray) -> str | None:
    """The first of ``PATTERNS`` by which all texts are times."""
    present = texts.drop_null()
    if not len(present) or not _NEARLY_TIME.fullmatch(present[0].as_py()):
        return None
    pattern = next((p for p in PATTERNS if parsed(present, p) is not None), None)
    if pattern and pc.min(pc.year(parsed(present, pattern))).as_py() < 100:
        pattern = pattern.replace("yyyy", "yy")
    if pattern and pc.any(pc.match_substring_regex(present, _ONE_DIGIT)).as_py():
        for two in ("dd", "HH", "hh", *(["MM"] if "MMM" not in pattern else [])):
            pattern = pattern.replace(two, two[0])
    return pattern


def day_or_month(name: str, texts: pa.ChunkedArray, pattern: str) -> str | None:
    """What to look at where the days of all times could be months, and these days."""
    other = pattern.translate(str.maketrans("dM", "Md"))
    present = texts.drop_null()
    if not re.match("dd?/MM?/|MM?/dd?/", pattern) or parsed(present, other) is None:
        return None
    return (
        f"{name!r} is read as {pattern}, and {other} would fit as well ({present[0].as_py()!r}): "
        "source.options.timestampFormat says which"
    )


def why_text(name: str, texts: pa.ChunkedArray) -> str | None:
    """What the texts of a column seem to mean, where windrow does not read them so."""
    present = texts.drop_null()
    if not len(present):
        return None

    def share(pattern: str) -> float:
        fits = pc.match_substring_regex(present, f"^\\s*({pattern})\\s*$")
        return float(pc.mean(fits.cast(pa.float64())).as_py())

    def example(pattern: str, fitting: bool = True) -> str:
        fits = pc.match_substring_regex(present, f"^\\s*({pattern})\\s*$")
        return repr(present.filter(fits if fitting else pc.invert(fits))[0].as_py())

    plain = _TIME.pattern
    if 0 < share(plain) < 1 and _NEARLY_TIME.fullmatch(present[0].as_py()):
        return (
            f"{name!r} is text: most look like times ({example(plain)}), others do not "
            f"({example(plain, False)}). Write all of them in one way"
        )
    if _NEARLY_TIME.fullmatch(present[0].as_py()):
        return (
            f"{name!r} is text: it looks like times ({present[0].as_py()!r}), but not all are "
            "written in one way that is known. Write them as 2024-01-31 17:05:00"
        )
    for pattern, what in (
        (_COMMA, "with a decimal comma"),
        (_GROUPS, "in groups of three digits"),
        (_COINS, "with a sign"),
    ):
        if share(f"{pattern}|-?\\d+") > 0.9 and share(pattern) > 0:
            return (
                f"{name!r} is text: it looks like numbers {what} ({example(pattern)}). "
                "Write them as 1234.5"
            )
    if 0.95 < share(_NUMBER) < 1:
        return (
            f"{name!r} is text: most look like numbers ({example(_NUMBER)}), others do not "
            f"({example(_NUMBER, False)}). If that stands for a missing value, it is "
            "source.options.nullValue"
        )
    return None
