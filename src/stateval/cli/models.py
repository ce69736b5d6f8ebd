"""`stateval models`: the embedded models, which of them are here, and fetching one."""

from __future__ import annotations

from typing import Annotated

import typer

from stateval.cli.screen import screen
from stateval.errors import UsageError

app = typer.Typer(help="Embedded models: which there are, which are on this machine, and fetching one.")

Name = Annotated[str, typer.Argument(help="The model's name, as `stateval models list` shows it.")]


@app.command("list")
def list_models() -> None:
    """Show the embedded models, and the files of those that have been fetched."""
    from stateval.llm.catalogue import listing

    for model, file in listing():
        screen.say(f"{model.handle}  {model.size / 1e6:,.0f} MB  {model.license}")
        screen.say(f"    {model.description}")
        screen.say(f"    {file or f'not fetched: `stateval models pull {model.name}`'}")


@app.command()
def pull(name: Name = "smollm2-135m") -> None:
    """Fetch a model, check it, and keep it in the user's cache; does nothing where it is already there."""
    from stateval.llm.fetching import pull as fetch
    from stateval.llm.progress import shown_progress

    with shown_progress(f"fetching model {name}") as progress:
        file = fetch(name, progress)
    screen.say(file)


@app.command()
def path(name: Name = "smollm2-135m") -> None:
    """Print where a fetched model's file is."""
    from stateval.llm.catalogue import find
    from stateval.llm.catalogue import path as file_of

    file = file_of(name)
    if file is None:
        short = find(name).name
        raise UsageError(f"the embedded model `{short}` is not on this machine; run `stateval models pull {short}`")
    screen.say(file)
