"""What the command prints, and where: nothing secret, nothing that a terminal obeys, no traceback where it cannot."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.evaltester import ECHO_AGENT, EvalTester

SECRET = "hunter2-hunter2"
GOOD = [{"input": "red", "ground_truth": "red"}, {"input": "blue", "ground_truth": "blue"}]

TELLS_IN_ALL_WAYS = """
import logging
import os

logging.getLogger("mine").warning("import %s \\x1b[31m", os.environ["MY_VERY_TOKEN"])

class Telling:
    def send(self, message):
        logging.getLogger("mine").warning("heard %s \\x1b[31m", os.environ["MY_VERY_TOKEN"])
        raise RuntimeError(os.environ["MY_VERY_TOKEN"])

def make(sample):
    return Telling()
"""


def shell(evaltester: EvalTester, line: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs `stateval run suite.yaml` with `line` after it in a shell; gives the run's own exit status."""
    command = f'set -o pipefail; "$0" -m stateval run suite.yaml -o results "$@" {line}'
    return subprocess.run(
        ["bash", "-c", command, sys.executable, *arguments],
        cwd=evaltester.path,
        env={**os.environ, "NO_COLOR": "1"},
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("debug", [(), ("--debug",)])
@pytest.mark.parametrize("display", ["rich", "simple", "json"])
def test_secrets_of_an_environment_file_are_known(evaltester: EvalTester, debug: tuple[str, ...], display: str) -> None:
    evaltester.write(".env", f"MY_VERY_TOKEN={SECRET}\n")
    evaltester.write_suite(GOOD, agent=TELLS_IN_ALL_WAYS, on_error="stop")
    done = evaltester.run("suite.yaml", "--display", display, *debug)
    assert done.status == 4
    assert "[redacted]" in done.stderr
    assert SECRET not in done.output
    assert "\x1b[31m" not in done.output


@pytest.mark.parametrize("debug", [(), ("--debug",)])
def test_secrets_of_an_environment_file_are_known_where_loading_fails(
    evaltester: EvalTester, debug: tuple[str, ...]
) -> None:
    evaltester.write(".env", f"MY_VERY_TOKEN={SECRET}\n")
    agent = 'import os\nraise ValueError(os.environ["MY_VERY_TOKEN"])\n'
    evaltester.write_suite(GOOD, agent=agent)
    done = evaltester.run("suite.yaml", *debug)
    assert done.status == 2
    assert "[redacted]" in done.stderr
    assert SECRET not in done.output


def test_keys_of_the_command_line_and_the_suite_are_known(evaltester: EvalTester) -> None:
    target = {"kind": "local_agent", "model_handles": ["mine"], "agent": {}, "base_url": SECRET}
    evaltester.write_suite(GOOD, target=target | {"base_url": f"ftp://{SECRET}"})
    done = evaltester.run("suite.yaml", "--api-key", SECRET)
    assert done.status == 2
    assert "base_url" in done.stderr
    assert SECRET not in done.output
    evaltester.write_suite(GOOD, target=target | {"api_key": SECRET}, max_samples=SECRET)
    for command in ("run", "validate"):
        done = evaltester.command(command, "suite.yaml")
        assert done.status == 2
        assert "max_samples" in done.output
        assert SECRET not in done.output


def test_a_password_in_an_address_is_known_when_it_is_refused(evaltester: EvalTester) -> None:
    target = {"kind": "local_agent", "model_handles": ["mine"], "agent": {}, "base_url": "ftp://me:pw@host"}
    evaltester.write_suite(GOOD, target=target)
    for command in ("run", "validate"):
        done = evaltester.command(command, "suite.yaml")
        assert done.status == 2
        assert "[redacted]" in done.output
        assert "pw@" not in done.output


def test_escape_codes_are_shown_and_not_obeyed(evaltester: EvalTester) -> None:
    evaltester.write_suite(GOOD, name_of_mine="x")
    done = evaltester.run("no\x1b[31m\rsuch.yaml")
    assert done.status == 2
    assert "no\\x1b[31m\\rsuch.yaml" in done.stderr
    evaltester.write_suite([{"input": "red", "ground_truth": "r"}], **{"fancy\x1b[2J": 1, "nancy": 2})
    done = evaltester.run()
    assert done.status == 2
    assert "\x1b" not in done.output
    assert len(done.stderr.splitlines()) == 2


@pytest.mark.parametrize("where", ["import", "send", "child", "handler"])
def test_what_an_agent_prints_is_no_part_of_the_json(evaltester: EvalTester, where: str) -> None:
    said = {"import": "", "send": "print('noise')", "child": "os.system('echo noise')", "handler": "log.info('noise')"}
    agent = f"""
import logging, os, sys
log = logging.getLogger("mine")
log.addHandler(logging.StreamHandler(sys.stdout))
log.setLevel(logging.INFO)
log.propagate = False
{"print('noise')" if where == "import" else ""}

class Agent:
    def send(self, message):
        {said[where]}
        return message

def make(sample):
    return Agent()
"""
    evaltester.write_suite(GOOD, agent=agent)
    done = evaltester.run("suite.yaml", "--display", "json")
    assert done.status == 0, done.output
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert events[-1]["event"] == "end"
    assert "noise" in done.stderr


def test_other_displays_leave_prints_alone(evaltester: EvalTester) -> None:
    agent = ECHO_AGENT.replace("        return message\n", "        print('noise')\n        return message\n")
    evaltester.write_suite(GOOD, agent=agent)
    done = evaltester.run("suite.yaml", "--display", "simple")
    assert done.status == 0
    assert done.stdout.count("noise") == 2


@pytest.mark.parametrize("display", ["rich", "simple", "json", "none"])
@pytest.mark.parametrize("line", ["| head -c 5", "| true", "> /dev/full", ">&-", "2>&-", "2> /dev/full", ">&- 2>&-"])
def test_a_lost_screen_changes_nothing(evaltester: EvalTester, display: str, line: str) -> None:
    printing = "        print('noise' * 10_000)\n        return message\n"
    agent = ECHO_AGENT.replace("        return message\n", printing)
    evaltester.write_suite(GOOD, agent=agent)
    done = shell(evaltester, line, "--display", display)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr
    warnings = done.stderr.count("standard output cannot be written")
    assert warnings == (line in ("> /dev/full", ">&-")) or ("|" in line and warnings <= 1)
    assert len(evaltester.results()) == 2


def test_a_lost_screen_keeps_a_failed_gate(evaltester: EvalTester) -> None:
    evaltester.write_suite(GOOD, gate={"metric_key": "quality", "op": "lt", "value": 0.5})
    for line in ("| head -c 5", "> /dev/full", ">&-"):
        assert shell(evaltester, line).returncode == 1


@pytest.mark.parametrize("display", ["rich", "simple", "json"])
@pytest.mark.parametrize("what", ["sys.stdout.close()", "os.close(1)", "sys.stdout.close(); sys.stderr.close()"])
def test_an_agent_cannot_close_the_screen(evaltester: EvalTester, display: str, what: str) -> None:
    agent = ECHO_AGENT.replace("        self.heard = message\n", f"        import os, sys\n        {what}\n", 1)
    evaltester.write_suite(GOOD[:1], agent=agent)
    done = evaltester.run("suite.yaml", "--display", display)
    assert done.status == 0, done.output
    assert "Traceback" not in done.output
    assert ("run_finished" if display == "json" else "Results:") in done.stdout


@pytest.mark.parametrize("display", ["simple", "json", "none"])
def test_why_a_run_stopped_is_said_last(evaltester: EvalTester, display: str) -> None:
    evaltester.write_suite(GOOD, agent="def make(sample):\n    raise ValueError('no\\nluck')\n", on_error="stop")
    done = evaltester.run("suite.yaml", "--display", display)
    assert done.status == 4
    assert done.stderr.splitlines()[-1].startswith("error: the run stopped: sample ")
    evaltester.write_suite(GOOD, agent="def make(sample):\n    raise ValueError('no')\n")
    done = evaltester.command("run", "suite.yaml", "--display", display)
    assert done.status == 4
    assert done.stderr.splitlines()[-1] == "error: every sample errored"


def test_a_summary_that_cannot_be_written_is_said(evaltester: EvalTester) -> None:
    agent = ECHO_AGENT.replace(
        "        self.heard = message\n",
        "        import pathlib\n        pathlib.Path('results/summary.json.partial').mkdir(exist_ok=True)\n",
    )
    evaltester.write_suite(GOOD, agent=agent)
    done = evaltester.run()
    assert done.status == 4
    assert "error: " in done.stderr
    assert "summary.json" in done.stderr


BUG = """
import sys
sys.argv[0] = "stateval"
import stateval.running.runner as runner
def broken(*arguments, **options):
    raise LookupError("two\\nlines \\x1b[31m hunter2-hunter2")
runner.summarise = broken
from stateval.cli import main
main()
"""


@pytest.mark.parametrize("debug", [(), ("--debug",)])
def test_a_bug_is_one_line_without_debug(evaltester: EvalTester, debug: tuple[str, ...]) -> None:
    evaltester.write_suite(GOOD)
    done = subprocess.run(
        [sys.executable, "-c", BUG, "run", "suite.yaml", "-q", *debug],
        cwd=evaltester.path,
        env={**os.environ, "MY_SECRET": SECRET},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 4
    last = done.stderr.splitlines()[-1]
    assert last.startswith("error: unexpected LookupError: two\\nlines \\x1b[31m [redacted]")
    assert ("Traceback" in done.stderr) == bool(debug)
    assert ("--debug" in last) != bool(debug)
    assert SECRET not in done.stderr
    if not debug:
        assert done.stderr.splitlines() == [last]


def test_the_results_directory_is_the_one_that_was_meant(evaltester: EvalTester, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    agent = f"import os\nos.chdir({str(tmp_path / 'elsewhere')!r})\n" + ECHO_AGENT
    evaltester.write_suite(GOOD, agent=agent)
    assert evaltester.command("run", "suite.yaml", "--output", "~/of mine", env={"HOME": str(tmp_path)}).status == 0
    assert (tmp_path / "of mine" / "summary.json").exists()
    assert evaltester.command("run", "suite.yaml", "--output", "here").status == 0
    assert (tmp_path / "here" / "summary.json").exists()
    assert evaltester.command("run", "suite.yaml").status == 0
    assert len(list((tmp_path / ".stateval" / "runs").iterdir())) == 1
    assert list((tmp_path / "elsewhere").iterdir()) == []
