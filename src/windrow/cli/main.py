"""The command's words, and its exit codes: 0 done, 1 failed, 2 a bad specification, 130 stopped."""

import argparse
import os
import sys
from collections.abc import Sequence

from windrow.cli import commands
from windrow.errors import WindrowError
from windrow.pipeline.reading import BadPipeline
from windrow.version import __version__

DONE, FAILED, BAD, INTERRUPTED = 0, 1, 2, 130

_EPILOG = """\
exit codes: 0 done · 1 failed while it ran · 2 the file or the command line is wrong, nothing ran ·
130 stopped with Ctrl-C. Documentation: docs/pipelines.md
"""


def parser() -> argparse.ArgumentParser:
    """All commands and their options."""
    top = argparse.ArgumentParser(
        prog="windrow",
        description="Sliding-window features from a file of a few lines: tables and streams.",
        epilog=_EPILOG,
    )
    top.add_argument("--version", action="version", version=f"windrow {__version__}")
    words = top.add_subparsers(dest="command", metavar="COMMAND", required=True)

    init = words.add_parser("init", help="write a commented pipeline file from a data file")
    init.add_argument("data", help="a CSV, JSON (one object a line) or Parquet file, or a folder")
    init.add_argument("-o", "--output", default="pipeline.toml", help="default: pipeline.toml")
    init.add_argument("--force", action="store_true", help="overwrite the output")
    init.set_defaults(work=commands.init)

    run = words.add_parser("run", help="run a pipeline", epilog=_EPILOG)
    run.add_argument("file", help="the pipeline file")
    what = run.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true", help="look for mistakes, and run nothing")
    what.add_argument("--explain", action="store_true", help="say what would be done, and why")
    what.add_argument(
        "--sample", type=_count, metavar="N", help="show the answers of the first N rows, no Spark"
    )
    run.add_argument(
        "--report", metavar="PATH", help="write an HTML report of the run, one file, to PATH"
    )
    _run_options(run)
    run.set_defaults(work=commands.run)

    check = words.add_parser("check", help="look for mistakes: the same as run --check")
    check.add_argument("file", help="the pipeline file")
    _run_options(check)
    check.set_defaults(work=commands.run, check=True, explain=False, sample=None, report=None)

    explain = words.add_parser("explain", help="say what would be done, and why")
    explain.add_argument("file", help="the pipeline file")
    _run_options(explain)
    explain.set_defaults(work=commands.run, check=False, explain=True, sample=None, report=None)

    bench = words.add_parser("bench", help="compare engines and peers on your data")
    bench.add_argument("file", help="the pipeline file")
    bench.add_argument("--data", help="another data file, instead of the pipeline's source")
    bench.add_argument("--rows", type=_count, help="only the first so many rows")
    bench.add_argument("--repeat", type=_count, default=3, help="take the best of so many (3)")
    bench.add_argument("--no-spark", action="store_true", help="leave Spark out")
    _run_options(bench)
    bench.set_defaults(work=commands.bench)

    demo = words.add_parser("demo", help="a year of New York flights: what `make demo` runs")
    demo.add_argument(
        "--report",
        metavar="FILE",
        default="windrow-demo.html",
        help="the HTML report (windrow-demo.html)",
    )
    demo.set_defaults(work=commands.demo)

    schema = words.add_parser("schema", help="print the JSON schema of pipeline files, for editors")
    schema.set_defaults(work=commands.schema)
    return top


def _run_options(words: argparse.ArgumentParser) -> None:
    words.add_argument(
        "--json-log", action="store_true", help="events as JSON lines on standard output"
    )
    words.add_argument("--quiet", action="store_true", help="mistakes and results only")
    words.add_argument("--verbose", action="store_true", help="Spark's own log, and tracebacks")


def _count(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 on")
    return int(text)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the exit code."""
    given = parser().parse_args(argv)
    try:
        return int(given.work(given))
    except BadPipeline as error:
        commands.told(error.problems, error.file, given)
        return BAD
    except WindrowError as error:
        if getattr(given, "verbose", False):
            raise
        commands.failed(str(error), given)
        return FAILED
    except KeyboardInterrupt:
        commands.failed("stopped with Ctrl-C; what was not finished was not written", given)
        return INTERRUPTED
    except BrokenPipeError:  # whoever read the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
