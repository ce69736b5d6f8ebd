"""What people and tools see of a run."""

from __future__ import annotations

import io
import json
import re
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from stateval.errors import UsageError
from stateval.gates import evaluate_gates, parse_gates
from stateval.records.grade import GradeResult, PerTurnGrade, RewardOutput
from stateval.records.result import ErrorCategory, Observation, SampleError, SampleResult
from stateval.records.summary import ErrorSummary, Ledger, MetricSummary, ModelSummary, PerRunSummary, Summary
from stateval.records.usage import Timing, Usage
from stateval.reports.printable import printable, shortened
from stateval.reports.progress import DISPLAYS, Display, JsonDisplay, RichDisplay, SimpleDisplay, make_display, show
from stateval.reports.samples import noteworthy, samples_report
from stateval.reports.terminal import plain_text, report_console, summary_report, summary_text
from stateval.reports.verdicts import verdict_report
from stateval.results.directory import ResultsDirectory
from stateval.running.events import (
    Event,
    EventChannel,
    RunFinished,
    RunStarted,
    SampleFinished,
    SampleStarted,
    TurnFinished,
)
from stateval.running.summary import summarise
from stateval.stats.table import ObservationTable

GATES = [
    {"name": "main", "metric_key": "reward", "op": "gte", "value": 0.33},
    {
        "name": "both",
        "on_fail": "warn",
        "kind": "logical",
        "operator": "and",
        "conditions": [
            {"metric_key": "contains", "aggregation": "accuracy", "op": "gte", "value": 80},
            {"kind": "weighted_average", "weights": {"contains": 3, "tone": 1}, "op": "gte", "value": 0.4},
        ],
    },
    {"metric_key": "cost", "op": "lt", "value": 1},
]


def summary_of(
    models: tuple[str, ...] = ("default",), runs: int = 1, gates: Any = GATES, planned: int = 4, **options: Any
) -> Summary:
    """Each run has three scored samples, of which the second scores low and the first has no price, and an error."""
    tables = {model: ObservationTable(["contains", "tone"]) for model in models}
    for table in tables.values():
        for run in range(1, runs + 1):
            for number in range(3):
                score = float(number != 1)
                usage = Usage(prompt_tokens=100, completion_tokens=20, cost=0.001 if number else None)
                table.add(
                    Observation(
                        sample_id=str(number),
                        run=run,
                        scores={"contains": score, "tone": 0.5 + number / 10},
                        timing=Timing(total=number + 1, target=number + 0.5),
                        reward=score,
                        usage=usage,
                    )
                )
            failed = {"error": ErrorCategory.TARGET, "exception_type": "ConnectError"}
            table.add(Observation(sample_id="3", run=run, scores={}, timing=Timing(total=3.5, target=3.2), **failed))
    settings = {"planned_per_run": planned, "num_runs": runs, "has_reward": True, "on_error": "fail"}
    verdicts = evaluate_gates(
        parse_gates(gates), tables, on_error="fail", num_runs=runs, finished=planned == 4, pass_threshold=1.0
    )
    return summarise("fruit-preferences", tables, gates=verdicts, **{**settings, **options})


ONE_MODEL = """\
fruit-preferences
Model    Metric         n   Mean    95 % interval  Std dev  Errors
──────────────────────────────────────────────────────────────────
default  contains       3  0.667   [0.208, 0.939]    0.577       1
           errors as 0  4  0.500   [0.150, 0.850]        -       -
default  tone           3  0.600   [0.352, 0.848]    0.100       1
           errors as 0  4  0.450  [-0.045, 0.945]        -       -
default  reward         3  0.667   [0.208, 0.939]    0.577       1
           errors as 0  4  0.500   [0.150, 0.850]        -       -

Ledger
  default, reward: 4 planned = 2 passed + 1 failed + 0 unscored + 1 errored (target 1) + 0 timed out
  + 0 skipped + 0 not reached
default: seconds a sample: mean 2.38, p50 2.50, p95 3.42; tokens: 300 in, 60 out; cost: 0.0020 USD;
observations without a known price: 1
default: errors: 1 (by category: target 1; by type: ConnectError 1)

Gate main: PASS [default] avg_score(reward) >= 0.33: measured 0.5; n = 4; 1 errored counted as 0
Gate both: FAIL [default] all of (a warning only)
├── FAIL accuracy(contains) >= 80 %: measured 50 %; n = 4; 1 errored counted as not passed
└── PASS 0.75 avg_score(contains) + 0.25 avg_score(tone) >= 0.4: measured 0.4875; n = 4
    ├── avg_score(contains): measured 0.5; n = 4; 1 errored counted as 0
    └── avg_score(tone): measured 0.45; n = 4; 1 errored counted as 0
Gate: INCONCLUSIVE [default] avg_score(cost) < 1: cost is not known for 2 of 4 observations
All gates: INCONCLUSIVE
Agents left on the server: 3
Results: .stateval/runs/fruit
"""

SEVERAL_MODELS_AND_RUNS = """\
fruit-preferences
Model                  Metric         n  Samples   Mean    95 % interval  Std dev  Errors
─────────────────────────────────────────────────────────────────────────────────────────
openai/gpt-4o-mini     contains       6        4  0.667   [0.208, 0.939]    0.516       2
                         errors as 0  8        -  0.500   [0.150, 0.850]        -       -
openai/gpt-4o-mini     tone           6        4  0.600   [0.352, 0.848]    0.089       2
                         errors as 0  8        -  0.450  [-0.045, 0.945]        -       -
openai/gpt-4o-mini     reward         6        4  0.667   [0.208, 0.939]    0.516       2
                         errors as 0  8        -  0.500   [0.150, 0.850]        -       -
embedded/smollm2-135m  contains       6        4  0.667   [0.208, 0.939]    0.516       2
                         errors as 0  8        -  0.500   [0.150, 0.850]        -       -
embedded/smollm2-135m  tone           6        4  0.600   [0.352, 0.848]    0.089       2
                         errors as 0  8        -  0.450  [-0.045, 0.945]        -       -
embedded/smollm2-135m  reward         6        4  0.667   [0.208, 0.939]    0.516       2
                         errors as 0  8        -  0.500   [0.150, 0.850]        -       -

Runs of openai/gpt-4o-mini
Run      Samples  reward (n)  contains (n)   tone (n)  Errors
─────────────────────────────────────────────────────────────
1              4   0.667 (3)     0.667 (3)  0.600 (3)       1
2              4   0.667 (3)     0.667 (3)  0.600 (3)       1
mean           -       0.667         0.667      0.600       -
std dev        -       0.000         0.000      0.000       -
  contains: with k = 1, 2 tries, pass@k 0.500, 0.500; pass^k 0.500, 0.500 (n = 4 samples)
  tone: with k = 1, 2 tries, pass@k 0.000, 0.000; pass^k 0.000, 0.000 (n = 4 samples)
  reward: with k = 1, 2 tries, pass@k 0.500, 0.500; pass^k 0.500, 0.500 (n = 4 samples)

Runs of embedded/smollm2-135m
Run      Samples  reward (n)  contains (n)   tone (n)  Errors
─────────────────────────────────────────────────────────────
1              4   0.667 (3)     0.667 (3)  0.600 (3)       1
2              4   0.667 (3)     0.667 (3)  0.600 (3)       1
mean           -       0.667         0.667      0.600       -
std dev        -       0.000         0.000      0.000       -
  contains: with k = 1, 2 tries, pass@k 0.500, 0.500; pass^k 0.500, 0.500 (n = 4 samples)
  tone: with k = 1, 2 tries, pass@k 0.000, 0.000; pass^k 0.000, 0.000 (n = 4 samples)
  reward: with k = 1, 2 tries, pass@k 0.500, 0.500; pass^k 0.500, 0.500 (n = 4 samples)

Ledger
  openai/gpt-4o-mini, reward: 8 planned = 4 passed + 2 failed + 0 unscored + 2 errored (target 2) +
  0 timed out + 0 skipped + 0 not reached
  embedded/smollm2-135m, reward: 8 planned = 4 passed + 2 failed + 0 unscored + 2 errored (target 2)
  + 0 timed out + 0 skipped + 0 not reached
openai/gpt-4o-mini: seconds a sample: mean 2.38, p50 2.50, p95 3.50; tokens: 600 in, 120 out; cost:
0.0040 USD; observations without a known price: 2
embedded/smollm2-135m: seconds a sample: mean 2.38, p50 2.50, p95 3.50; tokens: 600 in, 120 out;
cost: 0.0040 USD; observations without a known price: 2
openai/gpt-4o-mini: errors: 2 (by category: target 2; by type: ConnectError 2)
embedded/smollm2-135m: errors: 2 (by category: target 2; by type: ConnectError 2)

Gate main: PASS for each model: avg_score(reward) >= 0.33: holds for 2 of 2 models
├── PASS [openai/gpt-4o-mini] avg_score(reward) >= 0.33: measured 0.5; n = 8 (of 4 samples); 2
│   errored counted as 0; 2 of 2 runs pass alone
└── PASS [embedded/smollm2-135m] avg_score(reward) >= 0.33: measured 0.5; n = 8 (of 4 samples); 2
    errored counted as 0; 2 of 2 runs pass alone
Gate both: FAIL for each model: all of: holds for 0 of 2 models (a warning only)
├── FAIL [openai/gpt-4o-mini] all of: 0 of 2 runs pass alone
│   ├── FAIL accuracy(contains) >= 80 %: measured 50 %; n = 8 (of 4 samples); 2 errored counted as
│   │   not passed
│   └── PASS 0.75 avg_score(contains) + 0.25 avg_score(tone) >= 0.4: measured 0.4875; n = 8 (of 4
│       samples)
│       ├── avg_score(contains): measured 0.5; n = 8 (of 4 samples); 2 errored counted as 0
│       └── avg_score(tone): measured 0.45; n = 8 (of 4 samples); 2 errored counted as 0
└── FAIL [embedded/smollm2-135m] all of: 0 of 2 runs pass alone
    ├── FAIL accuracy(contains) >= 80 %: measured 50 %; n = 8 (of 4 samples); 2 errored counted as
    │   not passed
    └── PASS 0.75 avg_score(contains) + 0.25 avg_score(tone) >= 0.4: measured 0.4875; n = 8 (of 4
        samples)
        ├── avg_score(contains): measured 0.5; n = 8 (of 4 samples); 2 errored counted as 0
        └── avg_score(tone): measured 0.45; n = 8 (of 4 samples); 2 errored counted as 0
Gate: INCONCLUSIVE for each model: avg_score(cost) < 1: holds for 0 of 2 models
├── INCONCLUSIVE [openai/gpt-4o-mini] avg_score(cost) < 1: 0 of 2 runs pass alone; cost is not known
│   for 4 of 8 observations
└── INCONCLUSIVE [embedded/smollm2-135m] avg_score(cost) < 1: 0 of 2 runs pass alone; cost is not
    known for 4 of 8 observations
All gates: INCONCLUSIVE
"""

UNFINISHED = """\
fruit-preferences
The run did not finish: not every planned sample was reached.
Stopped: limit of 2 USD
Model    Metric         n   Mean    95 % interval  Std dev  Errors
──────────────────────────────────────────────────────────────────
default  contains       3  0.667   [0.208, 0.939]    0.577       1
           errors as 0  4  0.500   [0.150, 0.850]        -       -
default  tone           3  0.600   [0.352, 0.848]    0.100       1
           errors as 0  4  0.450  [-0.045, 0.945]        -       -

Ledger
  default, contains: 10 planned = 2 passed + 1 failed + 0 unscored + 1 errored (target 1) + 0 timed
  out + 0 skipped + 6 not reached
  default, tone: 10 planned = 0 passed + 3 failed + 0 unscored + 1 errored (target 1) + 0 timed out
  + 0 skipped + 6 not reached
default: seconds a sample: mean 2.38, p50 2.50, p95 3.42; tokens: 300 in, 60 out; cost: 0.0020 USD;
observations without a known price: 1
default: errors: 1 (by category: target 1; by type: ConnectError 1)

Gate: INCONCLUSIVE [default] avg_score(tone) >= 0.1: measured 0.45; n = 4; 1 errored counted as 0;
the run did not finish
"""


def test_the_report_of_one_model() -> None:
    assert summary_text(summary_of(agents_left=3), directory=".stateval/runs/fruit") == ONE_MODEL


def test_the_report_of_several_models_and_runs() -> None:
    text = summary_text(summary_of(("openai/gpt-4o-mini", "embedded/smollm2-135m"), runs=2))
    assert text == SEVERAL_MODELS_AND_RUNS


@pytest.mark.parametrize("reason", [pytest.param("limit of 2 USD", id="fault-61-stopped-half-way")])
def test_the_report_of_an_unfinished_run_without_a_reward(reason: str) -> None:
    gate = {"metric_key": "tone", "op": "gte", "value": 0.1}
    summary = summary_of(planned=10, gates=gate, has_reward=False, stopped_because=reason)
    assert summary_text(summary) == UNFINISHED


def test_runs_of_an_unfinished_run_show_how_many_samples_each_reached() -> None:
    lines = summary_text(summary_of(runs=2, planned=10)).splitlines()
    assert "1              4   0.667 (3)     0.667 (3)  0.600 (3)       1" in lines


def test_where_nothing_was_measured_the_verdict_says_of_how_many() -> None:
    table = ObservationTable(["tone"])
    failed = {"error": ErrorCategory.TARGET, "exception_type": "ConnectError"}
    table.add(Observation(sample_id="3", run=1, scores={}, timing=Timing(total=3.5, target=3.2), **failed))
    gates = parse_gates({"metric_key": "tone", "op": "gte", "value": 0.1})
    verdicts = evaluate_gates(gates, {"m": table}, on_error="fail", num_runs=1, finished=True)
    said = plain_text(verdict_report(verdicts))
    assert said == "Gate: INCONCLUSIVE [m] avg_score(tone) >= 0.1: 0 of 1 observations have a value of tone\n"


LONG_PLACE = f"/results/{'a directory with a long name/' * 10}here"


def printed(report: Any, stream: io.StringIO) -> list[str]:
    report_console(stream).print(report)
    return re.sub(r"\x1b\[[0-9;]*m", "", stream.getvalue()).splitlines()


@pytest.mark.parametrize("colour", ["", "1"])
def test_where_there_is_no_terminal_nothing_is_wrapped_or_padded(monkeypatch: pytest.MonkeyPatch, colour: str) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("FORCE_COLOR", colour)
    summary = summary_of(("openai/gpt-4o-mini", "b"), runs=2)
    lines = printed(summary_report(summary, directory=LONG_PLACE), io.StringIO())
    assert lines[-1] == f"Results: {LONG_PLACE}"
    assert [line for line in lines if line != line.rstrip()] == []
    ledger = (
        "8 planned = 4 passed + 2 failed + 0 unscored + 2 errored (target 2) + 0 timed out + 0 skipped + 0 not reached"
    )
    assert f"  b, reward: {ledger}" in lines
    assert lines == summary_text(summary, directory=LONG_PLACE, width=10_000).splitlines()


def test_a_path_is_whole_on_a_narrow_terminal_too(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("COLUMNS", "80")
    *lines, last = printed(summary_report(summary_of(), directory=LONG_PLACE), Terminal())
    assert last == f"Results: {LONG_PLACE}"
    assert 60 < max(map(len, lines)) <= 80
    assert [line for line in lines if line.startswith("  ") and line != line.rstrip()] == []


@pytest.mark.parametrize("width", [40, 80])
def test_narrow_screens_lose_no_words(width: int) -> None:
    text = summary_text(summary_of(("openai/gpt-4o-mini", "b"), runs=2), width=width, directory="results")
    assert max(map(len, text.splitlines())) <= width
    joined = re.sub(r"[\s│├└─]+", "", text)
    for words in ("openai/gpt-4o-mini,reward:8planned=4passed+2failed", "INCONCLUSIVE", "Results:results"):
        assert words in joined


def test_colour_only_repeats_what_words_say(monkeypatch: pytest.MonkeyPatch) -> None:
    def printed(**options: Any) -> str:
        stream = io.StringIO()
        console = Console(file=stream, width=100, force_terminal=True, **options)
        console.print(summary_report(summary_of(), encoding=console.encoding))
        return stream.getvalue()

    monkeypatch.delenv("NO_COLOR", raising=False)
    coloured = printed(color_system="truecolor")
    assert "\x1b[1;32mPASS" in coloured
    monkeypatch.setenv("NO_COLOR", "1")
    without = printed(color_system="truecolor")
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]m", without)
    strip = re.compile(r"\x1b\[[0-9;]*m")
    assert strip.sub("", coloured) == strip.sub("", without)


HOSTILE = "[bold]x[/nosuch] :smile: \x1b[2J\u202e\ud83d\n"


def test_names_and_texts_are_shown_as_they_are_and_never_obeyed() -> None:
    verdicts = summary_of(gates={"name": HOSTILE, "metric_key": "tone", "op": "gte", "value": 0.1}).gates
    model = ModelSummary(
        model=HOSTILE,
        n_total=1,
        n_attempted=1,
        metrics={HOSTILE: MetricSummary(n_scored=1, n_counted=1)},
        ledgers={HOSTILE: Ledger(planned=1, passed=1)},
        per_metric={HOSTILE: 1.0},
        runs=[PerRunSummary(run=1)],
        errors=ErrorSummary(total_errors=1, by_exception_type={HOSTILE: 1}),
    )
    summary = Summary(suite=HOSTILE, models=[model], gates=verdicts, stopped_because=HOSTILE, agents_left=1)
    text = summary_text(summary, directory=HOSTILE, width=300)
    text += samples_text([result(HOSTILE, 0.5), result("e", error=HOSTILE)], width=300)
    # suite, stop, table (2), runs (2), ledger (2), errors (2), gate, place; sample, rationale, error
    assert text.count("[bold]x[/nosuch] :smile: \\x1b[2J\\u202e\\ud83d\\n") == 15
    assert all(c.isascii() or c in "│├└─" for c in text)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
@given(text=st.text(st.characters(codec=None), max_size=30))
def test_printable_text_is_one_line_that_can_be_encoded(encoding: str, text: str) -> None:
    shown = printable(text, encoding=encoding)
    shown.encode(encoding)
    assert len(shown.splitlines()) <= 1
    assert not any(ord(c) < 32 or 127 <= ord(c) < 160 or c in "\u202e\u2066\u200b" for c in shown)


def test_ordinary_text_of_all_scripts_stays() -> None:
    text = "naïve \u2013 東京 👩\u200d🚒"
    assert printable(text) == text
    assert printable(text, encoding="ascii").startswith("na\\xefve \\u2013")
    assert (shortened("abcdef", 5), shortened("abcde", 5)) == ("ab...", "abcde")


# samples


def result(sample: str, score: float | None = None, error: str | None = None, **fields: Any) -> SampleResult:
    grade = None if score is None else GradeResult(score=score, rationale=f"because {sample}")
    return SampleResult(
        sample_id=sample,
        timing=Timing(total=1, target=1),
        grades={"contains": grade} if grade else {},
        submissions={"contains": "I like apples."} if grade else {},
        error=SampleError(category=ErrorCategory.TARGET, exception_type="X", message=error) if error else None,
        **fields,
    )


SAMPLES = """\
Errors (2 of 3)
  sample e1: target: no server
  sample e2: target: no answer
Samples, lowest scores first (2 of 4)
  sample low: 0
    contains 0: because low
    submission: I like apples.
  sample b run 2 [m]: 0.5
    contains 0.5: because b
    submission: I like apples.
"""


def test_samples_to_look_at_first_of_a_stream() -> None:
    def stream() -> Iterator[SampleResult]:
        yield result("a", 1.0)
        yield result("e1", error="no server")
        yield result("b", 0.5, run=2, model_handle="m")
        yield result("e2", error="no answer")
        yield result("c", 0.5)
        yield result("e3", error="no memory")
        yield result("low", 1.0, reward=RewardOutput(score=0))

    text = samples_text(stream(), limit=2)
    assert text == SAMPLES.replace("contains 0:", "contains 1:")
    assert samples_text([]).strip() == ""


PER_TURN = """\
Samples, lowest scores first (1 of 1)
  sample a [mine]: 0.5
    contains 0.5: turn 0: 1; turn 2: 0.2; turn 3: 0.3
    the worst, turn 2: "Ann" is not there
    submission: I forgot.
"""


def test_the_worst_turn_says_why() -> None:
    said = [(0, 1.0, "Hello."), (2, 0.2, "I forgot."), (3, 0.3, "Ann?")]
    turns = [
        PerTurnGrade(turn=turn, score=score, rationale='"Ann" is not there' if turn == 2 else "fine", submission=text)
        for turn, score, text in said
    ]
    grade = GradeResult(score=0.5, rationale="turn 0: 1; turn 2: 0.2; turn 3: 0.3", per_turn_grades=turns)
    of_a = result("a").model_copy(update={"grades": {"contains": grade}})
    assert samples_text([of_a], label="mine") == PER_TURN


def test_the_mean_of_several_metrics_without_a_reward_is_called_so() -> None:
    grades = {"contains": GradeResult(score=1.0), "tone": GradeResult(score=0.5)}
    several = result("a").model_copy(update={"grades": grades})
    assert "  sample a: 0.75 (mean of metrics)\n" in samples_text([several])
    rewarded = several.model_copy(update={"reward": RewardOutput(score=0.75)})
    assert "  sample a: 0.75\n" in samples_text([rewarded])
    assert "  sample b: 0.5\n" in samples_text([result("b", 0.5)])


@pytest.mark.parametrize(
    ("label", "handle", "shown"),
    [("one", None, " [one]"), ("one/m", "m", " [one/m]"), (None, "m", " [m]"), ("default", None, "")],
)
def test_samples_name_the_model_as_tables_do(label: str | None, handle: str | None, shown: str) -> None:
    text = samples_text([result("a", 0.5, model_handle=handle), result("e", error="no")], label=label)
    assert f"  sample a{shown}: 0.5\n" in text
    assert ("  sample e [one]: target: no\n" in text) is (label == "one")


def test_long_rationales_are_cut() -> None:
    text = samples_text([result("x" * 1000, 0.5)], width=2000)
    assert max(map(len, text.splitlines())) < 1100
    assert "..." in text


def samples_text(results: Iterable[SampleResult], *, limit: int = 5, width: int = 100, label: str | None = None) -> str:
    """What is printed of these results when they lie in a directory."""
    with tempfile.TemporaryDirectory() as place:
        arguments = {"suite": "s", "identity": "i", "labels": ["m"], "num_runs": 1, "planned": 9, "version": "0"}
        with ResultsDirectory.begin(Path(place), **arguments) as directory:
            with directory.journal("m") as journal:
                for one in results:
                    journal.append(one)
            return plain_text(samples_report(noteworthy(directory, "m", limit), label=label), width=width)


# progress

EVENTS: list[Event] = [
    RunStarted("fruit", ("m",), samples=2, runs=1, total=2, directory="out"),
    SampleStarted("m", 1, "a"),
    SampleStarted("m", 1, "b"),
    TurnFinished("m", 1, "a", 1, 2),
    SampleFinished("m", 1, "a", {"contains": 0.25}, 0.25, None, 1.25),
    SampleFinished("m", 1, "b", {}, None, f"target: {HOSTILE}", 0.5),
    RunFinished(Summary(suite="fruit", models=[])),
]


def shown(display: Display, events: list[Event] = EVENTS, capacity: int = 100) -> EventChannel:
    async def run() -> EventChannel:
        with EventChannel(capacity) as channel:
            for event in events:
                channel.send(event)
            channel.close()
            await show(channel, display)
        return channel

    return anyio.run(run)


def test_plain_lines() -> None:
    stream = io.StringIO()
    shown(SimpleDisplay(stream))
    assert stream.getvalue().splitlines() == [
        "fruit: 2 samples; results: out",
        "[1/2] a: contains 0.25, reward 0.25 (1.2 s)",
        "[2/2] b: ERROR target: [bold]x[/nosuch] :smile: \\x1b[2J\\u202e\\ud83d\\n (0.5 s)",
        "2 of 2 finished, 1 errored",
    ]


def test_json_lines() -> None:
    stream = io.StringIO()
    shown(JsonDisplay(stream))
    assert stream.getvalue().isascii()
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line["event"] for line in lines] == [
        "run_started",
        "sample_started",
        "sample_started",
        "turn_finished",
        "sample_finished",
        "sample_finished",
        "run_finished",
        "end",
    ]
    assert lines[4]["scores"] == {"contains": 0.25}
    assert lines[6]["summary"]["suite"] == "fruit"
    assert lines[7] == {"event": "end", "total": 2, "started": 2, "finished": 2, "errored": 1, "dropped": 0}


def test_a_full_channel_drops_and_counts_while_progress_stays_exact() -> None:
    stream = io.StringIO()
    channel = shown(SimpleDisplay(stream), capacity=1)
    assert channel.dropped == len(EVENTS) - 1
    progress = channel.progress
    assert (progress.total, progress.started, progress.finished, progress.errored) == (2, 2, 2, 1)
    assert (progress.running, progress.scores["m", "contains"].mean) == (0, 0.25)
    assert "2 of 2 finished, 1 errored" in stream.getvalue()
    assert f"{channel.dropped} progress events were not shown" in stream.getvalue()


def test_sending_without_a_display_never_raises() -> None:
    with EventChannel(1) as channel:
        channel.send(EVENTS[0])
    channel.send(EVENTS[1])
    assert (channel.dropped, channel.progress.started) == (1, 1)


def test_the_live_display_shows_bar_means_and_samples_in_flight() -> None:
    stream = io.StringIO()
    console = Console(file=stream, width=80, force_terminal=True, color_system=None)
    display, channel = RichDisplay(console), EventChannel()
    for number in range(8):
        started = SampleStarted("m", 1, f"s{number} [red]\x1b[2J")
        for event in [*EVENTS[:1], started] if number == 0 else [started]:
            channel.send(event)
            display.update(event, channel.progress)
    finished = SampleFinished("m", 1, "s7 [red]\x1b[2J", {"contains": 0.25}, None, None, 1)
    for event in (TurnFinished("m", 1, "s0 [red]\x1b[2J", 1, 3), finished):
        channel.send(event)
        display.update(event, channel.progress)
    display.refresh(channel.progress)
    display.close(channel.progress, 0)
    channel.__exit__(None, None, None)
    text = stream.getvalue()
    assert "running s0 [red]\\x1b[2J [m] (1 of 3 turns)" in text
    assert "and 2 more" in text
    assert re.search(r"m +contains +0.250 +n = 1", text)
    assert "1/2, 0 errored" in text
    assert "\x1b[2J" not in text


def test_samples_whose_end_was_dropped_do_not_stay_on_the_screen() -> None:
    stream = io.StringIO()
    display, channel = (
        RichDisplay(Console(file=stream, width=80, force_terminal=True, color_system=None)),
        EventChannel(),
    )
    for event in EVENTS:
        channel.send(event)
        if not isinstance(event, SampleFinished):
            display.update(event, channel.progress)
    display.refresh(channel.progress)
    display.close(channel.progress, 2)
    channel.__exit__(None, None, None)
    assert "running" not in stream.getvalue()


def test_a_screen_that_goes_away_ends_the_display_and_not_the_run(caplog: pytest.LogCaptureFixture) -> None:
    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError(32, "Broken pipe")

    channel = shown(SimpleDisplay(Gone()))
    assert channel.progress.finished == 2
    assert "progress is no longer shown" in caplog.text


@pytest.mark.parametrize("name", DISPLAYS)
def test_every_display_takes_every_event(name: str) -> None:
    stream = io.StringIO()
    shown(make_display(name, Console(file=stream, width=80, force_terminal=name == "rich")))
    assert bool(stream.getvalue()) is (name != "none")


def test_several_models_and_runs_are_named_in_plain_lines() -> None:
    stream = io.StringIO()
    events: list[Event] = [
        RunStarted("fruit", ("m", "n"), samples=2, runs=3, total=12),
        SampleFinished("n", 3, "a", {"contains": 1.0}, None, None, 0.1),
    ]
    shown(SimpleDisplay(stream), events)
    assert stream.getvalue().splitlines()[:2] == [
        "fruit: 2 samples x 3 runs x 2 models = 12",
        "[1/12] a run 3 [n]: contains 1 (0.1 s)",
    ]


def test_an_unknown_display_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="rich, simple, json, none"):
        make_display("fancy", Console())


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("::warning::x", "\\x3a:warning::x"),
        ("  ::warning::x", "  \\x3a:warning::x"),
        ("said ::error::x", "said \\x3a:error::x"),
        ("\u3000::error::x", "\u3000\\x3a:error::x"),
        ("tests/a.py::b", "tests/a.py::b"),
    ],
)
def test_no_printed_text_is_a_command_for_a_log(text: str, shown: str) -> None:
    assert printable(text) == shown
