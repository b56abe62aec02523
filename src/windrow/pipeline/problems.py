"""What is wrong with a pipeline, and where: a place in the file, a sentence, and a way out."""

import difflib
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from windrow.pipeline.lines import Path


@dataclass(frozen=True)
class Problem:
    """One mistake, or one thing that is likely to be one (``warning``)."""

    path: Path
    message: str
    warning: bool = False
    line: int | None = None

    @property
    def place(self) -> str:
        """The key, as one would say it: ``features.windows[1]``."""
        out = ""
        for part in self.path:
            out += f"[{part}]" if isinstance(part, int) else f".{part}" if out else str(part)
        return out

    def shown(self, file: str) -> str:
        """``pipeline.toml:12: features.time: …``, as compilers say it and editors read it."""
        where = file if self.line is None else f"{file}:{self.line}"
        what = f"{self.place}: " if self.path else ""
        return f"{where}: {'warning: ' if self.warning else ''}{what}{self.message}"


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that is closest, whatever its capitals; None where none is close."""
    by_small = {name.lower(): name for name in known}
    found = difflib.get_close_matches(word.lower(), list(by_small), 1, cutoff=0.6)
    return by_small[found[0]] if found else None


def did_you_mean(
    word: str, known: Iterable[str], meant: Callable[[str, Iterable[str]], str | None] = nearest
) -> str:
    """``; did you mean 'amount'?`` where something known is close, else nothing.

    >>> did_you_mean("amout", ["user", "amount"])
    "; did you mean 'amount'?"
    """
    close = meant(word, known)
    return f"; did you mean {close!r}?" if close is not None else ""
