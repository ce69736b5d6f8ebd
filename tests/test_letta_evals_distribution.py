"""The distribution `stateval-letta-evals`, built and installed into an environment of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.test_letta_evals_names import MODULES
from tests.test_python_suites import GUIDE, HELPER

PACKAGE = Path(__file__).parents[1] / "packages" / "stateval-letta-evals"


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment with the distribution, which finds all else where these tests find it."""
    directory = tmp_path_factory.mktemp("distribution")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    wheel = [*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(directory), str(PACKAGE)]
    subprocess.run(wheel, check=True)
    environment = directory / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    (built,) = directory.glob("*.whl")
    python = environment / "bin" / "python"
    install = [*pip, f"--python={python}", "install", "--no-deps", str(built)]
    subprocess.run(install, check=True)
    (packages,) = environment.glob("lib/python*/site-packages")
    # Site directories are taken with the editable installation of stateval that may be in them.
    (packages / "all-else.pth").write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")
    return environment / "bin"


def run(programs: Path, directory: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    return subprocess.run(command, cwd=directory, env=environment, capture_output=True, encoding="utf-8", timeout=120)


def test_a_script_of_the_guides_runs_under_plain_python(programs: Path, tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text(HELPER, encoding="utf-8")
    script = tmp_path / "run_evals.py"
    script.write_text(GUIDE.replace("LEAST", "0.5"), encoding="utf-8")
    finished = run(programs, tmp_path, "python", "run_evals.py")
    assert finished.returncode == 0, finished.stderr
    assert "mean 0.5" in finished.stdout
    script.write_text(GUIDE.replace("LEAST", "0.9"), encoding="utf-8")
    failed = run(programs, tmp_path, "python", "run_evals.py")
    assert failed.returncode != 0
    assert "GateFailed" in failed.stderr


def test_every_module_has_its_names(programs: Path, tmp_path: Path) -> None:
    lines = [f"from letta_evals{module} import {', '.join(names)}" for module, names in MODULES.items()]
    finished = run(programs, tmp_path, "python", "-c", "\n".join([*lines, "import letta_evals.models as m; m.Sample"]))
    assert finished.returncode == 0, finished.stderr


def test_the_lines_of_ci_run_as_they_stand(programs: Path, tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text("def make(sample):\n    return lambda message: message\n", encoding="utf-8")
    suite = "name: s\ndataset: [{input: a, ground_truth: a}]\ntarget: {kind: python, factory: 'agent.py:make'}\n"
    suite += "graders: {q: {kind: tool, function: contains}}\ngate: {metric_key: q, op: gte, value: 1}\n"
    (tmp_path / "suite.yaml").write_text(suite, encoding="utf-8")
    for line in ("validate suite.yaml", "run suite.yaml --output results", "list-extractors", "list-graders"):
        finished = run(programs, tmp_path, "letta-evals", *line.split())
        assert finished.returncode == 0, finished.stdout + finished.stderr
    assert (tmp_path / "results" / "summary.json").is_file()
