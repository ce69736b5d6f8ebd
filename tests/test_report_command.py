"""`stateval report`: what people see of runs, of several models, and of one sample."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stateval.comparison.leaderboard import leaderboard
from stateval.errors import ExitStatus
from stateval.records.grade import GradeResult, RewardOutput
from stateval.records.message import AssistantMessage, ToolCall, ToolCallMessage, ToolReturnMessage
from stateval.records.result import ErrorCategory, SampleError, SampleResult, StageKeys
from stateval.records.sample import Sample
from stateval.records.state import AgentState, Snapshot
from stateval.records.usage import Timing, Usage
from stateval.reports.conversation import conversation_report
from stateval.reports.memory import change_passage, memory_changes
from stateval.reports.passages import LABEL_WIDTH, Writing
from stateval.reports.run_report import run_lines
from stateval.reports.terminal import plain_text
from stateval.results.directory import ResultsDirectory
from stateval.results.opening import open_results
from stateval.results.run_record import RunInputs
from stateval.running.stored import summary_of
from tests.support import letta_results as le
from tests.support.evaltester import EvalTester, Finished

AGENT = '''
import json


class Agent:
    """Keeps what the user likes; the forgetful one only says so."""

    def __init__(self, forgetful):
        self.memory = {"human": "Name: Ann\\nLikes: nothing yet"}
        self.forgetful = forgetful

    def send(self, message):
        if message == "explode":
            raise RuntimeError("no server")
        if message.startswith("I like "):
            liked = message.removeprefix("I like ")
            if self.forgetful:
                return f"Noted: {liked}"
            self.memory["human"] = f"Name: Ann\\nLikes: {liked}"
            self.memory["notes"] = f"likes {liked}"
            call = {"name": "remember", "arguments": json.dumps({"what": liked})}
            return [
                {"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function": call}]},
                {"role": "tool", "tool_call_id": "1", "content": "ok"},
                {"role": "assistant", "content": f"Noted: {liked}"},
            ]
        if message == "Forget it":
            self.memory.pop("notes", None)
        return "You like " + self.memory["human"].split("Likes: ")[1]

    def state(self):
        return dict(self.memory)

    def new_conversation(self):
        pass

    def usage(self):
        return {"prompt_tokens": 30, "completion_tokens": 3, "cost": 0.001}


def make(sample, model_handle):
    return Agent(model_handle == "forgetful")
'''
FRUIT = ("apples", "pears", "figs", "plums", "dates", "limes", "kiwis", "grapes")
ROWS = [
    {
        "id": fruit,
        "input": [f"I like {fruit}", {"new_conversation": True}, "What do I like?", "Forget it"],
        "ground_truth": ["Noted", fruit, None],
        "tags": ["fruit"],
    }
    for fruit in FRUIT
] + [{"id": "broken", "input": ["Hello", "explode"], "ground_truth": "x"}]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> EvalTester:
    """Two models, two runs, nine samples, of which one fails in its second turn; tests only look at it."""
    evaltester = EvalTester(tmp_path_factory.mktemp("ran"))
    target = {"kind": "python", "factory": "agent.py:make", "model_handles": ["careful", "forgetful"]}
    gate = {"metric_key": "quality", "op": "gte", "value": 0.8}
    evaltester.write_suite(ROWS, agent=AGENT, target=target, num_runs=2, snapshots="every_turn", gate=gate)
    assert evaltester.run().status == ExitStatus.GATE_FAILED
    return evaltester


def report(tester: EvalTester, *arguments: str | Path, **options: Any) -> str:
    """What the command prints; it ends well."""
    finished = tester.command("report", *arguments, **options)
    assert (finished.status, finished.stderr) == (ExitStatus.PASSED, "")
    return finished.stdout


def refused(tester: EvalTester, *arguments: str | Path) -> str:
    """What the command says where there is nothing to show."""
    finished: Finished = tester.command("report", *arguments)
    assert (finished.status, finished.stdout) == (ExitStatus.INPUT_WRONG, "")
    assert "Traceback" not in finished.stderr
    return finished.stderr


def steady(text: str) -> str:
    """The text without what differs from run to run."""
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", "TIME", text)
    text = re.sub(r"(?<=seconds    ).*", "SECONDS", text)
    return re.sub(r" +\d\.\d\d(?= +[abc]+$)", "  SECS", text, flags=re.MULTILINE)


def section(text: str, heading: str) -> str:
    """The part of a report from this heading to the next empty line."""
    return text[text.index(heading) :].partition("\n\n")[0].rstrip("\n") + "\n"


# one run

LEADERBOARD = """\
Leaderboard by reward
Rank  Model      reward   95 % interval  n    Passed  Errored  Cost, USD  p50, s  Group
───────────────────────────────────────────────────────────────────────────────────────
   1  careful     0.889  [0.565, 0.980]  9  16 of 18        2     0.0160  SECS      a
   2  forgetful   0.444  [0.316, 0.573]  9   0 of 18        2     0.0160  SECS      b
Means over n samples, repeats averaged within the sample first; errored ones count as 0.
Models that share a letter do not differ significantly: pairs of models on the samples that both have (at least 9), \
two-sided, at 5 % after Holm's correction.
"""


def test_the_report_of_a_run_says_what_it_is_and_where(ran: EvalTester) -> None:
    text = steady(report(ran, "results"))
    assert text.splitlines()[:3] == [
        "test-suite",
        "Started TIME, finished TIME",
        "2 models x 2 runs x 9 samples: 36 of 36 done",
    ]
    assert "careful, reward: 18 planned = 16 passed + 0 failed + 0 unscored + 2 errored (target 2)" in text
    assert "Gate: FAIL for each model: avg_score(quality) >= 0.8: holds for 1 of 2 models\n" in text
    assert "errors: 2 (by category: target 2; by type: RuntimeError 2)" in text
    assert section(text, "Leaderboard") == LEADERBOARD
    assert "Errors (2 of 2)\n  sample broken [careful]: target: turn 1: `send` raised RuntimeError: no server" in text
    assert text.endswith("\nOne sample turn by turn: stateval report results --sample ID\nResults: results\n")


UNFINISHED = """\
s
Started TIME, not finished; last result TIME
2 models x 3 samples: 5 of 6 done
To go on: stateval run SUITE --resume results
The run did not finish: not every planned sample was reached.
Model    Metric         n   Mean   95 % interval  Std dev  Errors
─────────────────────────────────────────────────────────────────
careful  quality        3  0.667  [0.208, 0.939]    0.577       0
careful  reward         3  0.667  [0.208, 0.939]    0.577       0
fast     quality        1  0.000  [0.000, 0.793]        -       1
           errors as 0  2  0.000  [0.000, 0.658]        -       -
fast     reward         1  0.000  [0.000, 0.793]        -       1
           errors as 0  2  0.000  [0.000, 0.658]        -       -

Ledger
  careful, reward: 3 planned = 2 passed + 1 failed + 0 unscored + 0 errored + 0 timed out + 0 skipped + 0 not reached
  fast, reward: 3 planned = 0 passed + 1 failed + 0 unscored + 1 errored (target 1) + 0 timed out + 0 skipped + \
1 not reached
careful: seconds a sample: mean 2.00, p50 2.00, p95 2.00; tokens: 3 in, 3 out; cost: 1.5000 USD
fast: seconds a sample: mean 2.00, p50 2.00, p95 2.00; tokens: 2 in, 2 out; cost: 1.0000 USD
fast: errors: 1 (by category: target 1; by type: X 1)

Leaderboard by reward
Rank  Model    reward   95 % interval  n  Passed  Errored  Cost, USD  p50, s  Group
───────────────────────────────────────────────────────────────────────────────────
   1  careful   0.667  [0.208, 0.939]  3  2 of 3        0     1.5000  SECS      a
   2  fast      0.000  [0.000, 0.658]  2  0 of 2        1     1.0000  SECS      a
Means over n samples, repeats averaged within the sample first; errored ones count as 0.
Not all models have the same number of samples, so their means are over different ones.
Models that share a letter do not differ significantly: pairs of models on the samples that both have (at least 2), \
two-sided, at 5 % after Holm's correction.

Samples, lowest scores first (2 of 3)
  sample b [careful]: 0
    quality 0
  sample a [careful]: 1
    quality 1

Errors (1 of 1)
  sample b [fast]: target: no
Samples, lowest scores first (1 of 1)
  sample a [fast]: 0
    quality 0

One sample turn by turn: stateval report results --sample ID
Results: results
"""


def test_the_report_of_an_unfinished_run(evaltester: EvalTester) -> None:
    scores: dict[str, dict[str, list[float | None]]] = {
        "careful": {"a": [1.0], "b": [0.0], "c": [1.0]},
        "fast": {"a": [0.0], "b": [None]},
    }
    begun(evaltester.results_path, scores).close()
    assert steady(report(evaltester, "results", "--limit", "2")) == UNFINISHED


def test_the_latest_run_is_shown_where_none_is_named(evaltester: EvalTester) -> None:
    assert "there is no run below .stateval/runs here" in refused(evaltester)
    evaltester.write_suite()
    for name in ("first", "second"):
        assert evaltester.command("run", "suite.yaml", "--set", f"name={name}").status == ExitStatus.PASSED
    assert report(evaltester).startswith("second\n")


def test_nothing_is_written(ran: EvalTester) -> None:
    def files() -> dict[Path, tuple[int, int]]:
        return {f: (f.stat().st_mtime_ns, f.stat().st_size) for f in ran.results_path.rglob("*")}

    before = files()
    for arguments in ([], ["--sample", "figs"]):
        report(ran, "results", *arguments)
    assert files() == before


@pytest.mark.parametrize("torn", [pytest.param(b'{"sample_id": "c", "gra', id="fault-57-torn-last-line")])
def test_a_run_that_another_process_writes_is_shown_as_far_as_it_is(evaltester: EvalTester, torn: bytes) -> None:
    with begun(evaltester.results_path, {"m": {"a": [1.0], "b": [0.0]}}, planned=5) as directory:
        with directory.journal_path("m").open("ab") as file:
            file.write(torn)
        text = steady(report(evaltester, "results"))
        assert text.splitlines()[1:4] == [
            "Started TIME, not finished; last result TIME",
            "1 model x 5 samples: 2 of 5 done",
            "To go on: stateval run SUITE --resume results",
        ]
        assert "The run did not finish" in text
        assert (
            "5 planned = 1 passed + 1 failed + 0 unscored + 0 errored + 0 timed out + 0 skipped + 3 not reached" in text
        )
        assert "there is no result of a sample `c`" in refused(evaltester, "results", "--sample", "c")


def test_a_run_without_any_result(evaltester: EvalTester) -> None:
    with begun(evaltester.results_path, {"m": {}, "n": {}}, planned=5):
        text = report(evaltester, "results")
    assert "not finished; no result yet\n2 models x 5 samples: 0 of 10 done\n" in text
    assert re.search(r"^ +- +m +- +- +0 +0 of 0", text, re.MULTILINE)


def test_results_of_letta_evals_of_both_layouts_and_single_files(evaltester: EvalTester) -> None:
    new = le.write_reward_era(evaltester.path / "new", [le.scored(0, 1.0), le.scored(1, 0.25), le.failed(2)])
    le.write_gate_era(evaltester.path / "old", [le.old(0, 1.0), le.old(1, 0.0), le.old(0, 0.5, model="a/b")])
    text = report(evaltester, "new")
    assert text.startswith("new-suite\n1 model x 3 samples: 3 of 3 done\n")
    assert "  sample 2 [openai/gpt-4.1]: target: the server went away\n" in text
    assert "Leaderboard by quality\n" in report(evaltester, "old")
    (file,) = new.glob("*.jsonl")
    assert "3 planned = 1 passed + 1 failed + 0 unscored + 1 errored (target 1)" in report(evaltester, file)
    sample = report(evaltester, "old", "--sample", "1")
    assert "\n  user       say 1\n  assistant  I say 1\n" in sample
    assert "\n  seconds    not known\n" in sample


def test_what_holds_no_results_is_refused(evaltester: EvalTester) -> None:
    assert "nothing does not exist" in refused(evaltester, "nothing")
    evaltester.write("empty/notes.txt", "")
    assert "empty holds no results" in refused(evaltester, "empty")


# one sample

CAREFUL = """\
sample figs [careful]: 1
  tags       fruit

Turn 0
  user       I like figs
  call       remember({"what": "figs"})
  return     ok
  assistant  Noted: figs
  memory     human: changed
                 Name: Ann
               - Likes: nothing yet
               + Likes: figs
             notes: added
               + likes figs

Turn 1, in a new conversation
  user       What do I like?
  assistant  You like figs
  memory     unchanged

Turn 2
  user       Forget it
  assistant  You like figs
  memory     notes: removed
               - likes figs

quality: 1
  rationale  turn 0: 1; turn 1: 1
  metadata   {"turns_passed":2,"turns_total":2}
  turn 0     1
  submission Noted: figs
  truth      Noted
  rationale  the submission contains "Noted"
  turn 1     1
  submission You like figs
  truth      figs
  rationale  the submission contains "figs"

reward: 1

Usage
  seconds    SECONDS
  tokens     30 in, 3 out
  cost       0.001 USD
"""
BROKEN = """\
sample broken run 2 [forgetful]: no score
  truth      x

Turn 0
  user       Hello
  assistant  You like nothing yet
  memory     unchanged

Turn 1
  user       explode
  note       the target failed in this turn

Error
  error      target: RuntimeError: turn 1: `send` raised RuntimeError: no server (PLACE)

Usage
  seconds    SECONDS
"""


def test_one_sample_turn_by_turn_with_what_changed_in_memory(ran: EvalTester) -> None:
    text = report(ran, "results", "--sample", "figs", "--model", "careful", "--run", "1")
    assert steady(text) == CAREFUL


def test_the_documentation_shows_what_is_printed() -> None:
    page = (Path(__file__).parent.parent / "docs" / "report.md").read_text(encoding="utf-8")
    shown = [steady(block) for block in re.findall(r"^```text\n(.*?)^```", page, re.DOTALL | re.MULTILINE)]
    assert shown == [LEADERBOARD, CAREFUL]


def test_a_sample_whose_target_failed(ran: EvalTester) -> None:
    text = report(ran, "results", "--sample", "broken", "--model", "forgetful", "--run", "2")
    assert re.sub(r"\(/.*\)", "(PLACE)", steady(text)) == BROKEN


def test_a_sample_of_several_models_and_runs_is_listed_and_shown_of_each(ran: EvalTester) -> None:
    text = report(ran, "results", "--sample", "figs")
    assert text.startswith(
        "4 results of this sample; choose one with\n"
        "  --model careful --run 1: 1\n"
        "  --model careful --run 2: 1\n"
        "  --model forgetful --run 1: 0.5\n"
        "  --model forgetful --run 2: 0.5\n"
        "\n"
        "sample figs [careful]: 1\n"
    )
    assert re.findall("^sample .*", text, re.MULTILINE) == [
        "sample figs [careful]: 1",
        "sample figs run 2 [careful]: 1",
        "sample figs [forgetful]: 0.5",
        "sample figs run 2 [forgetful]: 0.5",
    ]
    one = report(ran, "results", "--sample", "figs", "--limit", "1")
    assert len(re.findall("^sample ", one, re.MULTILINE)) == 1
    assert one.endswith("\n3 more; `--limit N` shows more at once\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--sample", "fig"], "there is no result of a sample `fig`; the nearest are `figs`"),
        (["--sample", "%%%%"], "there is no result of a sample `%%%%`\n"),
        (["--sample", "figs", "--model", "carefull"], "no model `carefull`; there are `careful`, `forgetful`"),
        (["--sample", "figs", "--run", "3"], "there is no run 3: the suite ran 2 times"),
        (
            ["--failed", "--metric", "qualty"],
            "no metric `qualty` that samples pass or fail; choose from `reward`, `quality`",
        ),
        (["--metric", "qualty"], "no metric `qualty`; choose with `--metric` from `reward`, `quality`, `cost`"),
        (["--sample", "figs", "--failed"], "give one of them"),
        (["--model", "careful"], "give `--sample ID`, `--failed` or `--errors` with them"),
        (["results", "--failed"], "samples are shown of one directory at a time"),
    ],
)
def test_what_is_not_there_is_refused_with_what_is(ran: EvalTester, arguments: list[str], said: str) -> None:
    assert said in refused(ran, "results", *arguments)


def conversation(snapshots: Sequence[Mapping[str, str] | None], turns: int = 3, **fields: Any) -> str:
    """What is printed of a conversation of which these states were kept, the first one before the first turn."""
    kept = [
        Snapshot(turn=turn - 1, state=AgentState.of(state)) for turn, state in enumerate(snapshots) if state is not None
    ]
    said = [[AssistantMessage(content=f"answer {turn}")] for turn in range(turns)]
    given: dict[str, Any] = {"sample_id": "a", "trajectory": said, "timing": Timing(total=1, target=1)}
    result = SampleResult(**{**given, "snapshots": kept or None, **fields})
    sample = Sample(id="a", input=[f"question {turn}" for turn in range(turns)])
    return plain_text(conversation_report(result, sample), width=120)


def test_where_only_the_ends_were_kept_the_whole_difference_is_shown() -> None:
    text = conversation([{"human": "a"}, None, None, {"human": "b"}])
    assert text.count("  memory     human: changed\n               - a\n               + b\n") == 1
    assert "what changed over turns 0 to 2; the states between them were not kept" in text
    assert "only the memory before the first turn, after turn 2 was kept; `snapshots: every_turn` in the suite" in text


def test_where_only_the_last_state_was_kept_it_is_shown() -> None:
    text = conversation([], agent_state=AgentState.of({"human": "Ann\nlikes figs"}))
    assert "only the memory at the end was kept; `snapshots: every_turn` in the suite keeps it after each turn" in text
    assert "  memory     human:\n               Ann\n               likes figs\n" in text


def test_where_no_memory_was_kept_it_says_how_to_keep_it() -> None:
    assert "none was kept; for an agent that shows its memory, `snapshots: every_turn` in the suite" in conversation([])


def test_a_conversation_that_began_after_the_last_turn() -> None:
    assert "\nA new conversation began after the last turn.\n" in conversation([], conversations=[1, 3])
    assert "\nTurn 1, in a new conversation\n" in conversation([], conversations=[1, 3])


def test_every_kind_of_message_is_shown() -> None:
    said: list[dict[str, Any]] = [
        {"message_type": "system_message", "content": "be good"},
        {"message_type": "user_message", "content": "question 0"},
        {"message_type": "reasoning_message", "reasoning": "hm"},
        {"message_type": "hidden_reasoning_message", "state": "redacted"},
        {"message_type": "tool_call_message", "tool_calls": [{"name": "f", "arguments": "{}"}, {"name": "g"}]},
        {
            "message_type": "tool_return_message",
            "tool_return": {"a": 1},
            "status": "error",
            "name": "f",
            "stdout": ["x"],
        },
        {"message_type": "approval_request_message", "tool_call": {"name": "h"}},
        {"message_type": "assistant_message", "content": [{"type": "text", "text": "hi"}, {"type": "image_url"}]},
        {"message_type": "summary_message", "summary": "all"},
        {"message_type": "event_message", "event_type": "compaction", "event_data": {"n": 1}},
        {"message_type": "news", "what": 1},
    ]
    text = conversation([], 1, trajectory=[said])
    shown = section(text, "Turn 0")
    assert shown == (
        "Turn 0\n"
        "  system     be good\n"
        "  user       question 0\n"
        "  reasoning  hm\n"
        "  reasoning  (redacted)\n"
        "  call       f({})\n"
        "  call       g({})\n"
        '  return     f: [error] {"a":1}\n'
        "  stdout     x\n"
        "  asks to call\n"
        "             h({})\n"
        "  assistant  hi\n"
        "             (1 without text: image_url)\n"
        "  summary    all\n"
        '  event      compaction {"n":1}\n'
        '  other      {"id":"","message_type":"news","what":1}\n'
    )


HOSTILE = "[red]x[/nosuch] \x1b[2J\x9b2J \u202e\u2066 \r\ud83d\nTurn 9\n  user       forged\n\nquality: 1"
SAFE = "[red]x[/nosuch] \\x1b[2J\\x9b2J \\u202e\\u2066 \\r\\ud83d"


def hostile_result() -> SampleResult:
    return SampleResult(
        sample_id=HOSTILE,
        timing=Timing(total=1, target=1, per_grader={HOSTILE: 1}),
        trajectory=[
            [
                AssistantMessage(content=HOSTILE),
                ToolCallMessage(tool_call=ToolCall(name=HOSTILE, arguments=HOSTILE)),
                ToolReturnMessage(tool_return=HOSTILE, name=HOSTILE, status=HOSTILE),
            ]
        ],
        snapshots=[
            Snapshot(turn=-1, state=AgentState.of({HOSTILE: HOSTILE})),
            Snapshot(turn=0, state=AgentState.of({HOSTILE: f"{HOSTILE}!"})),
        ],
        submissions={"quality": HOSTILE},
        grades={"quality": GradeResult(score=0.0, rationale=HOSTILE, metadata={HOSTILE: HOSTILE})},
        error=SampleError(category=ErrorCategory.GRADING, exception_type=HOSTILE, message=HOSTILE),
        tags=(HOSTILE,),
    )


def test_texts_of_others_are_data_in_a_column_of_their_own(evaltester: EvalTester) -> None:
    with begun(evaltester.results_path, {"m": {}}) as directory:
        with directory.journal("m") as journal:
            journal.append(hostile_result())
        directory.finish()
    for arguments in ([], ["--sample", HOSTILE], ["--errors", "--json"]):
        shown = evaltester.command("report", "results", *map(_passable, arguments), env={"PYTHONIOENCODING": "utf-8"})
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", shown.output)
        assert "Traceback" not in shown.output
    text = plain_text(conversation_report(hostile_result(), None), width=1_000)
    assert text.count(SAFE) >= 10
    structure = [line for line in text.splitlines() if line[:LABEL_WIDTH].strip()]
    assert [line for line in structure if line.startswith(("Turn 9", "  user", "quality: 1"))] == []
    assert structure.count("Turn 0") == 1


def _passable(argument: str) -> str:
    """The argument as a process can be given it: without half an emoji."""
    return argument.encode("utf-8", "ignore").decode()


def test_secrets_of_the_environment_are_not_shown(evaltester: EvalTester) -> None:
    secret = "sk-very-secret-value"
    line = le.scored(0, 0.0) | {"trajectory": [[{"message_type": "assistant_message", "content": f"key {secret}"}]]}
    line["grades"]["quality"]["rationale"] = secret
    le.write_reward_era(evaltester.path / "new", [line, le.failed(1, message=secret)])
    ways = ([], ["--sample", "0"], ["--sample", "0", "--json"], ["--failed", "--errors"])
    for arguments in ways:
        text = report(evaltester, "new", *arguments, env={"OPENAI_API_KEY": secret})
        assert secret not in text
        assert "[redacted]" in text


def test_long_texts_are_cut_unless_all_is_wanted(evaltester: EvalTester) -> None:
    long = "".join(f"line {n}\n" for n in range(500))
    evaltester.write_suite([{"id": "a", "input": long, "ground_truth": "line 499"}], snapshots="every_turn")
    evaltester.run()
    short, full = (report(evaltester, "results", "--sample", "a", *more) for more in ([], ["--full"]))
    assert "line 499" in full
    assert full.count("line 200\n") == 4  # user, assistant, memory, submission
    assert "line 200\n" not in short
    assert "more characters; --full shows all)" in short
    assert "(481 more lines; --full shows all)" in short
    assert len(short) < len(full) / 5


def test_where_it_is_no_terminal_nothing_is_wrapped_unless_a_width_is_asked_for(ran: EvalTester) -> None:
    plain = report(ran, "results", env={"FORCE_COLOR": "", "NO_COLOR": "", "COLUMNS": "40"})
    assert "\x1b" not in plain
    assert max(map(len, plain.splitlines())) > 120
    assert [line for line in plain.splitlines() if line != line.rstrip()] == []
    narrow = report(ran, "results", "--sample", "figs", "--model", "careful", "--run", "1", "--width", "30")
    assert max(map(len, narrow.splitlines())) <= 30
    assert '  call       remember({"what":\n             "figs"})\n' in narrow


# lists


def test_samples_that_failed_and_samples_with_errors(ran: EvalTester) -> None:
    lines = report(ran, "results", "--failed").splitlines()
    assert len(lines) == 17
    assert lines[-1] == "16 of 36 failed"
    assert (
        '  sample figs [forgetful]: 0.5; quality 0.5: turn 1: "figs" is not in the submission "You like nothing yet"'
        in lines
    )
    lines = report(ran, "results", "--errors", "--limit", "1").splitlines()
    assert lines[0].startswith("  sample broken [careful]: target: RuntimeError: turn 1: `send` raised RuntimeError")
    assert lines[1:] == ["4 of 36 errored; the first 1 are shown"]
    both = report(ran, "results", "--failed", "--errors", "--model", "careful", "--run", "2").splitlines()
    assert [both[0], both[2]] == ["0 of 9 failed", "1 of 9 errored"]


def test_lists_as_json_lines(ran: EvalTester) -> None:
    lines = [json.loads(line) for line in report(ran, "results", "--failed", "--errors", "--json").splitlines()]
    assert [line["list"] for line in lines].count("errored") == 4
    assert {(line["model"], line["sample_id"]) for line in lines if line["list"] == "failed"} == {
        ("forgetful", fruit) for fruit in FRUIT
    }
    assert lines[0]["scores"] == {"quality": 0.5}
    assert lines[-1]["error"]["category"] == "target"


def test_a_sample_as_json(ran: EvalTester) -> None:
    (line,) = report(ran, "results", "--sample", "figs", "--model", "careful", "--run", "2", "--json").splitlines()
    document = json.loads(line)
    assert (document["model"], document["run"], document["sample"]["id"]) == ("careful", 2, "figs")
    assert SampleResult.model_validate(document["result"]) == ran.results("careful", 2)["figs"]


# leaderboards


def begun(
    path: Path, scores: Mapping[str, Mapping[str, Sequence[float | None]]], planned: int | None = None, **fields: Any
) -> ResultsDirectory:
    """A run of these scores by model and sample, one of each run; None is an error."""
    planned = planned if planned is not None else max(map(len, scores.values()))
    runs = max((len(one) for samples in scores.values() for one in samples.values()), default=1)
    given: dict[str, Any] = {"suite": "s", "identity": "i", "num_runs": runs, "planned": planned, "version": "0"}
    inputs = RunInputs(dataset="d", graders={"quality": "g"}, reward="r")
    directory = ResultsDirectory.begin(path, labels=list(scores), **{**given, "inputs": inputs, **fields})
    directory.write_suite({}, [Sample(id=key, input="?") for key in next(iter(scores.values()))])
    for label, samples in scores.items():
        for run in range(1, runs + 1):
            with directory.journal(label, run) as journal:
                for key, values in samples.items():
                    journal.append(_result(key, values[run - 1], run))
    return directory


def _result(key: str, score: float | None, run: int) -> SampleResult:
    error = SampleError(category=ErrorCategory.TARGET, exception_type="X", message="no") if score is None else None
    return SampleResult(
        sample_id=key,
        run=run,
        grades={} if score is None else {"quality": GradeResult(score=score)},
        reward=None if score is None else RewardOutput(score=score),
        timing=Timing(total=2, target=1.5),
        usage=Usage(prompt_tokens=1, completion_tokens=1, cost=0.5),
        error=error,
        stage_keys=StageKeys(target="t", row="0123456789abcdef"),
    )


def written(path: Path, scores: Mapping[str, Mapping[str, Sequence[float | None]]], **fields: Any) -> Path:
    """The same, finished."""
    with begun(path, scores, **fields) as directory:
        directory.finish()
    return path


def passes(count: int, of: int = 40, first: int = 0) -> dict[str, list[float | None]]:
    """So many samples that pass, from the `first` on, of these."""
    return {f"s{n}": [float(first <= n < first + count)] for n in range(of)}


SEVERAL = {"weak": passes(4), "good": passes(30), "fair": passes(24), "best": passes(36)}

GROUPS = """\
Leaderboard by reward
Rank  Model  reward   95 % interval   n    Passed  Errored  Cost, USD  p50, s  Group
────────────────────────────────────────────────────────────────────────────────────
   1  best    0.900  [0.769, 0.960]  40  36 of 40        0    20.0000    1.50      a
   2  good    0.750  [0.598, 0.858]  40  30 of 40        0    20.0000    1.50     ab
   3  fair    0.600  [0.446, 0.737]  40  24 of 40        0    20.0000    1.50      b
   4  weak    0.100  [0.040, 0.231]  40   4 of 40        0    20.0000    1.50      c
Means over n samples, repeats averaged within the sample first; errored ones count as 0.
Models that share a letter do not differ significantly: pairs of models on the samples that both have (at least 40), \
two-sided, at 5 % after Holm's correction.
"""


def test_models_that_cannot_be_told_apart_share_a_letter(evaltester: EvalTester) -> None:
    # McNemar: 6 discordant pairs give p = 0.031, three times that after Holm is no longer significant; 12 give 0.0005.
    written(evaltester.results_path, SEVERAL)
    assert section(report(evaltester, "results"), "Leaderboard") == GROUPS


def test_several_directories_have_one_leaderboard(evaltester: EvalTester) -> None:
    for label, scores in SEVERAL.items():
        written(evaltester.path / label, {label: scores})
    text = report(evaltester, *SEVERAL)
    assert section(text, "Leaderboard") == GROUPS
    assert "s: good\n" in text
    assert "  good, reward: 40 planned = 30 passed + 10 failed + 0 unscored + 0 errored + 0 timed out" in text


def test_models_of_the_same_name_are_told_apart_by_their_directories(evaltester: EvalTester) -> None:
    for name in ("before", "after"):
        written(evaltester.path / name, {"m": passes(2)})
    text = report(evaltester, "before", "after")
    assert re.findall(r"^ +(\d)  (m \(\w+\)).* (a)$", text, re.MULTILINE) == [
        ("1", "m (after)", "a"),
        ("1", "m (before)", "a"),
    ]


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        (RunInputs(dataset="d", graders={"quality": "other"}, reward="r"), "the grader of `quality`"),
        (RunInputs(dataset="d", graders={"quality": "g"}, reward="other"), "how the reward is composed"),
    ],
)
def test_what_differs_is_marked_and_no_group_is_told(evaltester: EvalTester, inputs: RunInputs, said: str) -> None:
    written(evaltester.path / "one", {"m": passes(2)})
    written(evaltester.path / "two", {"n": passes(38)}, inputs=inputs)
    text = report(evaltester, "one", "two")
    (mark,) = [line for line in text.splitlines() if line.startswith("NOT COMPARABLE: two: ")]
    assert said in mark
    assert "Group" not in text
    document = json.loads(report(evaltester, "one", "two", "--json"))
    assert said in document["leaderboard"]["not_comparable"][0]
    assert {entrant["group"] for entrant in document["leaderboard"]["entrants"]} == {""}


def test_other_samples_are_marked(evaltester: EvalTester) -> None:
    written(evaltester.path / "one", {"m": passes(2)})
    others = {f"other {key}": value for key, value in passes(2).items()}
    inputs = RunInputs(dataset="e", graders={"quality": "g"}, reward="r")
    written(evaltester.path / "two", {"n": others}, inputs=inputs)
    assert "NOT COMPARABLE: two has no sample of one\n" in report(evaltester, "one", "two")


def test_the_leaderboard_as_json_and_by_another_metric(evaltester: EvalTester) -> None:
    written(evaltester.results_path, SEVERAL)
    document = json.loads(report(evaltester, "results", "--json"))
    board = document["leaderboard"]
    assert (board["metric"], board["significance"], board["fewest_shared_samples"]) == ("reward", 0.05, 40)
    assert [(e["rank"], e["model"], e["group"]) for e in board["entrants"]] == [
        (1, "best", "a"),
        (2, "good", "ab"),
        (3, "fair", "b"),
        (4, "weak", "c"),
    ]
    assert board["entrants"][0]["interval"] == pytest.approx([0.7694, 0.9605], abs=1e-4)
    assert [model["model"] for model in document["results"][0]["summary"]["models"]] == list(SEVERAL)
    text = report(evaltester, "results", "--metric", "cost")
    assert "Leaderboard by cost, the least first\n" in text
    assert "Means over n samples, repeats averaged within the sample first; errored samples are left out.\n" in text
    assert "Passed" not in section(text, "Leaderboard")


def test_one_model_has_a_leaderboard_only_where_a_metric_is_asked_for(evaltester: EvalTester) -> None:
    written(evaltester.results_path, {"m": passes(2)})
    assert "Leaderboard" not in report(evaltester, "results")
    assert "Leaderboard by quality\n" in report(evaltester, "results", "--metric", "quality")


def test_errors_count_as_the_suite_says(tmp_path: Path) -> None:
    scores: dict[str, dict[str, list[float | None]]] = {"m": {"a": [1.0, 1.0], "b": [0.5, None], "c": [None, None]}}
    (counted,) = leaderboard([ResultsDirectory.open(written(tmp_path / "fail", scores))]).entrants
    assert (counted.value, counted.n, counted.errored) == (pytest.approx(1.25 / 3), 3, 3)
    (excluded,) = leaderboard([ResultsDirectory.open(written(tmp_path / "ex", scores, on_error="exclude"))]).entrants
    assert (excluded.value, excluded.n, excluded.errored) == (0.75, 2, 3)
    (latency,) = leaderboard([ResultsDirectory.open(tmp_path / "fail")], "latency").entrants
    assert (latency.value, latency.n, latency.passed) == (1.5, 2, None)


def test_equal_values_have_equal_ranks_and_the_order_of_models_does_not_matter(tmp_path: Path) -> None:
    scores = {"a": passes(9, first=1), "b": passes(9), "c": passes(20), "d": passes(3)}
    reversed_scores = dict(reversed(scores.items()))
    boards = [
        leaderboard([ResultsDirectory.open(written(tmp_path / name, order))]).entrants
        for name, order in (("one", scores), ("two", reversed_scores))
    ]
    shown = [[(one.rank, one.label, one.group) for one in board] for board in boards]
    assert shown[0] == shown[1]
    assert [(rank, label) for rank, label, _ in shown[0]] == [(1, "c"), (2, "a"), (2, "b"), (4, "d")]


# memory

TEXTS = st.lists(st.sampled_from(["a", "b", "", "long " * 60]), max_size=12).map("\n".join)


@given(TEXTS, TEXTS)
def test_a_difference_holds_all_that_was_removed_and_added(before: str, after: str) -> None:
    states = [Snapshot(turn=turn, state=AgentState.of({"x": text})) for turn, text in ((-1, before), (0, after))]
    (change,) = memory_changes(states)
    lines = [line.plain for line in change_passage(change, Writing(full=True)).lines]
    removed, added = ([line[4:] for line in lines if line.startswith(sign)] for sign in ("  -", "  +"))
    assert (lines == ["unchanged"]) == (before == after)
    old, new = before.split("\n"), after.split("\n")
    assert len(old) - len(removed) == len(new) - len(added)
    for shown, whole in ((removed, old), (added, new)):
        rest = iter([line.rstrip() for line in whole])
        assert all(line.rstrip() in rest for line in shown)


def test_of_a_long_line_the_place_that_changed_is_shown() -> None:
    before = "x" * 3_000 + " likes nothing " + "y" * 3_000
    states = [
        Snapshot(turn=-1, state=AgentState.of({"human": before})),
        Snapshot(turn=0, state=AgentState.of({"human": before.replace("nothing", "figs")})),
    ]
    lines = [line.plain for line in change_passage(memory_changes(states)[0], Writing()).lines]
    assert [line[:7] for line in lines[1:]] == ["  - ...", "  + ..."]
    assert "likes nothing" in lines[1]
    assert "likes figs" in lines[2]
    assert max(map(len, lines)) < 300


def test_a_block_of_very_many_lines_is_compared_at_once() -> None:
    before = "\n".join(f"{n % 7}" for n in range(4_000))
    states = [
        Snapshot(turn=-1, state=AgentState.of({"human": before})),
        Snapshot(turn=0, state=AgentState.of({"human": before.replace("6\n0\n1", "6\nnew\n1", 1)})),
    ]
    lines = [line.plain for line in change_passage(memory_changes(states)[0], Writing()).lines]
    assert lines == ["human: changed", "  - 0", "  + new"]


def test_how_to_go_on_names_the_suite_and_whose_conversations_are_graded(tmp_path: Path) -> None:
    fixed: dict[str, Any] = {"suite": "s", "identity": "i", "version": "0", "num_runs": 1}
    with ResultsDirectory.begin(
        tmp_path / "new run", labels=["m"], planned=2, **fixed, suite_file="my suite.yaml", cached=tmp_path / "old run"
    ):
        pass
    results = open_results(tmp_path / "new run")
    *_, told = run_lines(results, summary_of(results))
    new, old = tmp_path / "new run", tmp_path / "old run"
    assert told == f"To go on: stateval run 'my suite.yaml' --resume '{new}' --cached '{old}'"


def test_a_single_model_is_in_no_group(tmp_path: Path) -> None:
    path = le.write_reward_era(tmp_path / "one", [le.scored(0, 1.0), le.scored(1, 0.0)])
    board = leaderboard([open_results(path)], "latency")
    assert ([entrant.group for entrant in board.entrants], board.fewest_shared) == ([""], None)
