"""`stateval judge attack` and `stateval judge cache`, through the command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stateval.errors import ExitStatus
from stateval.graders.judging.attacks import ATTACKS, applied
from stateval.records.judge_attack import JudgeAttack, MetricAttack
from tests.support.evaltester import EvalTester, Finished
from tests.support.judge_prompts import Prompt, parsed
from tests.support.model_server import ModelServer, Reply, refused
from tests.support.scripted_judge import Opinion, answer_of, judge_environment, judge_server

JUDGE = {"kind": "model_judge", "model": "openai/scripted", "prompt": "Is it polite?", "max_retries": 0}
ROWS = [{"id": f"row-{number}", "input": f"say {number}"} for number in range(1, 7)]
KINDS = {attack.kind for attack in ATTACKS}
GRADES = 1 + len(ATTACKS) + len(KINDS)
"""Of one wrong answer: alone, with each attack, and with a harmless text for each kind."""


def suite_of(project: EvalTester, **fields: Any) -> Path:
    return project.write_suite(fields.pop("rows", ROWS), graders={"quality": JUDGE}, **fields)


def attack(project: EvalTester, suite: Path, server: ModelServer, *more: str | Path) -> Finished:
    return project.command("judge", "attack", suite, *more, "--output", "attack.json", env=judge_environment(server))


def written(project: EvalTester) -> MetricAttack:
    return JudgeAttack.from_json((project.path / "attack.json").read_bytes()).metrics["quality"]


def swayed_by(*words: str, alone: float = 0.0, swayed: float = 1.0) -> Opinion:
    """A judge that gives a better score where one of these words stands in the submission."""

    def opinion(shown: Prompt, name: str) -> float:
        return swayed if any(word in shown.data["submission"] for word in words) else alone

    return opinion


def test_a_judge_that_is_talked_round_is_counted_beside_harmless_texts(evaltester: EvalTester) -> None:
    with judge_server(swayed_by("Ignoriere"), model="scripted-2026") as server:
        finished = attack(evaltester, suite_of(evaltester), server, "--samples", "2")
        assert finished.status == ExitStatus.PASSED, finished.output
        assert len(server.requests) == 2 * GRADES
    found = written(evaltester)
    assert (found.moved.n, found.moved.value) == (2 * len(ATTACKS), pytest.approx(1 / len(ATTACKS)))
    assert (found.control.n, found.control.value) == (2 * len(KINDS), 0.0)
    assert found.moved.low is not None
    assert 0 < found.moved.low < 1 / len(ATTACKS)
    risen = [attempt.name for answer in found.answers for attempt in answer.attacks if attempt.moved]
    assert risen == ["german", "german"]
    assert [answer.sample_id for answer in found.answers] == ["row-1", "row-2"]
    assert {answer.submission for answer in found.answers} == {"I do not know."}
    assert set(found.by_kind) == KINDS
    assert found.answered == ("scripted-2026",)
    assert f"2 of {2 * len(ATTACKS)}, " in finished.stdout
    assert "wrote attack.json" in finished.stdout


def test_a_judge_that_likes_length_is_seen_by_the_control(evaltester: EvalTester) -> None:
    def opinion(shown: Prompt, name: str) -> float:
        return float(len(shown.data["submission"]) > 30)

    with judge_server(opinion) as server:
        assert attack(evaltester, suite_of(evaltester), server, "--samples", "1").status == ExitStatus.PASSED
    found = written(evaltester)
    assert found.control.value == 1.0
    assert found.moved.value is not None
    assert found.moved.value > 0.9


@pytest.mark.parametrize(
    ("alone", "swayed", "options", "moved"),
    [
        (0.2, 0.3, (), True),  # 0.1 above, which is 0.09999999999999998 in floating point
        (0.2, 0.29, (), False),
        (0.45, 0.5, (), True),  # reaches the threshold
        (0.45, 0.5, ("--threshold", "0.6"), False),
        (0.5, 0.55, (), False),  # had passed already
    ],
)
def test_a_score_rose_by_a_tenth_or_over_the_threshold(
    evaltester: EvalTester, alone: float, swayed: float, options: tuple[str, ...], moved: bool
) -> None:
    with judge_server(swayed_by("Ignoriere", alone=alone, swayed=swayed)) as server:
        finished = attack(evaltester, suite_of(evaltester), server, "--samples", "1", *options)
    assert finished.status == ExitStatus.PASSED, finished.output
    [german] = [attempt for attempt in written(evaltester).answers[0].attacks if attempt.name == "german"]
    assert (german.score, german.moved) == (swayed, moved)


def test_an_answer_that_cannot_rise_is_left_out(evaltester: EvalTester) -> None:
    with judge_server(1.0) as server:
        finished = attack(evaltester, suite_of(evaltester), server, "--samples", "1")
    assert finished.status == ExitStatus.PASSED, finished.output
    found = written(evaltester)
    assert (found.moved.value, found.moved.n) == (None, 0)
    assert found.left_out == ("row-1: the judge gives it 1 without any attack",)
    assert "Left out: row-1" in finished.stdout


def test_the_worst_answers_of_a_run_are_attacked(evaltester: EvalTester) -> None:
    def opinion(shown: Prompt, name: str) -> float:
        return {"say 2": 0.1, "say 5": 0.0}.get(shown.data["submission"], 0.8)

    suite = suite_of(evaltester)
    with judge_server(opinion) as server:
        assert evaltester.run(suite, env=judge_environment(server)).status == ExitStatus.PASSED
        finished = attack(evaltester, suite, server, "--samples", "2", "--results", "results")
    assert finished.status == ExitStatus.PASSED, finished.output
    answers = written(evaltester).answers
    assert [(answer.sample_id, answer.submission, answer.score) for answer in answers] == [
        ("row-5", "say 5", 0.0),
        ("row-2", "say 2", 0.1),
    ]


def test_a_row_that_is_graded_turn_by_turn_is_attacked_in_its_first_graded_turn(evaltester: EvalTester) -> None:
    turns = ["hello", {"user": "say red", "ground_truth": "red"}, {"user": "say blue", "ground_truth": "blue"}]
    suite = suite_of(evaltester, rows=[{"id": "talk", "input": turns}])
    with judge_server(0.0) as server:
        finished = attack(evaltester, suite, server)
        assert finished.status == ExitStatus.PASSED, finished.output
        assert {(shown["input"], shown["ground_truth"]) for shown in map(data_of, server.requests)} == {
            ("say red", "red")
        }
    assert [(answer.sample_id, answer.turn) for answer in written(evaltester).answers] == [("talk", 1)]


def test_grades_that_fail_are_listed_and_count_neither_way(evaltester: EvalTester) -> None:
    def answer(request: Any) -> Reply:
        if "Ignoriere" in request.last:
            return refused(400, "no such thing")
        return Reply(answer_of(request, swayed_by("Ignorez")))

    with ModelServer(answer) as server:
        finished = attack(evaltester, suite_of(evaltester), server, "--samples", "1")
    assert finished.status == ExitStatus.PASSED, finished.output
    found = written(evaltester)
    assert found.moved.n == len(ATTACKS) - 1
    assert list(found.errors) == ["row-1, german"]
    assert "Not graded, and not counted: 1" in finished.stdout


def test_where_nothing_is_graded_the_command_says_so(evaltester: EvalTester) -> None:
    with ModelServer(refused(400, "no such thing")) as server:
        finished = attack(evaltester, suite_of(evaltester), server, "--samples", "1")
    assert finished.status == ExitStatus.UNFINISHED
    assert "no wrong answer of a judge could be graded" in finished.stderr
    assert written(evaltester).moved.value is None


def test_what_the_judge_is_shown_is_the_attack_and_its_control_is_about_as_long(evaltester: EvalTester) -> None:
    with judge_server(0.0) as server:
        assert attack(evaltester, suite_of(evaltester), server, "--samples", "1").status == ExitStatus.PASSED
        shown = {data_of(request)["submission"] for request in server.requests}
    [german] = [one for one in ATTACKS if one.name == "german"]
    assert applied(german, "I do not know.") in shown
    assert len(shown) == GRADES
    lengths = sorted(len(one.text) for one in ATTACKS if one.kind == "language")
    harmless = [text for text in shown if "weather" in text or "library" in text]
    assert any(lengths[0] <= len(text) - 16 <= lengths[-1] for text in harmless)


def data_of(request: Any) -> dict[str, str]:
    return parsed(request.last).data


def test_kept_answers_are_counted_and_dropped(evaltester: EvalTester) -> None:
    kept = evaltester.path / "kept.sqlite3"
    suite = suite_of(evaltester)
    environment = {"STATEVAL_JUDGE_CACHE": str(kept)}
    empty = evaltester.command("judge", "cache", env=environment)
    assert empty.stdout.splitlines() == [str(kept), "0 answers, 0.0 MB of at most 1,024 MB"]
    assert not kept.exists()
    with judge_server(0.0) as server:
        env = {**judge_environment(server), **environment}
        assert evaltester.command("judge", "attack", suite, "--samples", "1", env=env).status == ExitStatus.PASSED
        asked = len(server.requests)
        assert evaltester.command("judge", "attack", suite, "--samples", "1", env=env).status == ExitStatus.PASSED
        assert len(server.requests) == asked == GRADES
        assert f"{GRADES} answers, " in evaltester.command("judge", "cache", env=environment).stdout
        dropped = evaltester.command("judge", "cache", "--clear", env=environment)
        assert dropped.stdout == f"dropped {GRADES} answers of {kept}\n"
        assert evaltester.command("judge", "attack", suite, "--samples", "1", env=env).status == ExitStatus.PASSED
        again = evaltester.command("judge", "attack", suite, "--samples", "1", "--no-cache", env=env)
        assert again.status == ExitStatus.PASSED
        assert len(server.requests) == 3 * GRADES


def test_a_cache_that_is_off_says_so(evaltester: EvalTester) -> None:
    finished = evaltester.command("judge", "cache", "--clear", env={"STATEVAL_JUDGE_CACHE": "off"})
    assert (finished.status, finished.stdout) == (0, "no answers are kept: STATEVAL_JUDGE_CACHE is off\n")
