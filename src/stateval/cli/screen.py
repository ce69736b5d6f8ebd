"""The screen: all that the command prints goes through here.

What is printed holds no known secret and no character that a terminal would obey. A stream that is closed, full or
gone away costs the text that was meant for it, and nothing else: one warning tells of it, the exit status stays.
"""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path
from typing import Any, TextIO

from stateval.errors import InputError, StatevalError
from stateval.redaction import Redaction, secrets_of_configuration, secrets_of_environment
from stateval.reports.printable import printable

_OUT, _ERR = 1, 2
_COMMAND = re.compile(r"^(\s*)::", re.MULTILINE)


class Screen:
    """Both streams of the command, and the secrets that it knows. Before `open` they are Python's own streams."""

    def __init__(self) -> None:
        self._redaction = Redaction()
        self._out: TextIO | None = None
        self._err: TextIO | None = None
        self._has_warned = False

    def open(self) -> None:
        """Takes the streams of this process, so that user code can neither close them nor fail by printing."""
        if (sys.stdout, sys.stderr) != (sys.__stdout__, sys.__stderr__):
            return  # somebody caught them
        out, err = sys.stdout, sys.stderr
        _fill_closed_descriptors()
        self._out = _enduring(os.dup(_OUT), self._warn_of_loss)
        self._err = _enduring(os.dup(_ERR), lambda error: None)
        sys.stdout = _enduring(_OUT, self._warn_of_loss, like=out)
        sys.stderr = _enduring(_ERR, lambda error: None, like=err)
        if out is None:
            self._warn_of_loss(None)

    @property
    def out(self) -> TextIO:
        """Standard output."""
        return self._out or sys.stdout

    @property
    def err(self) -> TextIO:
        """Standard error."""
        return self._err or sys.stderr

    @property
    def redaction(self) -> Redaction:
        """All secrets that are known by now; the environment is looked at anew."""
        self._redaction.add(secrets_of_environment())
        return self._redaction

    def know(self, secrets: Iterable[str]) -> None:
        """Keeps these values off the screen from now on."""
        self._redaction.add(secrets)

    def know_configuration(self, said: Any) -> None:
        """Keeps the keys, and the passwords in URLs, of dicts and lists off the screen."""
        self.know(secret for secret in secrets_of_configuration(said) if "${" not in secret)

    def know_suite(self, path: Path) -> None:
        """Does so with the keys in a suite file that may be wrong."""
        from stateval.suite.yaml_text import read_yaml

        with suppress(StatevalError, OSError, ValueError, RuntimeError):
            file = path.expanduser()
            file = file / "suite.yaml" if file.is_dir() else file
            self.know_configuration(read_yaml(file.read_bytes(), str(file)).value)

    def clean(self, text: str, encoding: str | None = "utf-8") -> str:
        """The text as it may be printed: every line without secrets, its control characters written as escapes.

        No line begins with `::`, which a log of GitHub takes for a command.
        """
        lines = _COMMAND.sub(r"\1\\x3a:", self.redaction.scrub(text)).split("\n")
        return "\n".join(printable(line, encoding=encoding or "utf-8") for line in lines)

    def say(self, text: object) -> None:
        """A line, or several, to standard output."""
        self.out.write(f"{self.clean(str(text), self.out.encoding)}\n")
        self.out.flush()

    def complain_of(self, error: StatevalError, details: str = "") -> None:
        """The error, after further lines; each of the problems that it is made of is one line."""
        problems = error.problems if isinstance(error, InputError) else ()
        told = "\n".join(self.one_line(str(problem)) for problem in problems) or str(error)
        self.complain(f"{details}error: {told}")

    def complain(self, text: object) -> None:
        """A line, or several, to standard error."""
        with suppress(OSError, ValueError):  # closed or full, and there is nowhere else to say so
            self.err.write(f"{self.clean(str(text), self.err.encoding)}\n")
            self.err.flush()

    def one_line(self, text: str) -> str:
        """The text without secrets and without line ends."""
        return printable(self.redaction.scrub(text))

    @contextmanager
    def only_ours(self) -> Iterator[None]:
        """What user code and its child processes print goes to standard error inside; `out` still is the real one."""
        with suppress(OSError, ValueError):
            sys.stdout.flush()
        if self._out is not None:  # also what took hold of the real `sys.stdout` earlier
            os.dup2(_ERR, _OUT)
        with redirect_stdout(sys.stderr):
            yield

    def close(self) -> None:
        """Gives out what users' code has printed."""
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):  # user code closed it, or put another in its place
                stream.flush()

    def _warn_of_loss(self, error: OSError | None) -> None:
        if not self._has_warned:
            self._has_warned = True
            reason = "it is closed" if error is None else error.strerror
            self.complain(f"warning: standard output cannot be written: {reason}; nothing more is shown there")


class _EnduringFile(io.FileIO):
    """A file that drops what it cannot write, and says so to `on_loss`."""

    def __init__(self, descriptor: int, on_loss: Callable[[OSError], None]) -> None:
        super().__init__(descriptor, "w", closefd=False)
        self._on_loss = on_loss

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            _write_to_nowhere(self.fileno())
            self._on_loss(error)
            return len(data)


def _enduring(descriptor: int, on_loss: Callable[[OSError], None], *, like: TextIO | None = None) -> TextIO:
    """A stream for ours, or one for users' code that behaves like another."""
    file = io.BufferedWriter(_EnduringFile(descriptor, on_loss))
    if isinstance(like, io.TextIOWrapper):
        return io.TextIOWrapper(file, like.encoding, like.errors, line_buffering=like.line_buffering)
    standard = sys.__stdout__ or sys.__stderr__
    encoding = standard.encoding if standard is not None else "utf-8"
    return io.TextIOWrapper(file, encoding, errors="backslashreplace", line_buffering=True)


def _fill_closed_descriptors() -> None:
    """Lets no file of results become standard output: one that is opened gets the first number that is free."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= _ERR:
        os.set_inheritable(number, True)
    os.close(number)


def _write_to_nowhere(descriptor: int) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


screen = Screen()
"""The one screen of this process."""
