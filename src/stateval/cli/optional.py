"""Options whose value may be left out, which typer does not know of."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence


def with_values(arguments: Sequence[str], options: Collection[str], is_value: Callable[[str], bool]) -> Iterator[str]:
    """The arguments, with an empty value for each of these options that has none.

    What follows an option is its value where `is_value` says so and it does not look like an option itself; a single
    `-` does not.
    """
    for argument, following in zip(arguments, [*arguments[1:], None], strict=True):
        is_bare = following is None or (following.startswith("-") and following != "-")
        if argument in options and (is_bare or not is_value(following or "")):
            yield f"{argument}="
        else:
            yield argument
