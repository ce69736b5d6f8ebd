"""The rules of the house: what may import what, what a start may load, and what the files may say."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import stateval

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "src").rglob("*.py"))
PAGES = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md"), ROOT / "bench/README.md"]
)

HEAVY = (
    *("anthropic", "jsonpath", "letta", "letta_client", "letta_evals", "numpy", "openai", "pandas", "pyarrow"),
    *("rapidfuzz", "ray", "scipy", "starlette", "xllamacpp"),
)
PRINT_HEAVY = f"import sys; print(*sorted(m for m in {HEAVY} if m in sys.modules))"
COMMAND = """
import sys
sys.argv[0] = "stateval"
from stateval.cli import main
try:
    main()
except SystemExit as stopped:
    if stopped.code:
        raise
"""

FOREIGN = re.compile(
    r"|".join((r"pypi\." + "org", r"files\.python" + r"hosted\.org", r"(?<![\w.~-])/(?:work|root|tmp)" + "/"))
)


def output_of(*arguments: str) -> str:
    done = subprocess.run(arguments, capture_output=True, encoding="utf-8", cwd=ROOT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def tracked_files() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], capture_output=True, encoding="utf-8", cwd=ROOT, check=False)
    if listed.returncode:
        pytest.skip("not a Git work tree")
    return [path for name in listed.stdout.split("\0") if name and (path := ROOT / name).is_file()]


def test_rooms_import_only_from_lower_floors():
    output_of(sys.executable, "-c", "from importlinter.cli import lint_imports_command as run; run()", "--no-cache")


def test_import_loads_nothing_heavy():
    assert output_of(sys.executable, "-c", f"import stateval; {PRINT_HEAVY}").split() == []


@pytest.mark.parametrize("arguments", ["--version", "--help", "run --help", "list-graders --help"])
def test_start_of_the_command_loads_nothing_heavy(arguments):
    shown = output_of(sys.executable, "-c", f"{COMMAND}\n{PRINT_HEAVY}", *arguments.split())
    assert shown.splitlines()[-1] == "", f"loads {shown.splitlines()[-1]}"


def test_no_file_names_an_index_host_or_a_path_of_one_machine():
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}"
        for path in tracked_files()
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1)
        if FOREIGN.search(line)
    ]
    assert found == []


def test_no_function_is_longer_than_sixty_lines():
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}: {node.end_lineno - node.lineno + 1} lines"
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno - node.lineno >= 60
    ]
    assert found == []


def test_make_targets_have_three_lines_at_most():
    rules = re.findall(r"^(\S+):[^=\n]*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    sizes = {name: body.count("\n") for name, body in rules}
    assert {"quickstart", "test", "check", "bench", "docs"} <= set(sizes)
    assert max(sizes.values()) <= 3


def test_documentation_links_lead_somewhere():
    broken = [
        f"{page.relative_to(ROOT)}: {link}"
        for page in PAGES
        for link in re.findall(r"\]\((?!https?:|mailto:|#)([^)#\s]+)", page.read_text(encoding="utf-8"))
        if not (page.parent / link).exists()
    ]
    assert broken == []


def test_documentation_of_the_python_api_has_every_public_name_and_no_other():
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    documented = re.findall(r"^#{3} `([A-Za-z_]+)", page, re.MULTILINE)
    assert sorted(documented) == sorted(stateval.__all__)
    assert [name for name in stateval.__all__ if not hasattr(stateval, name)] == []


def test_documentation_of_the_command_line_has_every_command():
    from stateval.cli.main import app

    page = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    commands = [info.name or info.callback.__name__.replace("_", "-") for info in app.registered_commands]
    commands += [info.name for info in app.registered_groups]
    assert [name for name in commands if f"stateval {name}" not in page] == []


def test_changelog_knows_this_version():
    assert f"## {stateval.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
