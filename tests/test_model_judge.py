"""The grader `model_judge` against scripted judges over real HTTP."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import anyio
import pytest

from stateval import graders
from stateval.errors import GradingError, ModelUnavailable, StatevalError, UsageError
from stateval.graders.judging import Criterion, JudgeModel, JudgeSettings, ModelJudge
from stateval.llm.cache import AnswerCache, answer_cache
from stateval.records.digest import hash_of
from stateval.records.grade import GradeResult
from stateval.records.protocols import GradeRequest, ModelGrader
from stateval.records.rollout import Rollout
from stateval.records.sample import Sample
from tests.support.judge_prompts import parsed
from tests.support.model_server import ModelServer, Reply, Request, refused

SIMPLE = JudgeSettings(prompt="Is it polite?")
GOOD = json.dumps({"rationale": "It is polite.", "score": 0.8})
TWO = {"clear": Criterion(0.75, "It is clear."), "short": Criterion(0.25, "It is short.")}

Outcome = GradeResult | StatevalError


def request(submission: str = "Thank you.", *, run: int = 1, truth: str | None = None, **fields: Any) -> GradeRequest:
    sample = Sample(**{"id": 1, "input": "Say thanks.", "ground_truth": truth, **fields})
    return GradeRequest(sample, submission, Rollout(), truth, run=run)


def judge_at(
    server: ModelServer | str, settings: JudgeSettings = SIMPLE, *, cache: bool = True, **fields: Any
) -> ModelJudge:
    base_url = server if isinstance(server, str) else server.base_url
    names = fields.pop("names", ("scripted",))
    return ModelJudge(
        settings, [JudgeModel(name, base_url=base_url, max_retries=0, **fields) for name in names], cache=cache
    )


def outcomes(judge: ModelJudge, *requests: GradeRequest) -> list[Outcome]:
    """The grade or the error of each request, one after the other."""

    async def run() -> list[Outcome]:
        found: list[Outcome] = []
        for one in requests or (request(),):
            try:
                found.append(await judge.grade(one))
            except StatevalError as error:
                found.append(error)
        await judge.close()
        return found

    return anyio.run(run)


def grade(judge: ModelJudge, one: GradeRequest | None = None) -> GradeResult:
    [found] = outcomes(judge, one or request())
    assert isinstance(found, GradeResult), found
    return found


def failure(judge: ModelJudge, one: GradeRequest | None = None) -> str:
    [found] = outcomes(judge, one or request())
    assert isinstance(found, GradingError), found
    return str(found)


def scored(**scores: Any) -> str:
    """An answer about criteria."""
    return json.dumps({key: {"rationale": f"about {key}", "score": score} for key, score in scores.items()})


def by_criteria(score: Callable[[str], Any]) -> Callable[[Request], str]:
    """A judge that scores whatever criteria it is asked about."""
    return lambda asked: scored(**{key: score(key) for key in asked.schema["properties"]})


# One judge, one score.


def test_a_grade_says_what_it_came_from() -> None:
    usage = {"prompt_tokens": 70, "completion_tokens": 7, "total_tokens": 77}
    with ModelServer(Reply(GOOD, model="scripted-2026-01-01", usage=usage)) as server:
        judge = judge_at(server)
        found = grade(judge, request(truth="Thanks."))
    assert (found.score, found.rationale, found.metadata) == (0.8, "It is polite.", {})
    judging = found.judging
    assert judging is not None
    assert (judging.models, judging.answered) == (("scripted",), ("scripted-2026-01-01",))
    assert judging.fingerprint == hash_of(judge.fingerprint)
    assert judging.prompt
    assert (judging.calls, judging.cached, judging.usage.total_tokens) == (1, 0, 77)
    assert (judge.spent.calls, judge.spent.cached, judge.spent.usage) == (1, 0, judging.usage)
    [asked] = server.requests
    assert [message["role"] for message in asked.messages] == ["system", "user"]
    assert asked.body["temperature"] == 0
    data = {"input": "Say thanks.", "ground_truth": "Thanks.", "submission": "Thank you."}
    assert parsed(asked.last).data == data
    assert isinstance(judge, ModelGrader)
    assert judge.models == ("scripted",)
    assert judge.unpriced_models == ("scripted",)


@pytest.mark.parametrize(
    "said, score",
    [
        pytest.param('```json\n{"score":1}\n```', 1, id="fault-25-fence"),
        pytest.param('Sure! {"score": 1} Hope it helps {}', 1, id="fault-25-prose"),
        pytest.param('{"rationale": "says {\\"score\\": 0}", "score": 1}', 1, id="fault-25-json-in-the-rationale"),
        pytest.param('{"rationale": "r", "score": "0.8"}', 0.8, id="fault-26-text"),
        pytest.param('{"rationale": "r", "score": "80%"}', 0.8, id="fault-26-percent"),
        pytest.param('{"rationale": "r", "score": "4/5"}', 0.8, id="fault-26-fraction"),
        pytest.param('{"rationale": "r", "score": 1} {"rationale": "r", "score": 1}', 1, id="fault-29-the-same-twice"),
        pytest.param('{"rationale": "r", "score": 0}', 0, id="fault-44-zero"),
    ],
)
def test_one_unambiguous_answer_is_read(said: str, score: float) -> None:
    with ModelServer(said) as server:
        assert grade(judge_at(server)).score == pytest.approx(score)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "said",
    [
        pytest.param('{"score": 9}', id="fault-26-nine"),
        pytest.param('{"score": -0.1}', id="fault-26-negative"),
        pytest.param('{"score": true}', id="fault-26-true"),
        pytest.param('{"score": NaN}', id="fault-26-nan"),
        pytest.param('{"rationale": "r"}', id="fault-26-missing"),
        pytest.param('{"score": 1} {"score": 0}', id="fault-29-two-verdicts"),
        pytest.param("GRADE: C ... GRADE: I", id="fault-29-grades-in-words"),
        pytest.param('{"score": "GRADE: B"}', id="fault-29-not-on-the-menu"),
        pytest.param('{"score": "Not yes"}', id="fault-32-not-yes"),
        pytest.param("yesterday it was wrong", id="fault-32-yesterday"),
        pytest.param("", id="fault-35-empty"),
        pytest.param(Reply('{"rationale": "It is', finish_reason="length"), id="fault-35-cut-off"),
    ],
)
def test_any_other_answer_is_asked_for_again_and_then_an_error(said: str | Reply) -> None:
    with ModelServer([said, GOOD]) as server:
        found = grade(judge_at(server, cache=False))
        assert found.score == 0.8
        assert found.judging is not None
        assert found.judging.calls == 1
        assert len(server.requests) == 2
    with ModelServer(said) as server:
        judge = judge_at(server)
        told = failure(judge)
        assert "judge `scripted`" in told
        assert len(server.requests) == 3
        assert judge.spent.calls == 1
        assert judge.spent.usage.prompt_tokens > 0, "what was spent on a failed grade counts"


def test_fault_34_the_rationale_is_asked_for_first_and_kept_beside_the_score() -> None:
    said = json.dumps({"rationale": "A is right and B is wrong.", "score": 0.0})
    with ModelServer(said) as server:
        found = grade(judge_at(server))
    assert (found.score, found.rationale) == (0, "A is right and B is wrong.")
    assert list(server.requests[0].schema["properties"]) == ["rationale", "score"]
    assert server.requests[0].last.rindex('"rationale"') < server.requests[0].last.rindex('"score"')


def test_fault_37_a_judge_that_refuses_the_temperature_is_served_without() -> None:
    def answer(asked: Request) -> Any:
        if "temperature" in asked.body:
            return refused(400, "Unsupported value: 'temperature' does not support 0", param="temperature")
        return GOOD

    with ModelServer(answer) as server:
        assert grade(judge_at(server)).score == 0.8


def test_fault_35_an_empty_answer_to_a_long_transcript_is_an_error_that_says_how_long_it_was() -> None:
    criteria = {f"criterion{number}": Criterion() for number in range(40)}
    with ModelServer("") as server:
        judge = judge_at(server, JudgeSettings(criteria=criteria))
        told = failure(judge, request("word " * 30_000))
    assert "characters" in told
    assert len(server.requests) == 3 * 5


def test_a_transcript_too_long_for_the_judge_is_an_error_that_says_so() -> None:
    said = refused(400, "This model's maximum context length is 8192 tokens.", code="context_length_exceeded")
    with ModelServer(said) as server:
        told = failure(judge_at(server), request("word " * 30_000))
        assert len(server.requests) == 1
    assert "is too long for it" in told
    assert "judge `scripted`" in told
    assert "choose an extractor that takes out less, or a model with a longer context" in told
    assert re.search(r"15\d,\d{3} characters", told)


def test_a_judge_that_nobody_runs_is_told_apart_from_a_bad_answer() -> None:
    judge = judge_at("http://127.0.0.1:9/v1")
    [found] = outcomes(judge)
    assert isinstance(found, ModelUnavailable)
    assert judge.spent.calls == 1


@pytest.mark.parametrize("text", ["\ud83d", "a\x00b", "\u2028", "\udc00\ud83d"])
def test_no_text_breaks_a_request(text: str) -> None:
    settings = JudgeSettings(prompt=f"Is it {text} {{style}} {{submission}} {{input}}?", system_prompt=f"Hear {text}")
    one = request(text, input=text, rubric_vars={"style": text})
    with ModelServer(GOOD) as server:
        assert grade(judge_at(server, settings), one).score == 0.8
    assert "[U+" in server.requests[0].last


def test_a_sample_that_lacks_something_is_never_sent() -> None:
    with ModelServer(GOOD) as server:
        judge = judge_at(server, JudgeSettings(prompt="{submission} {style} {ground_truth}"))
        assert "no `ground_truth`" in failure(judge)
        assert "`{style}`" in failure(judge, request(truth="x"))
    assert server.requests == []


# Criteria.


def test_criteria_are_scored_one_by_one_and_weighted() -> None:
    with ModelServer(scored(clear=1, short="0%")) as server:
        found = grade(judge_at(server, JudgeSettings(criteria=TWO)))
    assert found.score == 0.75
    assert found.metadata == {
        "criteria": {
            "clear": {"score": 1.0, "weight": 0.75, "rationale": "about clear"},
            "short": {"score": 0.0, "weight": 0.25, "rationale": "about short"},
        },
        "left_out": [],
    }
    assert found.rationale == "clear (1): about clear\nshort (0): about short"
    frame = parsed(server.requests[0].last).frame
    assert "- clear: It is clear.\n- short: It is short." in frame


@pytest.mark.parametrize(
    "scores, score, left_out",
    [
        ({"clear": 0.5, "short": None}, 0.5, ["short"]),
        ({"clear": "cannot tell", "short": 1}, 1, ["clear"]),
        ({"clear": 0, "short": "n/a"}, 0, ["short"]),
    ],
)
def test_what_the_judge_cannot_tell_is_left_out(scores, score, left_out) -> None:
    with ModelServer(scored(**scores)) as server:
        found = grade(judge_at(server, JudgeSettings(criteria=TWO)))
    assert (found.score, found.metadata["left_out"]) == (score, left_out)
    assert found.metadata["criteria"].keys() == TWO.keys() - set(left_out)


def test_a_judge_that_can_tell_nothing_that_counts_gives_no_grade() -> None:
    criteria = {**TWO, "extra": Criterion(0)}
    with ModelServer(scored(clear=None, short="N/A", extra=1)) as server:
        judge = judge_at(server, JudgeSettings(criteria=criteria))
        told = failure(judge)
    assert "could not tell any criterion that counts (`clear`, `short`)" in told
    assert judge.spent.calls == 1


def test_fault_44_a_weight_of_zero_is_a_weight() -> None:
    criteria = {"clear": Criterion(1.0), "extra": Criterion(0)}
    with ModelServer(scored(clear=0.5, extra=1)) as server:
        found = grade(judge_at(server, JudgeSettings(criteria=criteria)))
    assert found.score == 0.5
    assert found.metadata["criteria"]["extra"] == {"score": 1.0, "weight": 0.0, "rationale": "about extra"}


def test_many_criteria_are_asked_about_in_several_calls_at_once() -> None:
    names = [f"c{number:02}" for number in range(20)]
    together = threading.Barrier(3, timeout=20)

    def answer(asked: Request) -> str:
        together.wait()
        return by_criteria(lambda key: int(key[1:]) / 20)(asked)

    with ModelServer(answer) as server:
        found = grade(judge_at(server, JudgeSettings(criteria=dict.fromkeys(names, Criterion()))))
    asked = sorted(list(one.schema["properties"]) for one in server.requests)
    assert asked == [names[:8], names[8:16], names[16:]]
    assert list(found.metadata["criteria"]) == names
    assert found.score == pytest.approx(sum(range(20)) / 400)
    assert found.judging is not None
    assert found.judging.calls == 3


def test_criteria_with_any_name_get_keys_that_every_provider_takes() -> None:
    names = ["Is it clear?", "n\u00e4he", "plain", "criterion_1", "x" * 65]
    with ModelServer(by_criteria(lambda key: 1)) as server:
        found = grade(judge_at(server, JudgeSettings(criteria=dict.fromkeys(names, Criterion()))))
    assert list(found.metadata["criteria"]) == names
    keys = list(server.requests[0].schema["properties"])
    assert keys == ["criterion_1_", "criterion_2", "plain", "criterion_1", "criterion_5"]
    assert "- criterion_1_ (Is it clear?)" in server.requests[0].last


# Votes, judges, scale.


def test_votes_and_judges_are_a_mean_of_means_with_spread() -> None:
    said = {"a": [1.0, 0.5], "b": [0.0, 0.0]}
    lock = threading.Lock()

    def answer(asked: Request) -> str:
        with lock:
            score = said[asked.body["model"]].pop(0)
        return json.dumps({"rationale": f"from {asked.body['model']}", "score": score})

    with ModelServer(answer) as server:
        judge = judge_at(server, replace(SIMPLE, votes=2), names=("a", "b"), temperature=0.7)
        found = grade(judge)
    assert found.score == pytest.approx(0.375)
    votes = found.metadata["votes"]
    assert [(vote["judge"], vote["vote"]) for vote in votes] == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]
    assert sorted(vote["score"] for vote in votes) == [0, 0, 0.5, 1]
    assert (found.metadata["spread"], found.metadata["tie"]) == (1, True)
    assert found.judging is not None
    assert (found.judging.models, found.judging.answered, found.judging.calls) == (("a", "b"), ("a", "b"), 4)
    assert found.rationale is not None
    assert found.rationale.count("from a") == found.rationale.count("from b") == 2


def test_judges_count_alike_and_a_criterion_that_one_cannot_tell_is_the_others() -> None:
    def answer(asked: Request) -> str:
        return scored(clear=1, short=None) if asked.body["model"] == "a" else scored(clear=0, short=0.5)

    with ModelServer(answer) as server:
        found = grade(judge_at(server, JudgeSettings(criteria=TWO), names=("a", "b")))
    assert found.score == pytest.approx((1 + 0.125) / 2)
    assert found.metadata["criteria"]["clear"]["score"] == 0.5
    assert found.metadata["criteria"]["short"]["score"] == 0.5
    assert found.metadata["left_out"] == []
    assert found.metadata["votes"][0]["left_out"] == ["short"]
    assert (found.metadata["spread"], found.metadata["tie"]) == (0.875, True)


def test_one_failed_vote_fails_the_grade_and_the_others_are_not_wasted() -> None:
    is_broken = threading.Event()
    is_broken.set()

    def answer(asked: Request) -> Any:
        return refused(400, "no") if asked.body["model"] == "b" and is_broken.is_set() else GOOD

    with ModelServer(answer) as server:
        judge = judge_at(server, replace(SIMPLE, votes=2), names=("a", "b"))
        assert "judge `b`" in failure(judge)
        assert judge.spent.calls == 4
        is_broken.clear()
        found = grade(judge)
        assert found.judging is not None
        assert (found.judging.calls, found.judging.cached) == (4, 2)
        assert [one.body["model"] for one in server.requests].count("a") == 2


@pytest.mark.parametrize("said, score, raw", [(1, 0, 1), ("4/5", 0.75, 4), (5, 1, 5), (2.5, 0.375, 2.5)])
def test_a_scale_is_brought_to_one(said, score, raw) -> None:
    with ModelServer(json.dumps({"rationale": "r", "score": said})) as server:
        found = grade(judge_at(server, replace(SIMPLE, scale=(1, 5))))
    assert found.score == score
    assert found.metadata == {"raw_score": raw}
    assert "a number from 1 (worst) to 5 (best)" in server.requests[0].last


# The cache.


def test_a_known_answer_is_not_asked_for_again() -> None:
    with ModelServer(lambda asked: json.dumps({"rationale": f"number {asked.number}", "score": 1})) as server:
        first = grade(judge_at(server))
        judge = judge_at(server)
        again = grade(judge)
        assert len(server.requests) == 1
        assert again.rationale == first.rationale == "number 0"
        assert first.judging is not None
        assert again.judging is not None
        assert (again.judging.calls, again.judging.cached, again.judging.usage.total_tokens) == (1, 1, 0)
        assert again.judging.usage.cost == 0
        assert again.judging.answered == first.judging.answered
        assert (judge.spent.calls, judge.spent.cached, judge.spent.usage.total_tokens) == (1, 1, 0)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(lambda server: (judge_at(server), request(run=2)), id="another-run"),
        pytest.param(lambda server: (judge_at(server), request("Thank you!")), id="another-submission"),
        pytest.param(lambda server: (judge_at(server), request(input="Say thank you.")), id="another-input"),
        pytest.param(lambda server: (judge_at(server), request(truth="Thanks.")), id="a-truth"),
        pytest.param(lambda server: (judge_at(server), request(rubric="Is it kind?")), id="another-rubric"),
        pytest.param(
            lambda server: (judge_at(server, JudgeSettings(prompt="Is it polite?{input}{submission}")), request()),
            id="other-places",
        ),
        pytest.param(lambda server: (judge_at(server, replace(SIMPLE, scale=(0, 2))), request()), id="another-scale"),
        pytest.param(
            lambda server: (judge_at(server, replace(SIMPLE, system_prompt="s")), request()), id="system-prompt"
        ),
        pytest.param(lambda server: (judge_at(server, names=("other",)), request()), id="another-model"),
        pytest.param(lambda server: (judge_at(server, temperature=0.5), request()), id="another-temperature"),
        pytest.param(lambda server: (judge_at(server, max_tokens=99), request()), id="another-bound"),
        pytest.param(lambda server: (judge_at(server, seed=1), request()), id="another-seed"),
        pytest.param(lambda server: (judge_at(server, cache=False), request()), id="no-cache"),
    ],
)
def test_whatever_the_answer_depends_on_is_asked_anew(other) -> None:
    with ModelServer(GOOD) as server:
        grade(judge_at(server))
        judge, one = other(server)
        found = grade(judge, one)
        assert found.judging is not None
        assert (len(server.requests), found.judging.cached) == (2, 0)


def test_timeouts_retries_and_places_in_a_rubric_do_not_count() -> None:
    with ModelServer(GOOD) as server:
        grade(judge_at(server))
        grade(judge_at(server, timeout=5.0, max_concurrent=3))
        grade(judge_at(server, replace(SIMPLE, votes=1, criteria_per_call=3)))
        assert len(server.requests) == 1
        found = grade(judge_at(server, replace(SIMPLE, votes=3)))
        assert found.judging is not None
        assert (len(server.requests), found.judging.cached) == (3, 1)


def test_without_a_cache_nothing_is_written() -> None:
    with ModelServer(GOOD) as server:
        grade(judge_at(server, cache=False))
        grade(judge_at(server))
        assert len(server.requests) == 2


def test_errors_are_never_kept() -> None:
    with ModelServer([refused(400, "no"), "nonsense", "nonsense", "nonsense", GOOD]) as server:
        judge = judge_at(server)
        first, second, third = outcomes(judge, request(), request(), request())
        assert isinstance(first, GradingError)
        assert isinstance(second, GradingError)
        assert isinstance(third, GradeResult)
        assert third.judging is not None
        assert third.judging.cached == 0


@pytest.fixture
def kept(monkeypatch) -> list[tuple[bytes, bytes]]:
    """What is put into the cache, as (key, value)."""
    written: list[tuple[bytes, bytes]] = []
    put = AnswerCache.put

    async def recorded(self: AnswerCache, key: bytes, value: bytes) -> None:
        written.append((key, value))
        await put(self, key, value)

    monkeypatch.setattr(AnswerCache, "put", recorded)
    return written


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[]",
        b"null",
        b"1",
        b"{}",
        b'{"value": {}, "model": "m", "usage": {}}',
        b'{"value": {"rationale": "r", "score": 7}, "model": "m", "usage": {}}',
        b'{"value": {"rationale": "r", "score": null}, "model": "m", "usage": {}}',
    ],
)
def test_a_damaged_answer_is_asked_for_anew(kept, damaged: bytes) -> None:
    with ModelServer(GOOD) as server:
        grade(judge_at(server))
        cache = answer_cache()
        assert cache is not None
        [(key, _)] = list(kept)
        anyio.run(cache.put, key, damaged)
        assert grade(judge_at(server)).score == 0.8
        assert len(server.requests) == 2


def test_known_secrets_are_not_kept(kept, monkeypatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "environment-secret-1")
    said = json.dumps({"rationale": "It quotes environment-secret-1 and judge-secret-22.", "score": 1})
    with ModelServer(said) as server:
        grade(judge_at(server, api_key="judge-secret-22"))
        again = grade(judge_at(server, api_key="judge-secret-22"))
    [(_, value)] = kept
    assert b"secret-1" not in value
    assert b"secret-22" not in value
    assert again.rationale == "It quotes [redacted] and [redacted]."


# Fingerprints, samples, order.


def test_fault_38_two_prompts_have_two_fingerprints_in_each_grade() -> None:
    with ModelServer(GOOD) as server:
        polite, kind = judge_at(server), judge_at(server, JudgeSettings(prompt="Is it kind?"))
        assert polite.fingerprint != kind.fingerprint
        first, second = grade(polite).judging, grade(kind).judging
        own = grade(polite, request(rubric="Is it kind?")).judging
        other = grade(polite, request("Other", input="Other")).judging
    assert first is not None and second is not None and own is not None and other is not None
    assert first.prompt != second.prompt
    assert first.fingerprint != second.fingerprint
    assert own.prompt != first.prompt
    assert own.fingerprint == first.fingerprint
    assert other.prompt == first.prompt, "the sample's own data do not count"


@pytest.mark.parametrize(
    "changes",
    [
        {"prompt": "Is it kind?"},
        {"system_prompt": "s"},
        {"rubric_vars": ("style",)},
        {"votes": 2},
        {"scale": (0.0, 10.0)},
        {"prompt": None, "criteria": TWO},
        {"prompt": None, "criteria": {"clear": Criterion(0.5)}},
        {"criteria_per_call": 4},
    ],
)
def test_a_fingerprint_holds_the_settings(changes) -> None:
    url = "http://127.0.0.1:9/v1"
    assert judge_at(url, replace(SIMPLE, **changes)).fingerprint != judge_at(url).fingerprint


def test_a_fingerprint_holds_models_and_no_keys_times_or_retries() -> None:
    url = "http://127.0.0.1:9/v1"
    first = judge_at(url).fingerprint
    assert judge_at(url, api_key="k" * 20, timeout=1.0, max_concurrent=2).fingerprint == first
    for changes in (
        {"names": ("other",)},
        {"temperature": 1.0},
        {"max_tokens": 5},
        {"seed": 2},
        {"names": ("scripted", "b")},
    ):
        assert judge_at(url, **changes).fingerprint != first
    weights = [{"a": Criterion(1.0), "b": Criterion(2.0)}, {"a": Criterion(2.0), "b": Criterion(1.0)}]
    found = [judge_at(url, JudgeSettings(criteria=criteria)).fingerprint for criteria in weights]
    assert found[0] != found[1]
    assert "k" * 20 not in json.dumps(judge_at(url, api_key="k" * 20).fingerprint)


def test_fault_46_samples_graded_at_once_never_see_each_other() -> None:
    together = threading.Barrier(20, timeout=30)

    def answer(asked: Request) -> Any:
        together.wait()
        number = int(parsed(asked.last).data["submission"].split()[1])
        assert parsed(asked.last).data["input"] == f"question {number}"
        return (
            refused(400, f"no to {number}") if number % 5 == 0 else json.dumps({"rationale": str(number), "score": 1})
        )

    async def run(base_url: str) -> dict[int, Outcome]:
        judge = judge_at(base_url)
        found: dict[int, Outcome] = {}

        async def one(number: int) -> None:
            try:
                found[number] = await judge.grade(request(f"answer {number}", id=number, input=f"question {number}"))
            except GradingError as error:
                found[number] = error

        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(one, number)
        await judge.close()
        return found

    with ModelServer(answer) as server:
        found = anyio.run(run, server.base_url)
    for number, outcome in found.items():
        if number % 5 == 0:
            assert f"no to {number}" in str(outcome)
        else:
            assert isinstance(outcome, GradeResult)
            assert outcome.rationale == str(number)


def test_fault_47_a_failure_on_row_three_is_an_error_of_row_three() -> None:
    def answer(asked: Request) -> Any:
        return refused(400, "no") if parsed(asked.last).data["submission"] == "answer 3" else GOOD

    with ModelServer(answer) as server:
        found = outcomes(judge_at(server), *(request(f"answer {number}", id=number) for number in range(1, 6)))
    assert [isinstance(one, GradeResult) for one in found] == [True, True, False, True, True]
    assert isinstance(found[2], GradingError)


def test_a_turn_is_judged_on_its_own() -> None:
    sample = Sample(id=1, input="second question", ground_truth="second truth")
    with ModelServer(GOOD) as server:
        grade(judge_at(server), GradeRequest(sample, "second answer", Rollout(), "second truth", turn=1))
    data = {"input": "second question", "ground_truth": "second truth", "submission": "second answer"}
    assert parsed(server.requests[0].last).data == data


@pytest.mark.parametrize(
    "settings",
    [SIMPLE, JudgeSettings(criteria=TWO), JudgeSettings(criteria={"a": Criterion()}), JudgeSettings(prompt="{input}?")],
)
def test_a_reordered_judge_shows_the_same_in_the_opposite_order(settings: JudgeSettings) -> None:
    answer = lambda asked: by_criteria(lambda key: 1)(asked) if settings.criteria else GOOD  # noqa: E731
    with ModelServer(answer) as server:
        judge = judge_at(server, settings)
        other = judge.reordered()
        assert other is not None
        first, second = (grade(one, request(truth="Thanks.")) for one in (judge, other))
        assert len(server.requests) == 2, "the answer to another order is another answer"
    assert first.score == second.score
    [one, two] = (parsed(asked.last) for asked in server.requests)
    placed = ["input"] if settings.prompt == "{input}?" else []
    appended = [name for name in one.data if name not in placed]
    assert list(two.data) == [*placed, *reversed(appended)]
    assert one.data == two.data
    if len(settings.criteria) > 1:
        assert "- short: It is short.\n- clear: It is clear." in two.frame
        assert list(server.requests[1].schema["properties"]) == ["short", "clear"]
        assert list(second.metadata["criteria"]) == list(first.metadata["criteria"])
    assert judge.fingerprint != other.fingerprint
    assert other.spent.calls == judge.spent.calls == 1


def test_a_rubric_that_places_everything_has_no_other_order() -> None:
    assert judge_at("http://127.0.0.1:9/v1", JudgeSettings(prompt="Is {submission} right?")).reordered() is None


# What cannot be set.


@pytest.mark.parametrize(
    "settings, complaint",
    [
        (JudgeSettings(), "needs a `prompt` or at least one criterion"),
        pytest.param(JudgeSettings(criteria={}), "at least one criterion", id="fault-28-no-criteria"),
        (JudgeSettings(prompt=" \n"), "`prompt` is empty"),
        (JudgeSettings(prompt="p", criteria=TWO), "not both"),
        (JudgeSettings(criteria={"a": Criterion(-1)}), "criterion `a` has the weight -1"),
        (JudgeSettings(criteria={"a": Criterion(float("nan"))}), "criterion `a` has the weight nan"),
        pytest.param(JudgeSettings(criteria={"a": Criterion(0)}), "weights of all", id="fault-44-all-zero"),
        (JudgeSettings(criteria={" ": Criterion()}), "empty name"),
        (replace(SIMPLE, votes=0), "`votes` is 0"),
        (replace(SIMPLE, criteria_per_call=0), "`criteria_per_call` is 0"),
        (replace(SIMPLE, scale=(1, 1)), "`scale`"),
        (replace(SIMPLE, scale=(5, 1)), "`scale`"),
        (replace(SIMPLE, scale=(0, float("inf"))), "`scale`"),
        (replace(SIMPLE, rubric_vars=("style", "input")), "may not name `input`"),
    ],
)
def test_wrong_settings_are_found_at_once(settings: JudgeSettings, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        judge_at("http://127.0.0.1:9/v1", settings)


@pytest.mark.parametrize(
    "judges, complaint",
    [
        ([], "`judges` is empty"),
        ([JudgeModel("a", base_url="http://127.0.0.1:9/v1")] * 2, "twice"),
        ([JudgeModel("a", base_url="http://127.0.0.1:9/v1", temperature=-1)], "`temperature`"),
        ([JudgeModel("a", base_url="http://127.0.0.1:9/v1", timeout=0)], "`timeout` is 0"),
        ([JudgeModel("a", base_url="http://127.0.0.1:9/v1", max_retries=-1)], "`max_retries` is -1"),
        ([JudgeModel("  ")], "`model` is empty"),
    ],
)
def test_wrong_judges_are_found_at_once(judges: Sequence[JudgeModel], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        ModelJudge(SIMPLE, judges)


def test_a_judge_without_a_key_says_which_variable_holds_it(monkeypatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(UsageError, match="OPENAI_API_KEY"):
        ModelJudge(SIMPLE)
    assert "secret" not in repr(JudgeModel("m", api_key="secret"))


# The Python face.


def test_the_python_face_makes_the_same_judges(monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "key-for-tests")
    judge = graders.rubric(
        {"clear": "It is clear.", "short": 0.25, "kind": {"weight": 2, "description": "It is kind."}}
    )
    assert judge.settings.criteria == {
        "clear": Criterion(1.0, "It is clear."),
        "short": Criterion(0.25),
        "kind": Criterion(2.0, "It is kind."),
    }
    assert judge.models == ("gpt-4o-mini",)
    assert graders.rubric(criteria=TWO, model="gpt-4.1").judges == (JudgeModel("gpt-4.1"),)
    several = graders.model_judge(
        "Is it?", judges=["a", JudgeModel("b", seed=1)], temperature=0.5, votes=3, scale=(1, 5)
    )
    assert several.judges == (JudgeModel("a", temperature=0.5), JudgeModel("b", seed=1))
    assert (several.settings.votes, several.settings.scale) == (3, (1, 5))


@pytest.mark.parametrize(
    "make, complaint",
    [
        (lambda: graders.model_judge("p", modl="x"), "did you mean `model`"),
        (lambda: graders.model_judge("p", model="a", judges=["b"]), "not both"),
        (lambda: graders.model_judge(), "needs a `prompt`"),
        (lambda: graders.rubric({"a": True}), "criterion `a` is True"),
        (lambda: graders.rubric({"a": {"wieght": 1}}), "criterion `a` has no `wieght`"),
        (lambda: graders.rubric({"a": {"weight": "1"}}), "weight of criterion `a`"),
        (lambda: graders.rubric({"a": {"description": 1}}), "description of criterion `a`"),
        (lambda: graders.rubric(["a"]), "must be a mapping"),
        (lambda: graders.rubric({}), "at least one criterion"),
    ],
)
def test_wrong_words_of_the_python_face(make, complaint: str, monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "key-for-tests")
    with pytest.raises(UsageError, match=complaint):
        make()
