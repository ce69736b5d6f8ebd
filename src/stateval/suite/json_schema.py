"""The JSON Schema of a suite file, made of the models; editors complete and check with it.

`python -m stateval.suite.json_schema` writes it anew into the package.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

from stateval.records.encoding import dump_json
from stateval.suite.spec import SuiteSpec

FILE = "schema.json"
"""Where the schema lies in this package, so that it can be had without importing the models."""


def suite_schema() -> dict[str, Any]:
    """The schema, of draft 2020-12."""
    schema = SuiteSpec.model_json_schema()
    alternatives = [
        {"oneOf": [{"required": [name], "properties": {name: {"not": {"type": "null"}}}} for name in names]}
        for names in SuiteSpec.alternatives
    ]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "stateval suite",
        "allOf": alternatives,
    }


def schema_text() -> str:
    """The schema as the text of `schema.json`."""
    return dump_json(suite_schema(), indent=True).decode("utf-8") + "\n"


def shipped_schema() -> str:
    """The text of the `schema.json` that is installed with the package."""
    return files("stateval.suite").joinpath(FILE).read_text(encoding="utf-8")


if __name__ == "__main__":
    Path(__file__).with_name(FILE).write_text(schema_text(), encoding="utf-8")
