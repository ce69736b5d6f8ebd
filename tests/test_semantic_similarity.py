"""The grader `semantic_similarity`: through its own face, and in a suite."""

from __future__ import annotations

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stateval import graders
from stateval.errors import GradingError, MissingKey, ModelUnavailable, UsageError
from stateval.graders import make_tool_grader, semantic_similarity
from stateval.llm import Retries, embeddings
from stateval.records.protocols import GradeRequest, ModelGrader
from stateval.records.rollout import Rollout
from stateval.records.sample import Sample
from tests.support.model_server import ModelServer

VECTORS = {
    "Paris": [1.0, 0.0],
    "the city of Paris": [4.0, 3.0],
    "Rome": [0.0, 2.0],
    "not Paris": [-1.0, 0.5],
    "nothing": [0.0, 0.0],
    "long": [1.0, 0.0, 0.0],
    "huge": [1.7e308, 1.7e308],
}


def vectors() -> ModelServer:
    """A server whose vectors are known; it fails at any other text."""
    return ModelServer(embedding=lambda text: VECTORS[text])


def grade(grader, submission: str, truth: str | None = "Paris"):
    async def run():
        request = GradeRequest(Sample(id="a", input="?", ground_truth=truth), submission, Rollout(), ground_truth=truth)
        try:
            return await grader.grade(request)
        finally:
            await grader.close()

    return anyio.run(run)


def at(server: ModelServer, **settings):
    return semantic_similarity(model="embedder", base_url=server.base_url, **settings)


@pytest.mark.parametrize(
    ("submission", "score"), [("Paris", 1.0), ("the city of Paris", 0.8), ("Rome", 0.0), ("not Paris", 0.0)]
)
def test_the_cosine_is_the_score(submission, score):
    with vectors() as server:
        given = grade(at(server), submission)
    assert given.score == pytest.approx(score)
    assert f"{score:.3f}" in given.rationale
    assert (given.judging.models, given.judging.calls) == (("embedder",), 1)


@pytest.mark.parametrize(("threshold", "score"), [(0.8, 1.0), (0.81, 0.0)])
def test_with_a_threshold_it_is_enough_or_not(threshold, score):
    with vectors() as server:
        given = grade(at(server, threshold=threshold), "the city of Paris")
    assert given.score == score
    assert given.metadata["similarity"] == pytest.approx(0.8)
    assert f"{threshold:g}" in given.rationale


def test_an_empty_submission_is_not_sent():
    with ModelServer() as server:
        pass
    given = grade(at(server), " \n")
    assert (given.score, given.judging.calls) == (0.0, 0)
    assert "empty" in given.rationale


@pytest.mark.parametrize(
    ("submission", "truth", "told"),
    [
        ("Paris", None, "no `ground_truth`"),
        ("Paris", " ", "empty"),
        ("nothing", "Paris", "without a direction"),
        ("huge", "Paris", "without a direction"),
        ("long", "Paris", "vectors of 3 and of 2"),
    ],
)
def test_what_cannot_be_compared_is_an_error(submission, truth, told):
    with vectors() as server, pytest.raises(GradingError, match=told):
        grade(at(server), submission, truth)


def test_a_failed_call_is_an_error_and_no_score():
    with ModelServer() as server:
        grader = semantic_similarity(model="embedder", base_url=f"{server.root}/elsewhere")
        with pytest.raises(GradingError, match="404") as failed:
            grade(grader, "Rome")
    assert failed.value.cause_type == "StatusError"
    assert (grader.spent.calls, grader.spent.usage.cost) == (1, None)


def test_a_model_that_cannot_be_had_stops_everything(monkeypatch):
    with ModelServer() as server:
        pass
    monkeypatch.setattr(embeddings, "Retries", lambda: Retries(tries=1))
    with pytest.raises(ModelUnavailable):
        grade(at(server), "Rome")


def test_it_is_a_grader_that_asks_models():
    with vectors() as server:
        grader = at(server)
        assert isinstance(grader, ModelGrader)
        assert (grader.models, grader.unpriced_models, grader.spent.calls) == (("embedder",), ("embedder",), 0)
        grade(grader, "Rome")
    assert grader.spent.calls == 1
    assert grader.spent.usage.prompt_tokens == 2


def test_the_default_model_has_a_price_and_wants_a_key(monkeypatch):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert make_tool_grader("semantic_similarity", {"api_key": "k"}).unpriced_models == ()
    with pytest.raises(MissingKey, match="OPENAI_API_KEY"):
        semantic_similarity()


def test_the_fingerprint_holds_model_and_endpoint_and_never_the_key():
    def made(**settings):
        return str(
            semantic_similarity(
                **{"model": "m", "base_url": "http://a/v1", "api_key": "secret-1"} | settings
            ).fingerprint
        )

    assert "secret-1" not in made()
    assert made() == made(api_key="secret-2", timeout=5.0)
    changed = [made(model="n"), made(base_url="http://b/v1"), made(threshold=0.5)]
    assert len({made(), *changed}) == 4


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"model": "anthropic/claude-x"}, "has no embeddings"),
        ({"thresold": 0.5}, "did you mean `threshold`"),
        ({"threshold": 2.0}, "threshold"),
        ({"timeout": 0.0}, "timeout"),
        ({"model": "nobody/m"}, "no provider"),
    ],
)
def test_wrong_settings(monkeypatch, settings, told):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(UsageError, match=told):
        make_tool_grader("semantic_similarity", settings)


@pytest.mark.parametrize(
    ("truth", "told"), [(None, "needs a `ground_truth`"), ("  ", "is empty"), ("Paris", None), (["Paris", None], None)]
)
def test_what_a_sample_lacks(truth, told):
    given = ["one", "two"] if isinstance(truth, list) else "one"
    problem = semantic_similarity(base_url="http://a/v1").check(Sample(id="a", input=given, ground_truth=truth))
    assert problem is None if told is None else told in problem


@given(st.lists(st.tuples(st.floats(-1e100, 1e100), st.floats(-1e100, 1e100)), min_size=1, max_size=8))
def test_any_two_vectors_give_a_score_or_an_error(pairs):
    grader = semantic_similarity(base_url="http://a/v1")
    one, other = [list(side) for side in zip(*pairs, strict=True)]
    try:
        value = grader._cosine(one, other)
    except GradingError:
        assert not any(one) or not any(other)
    else:
        assert 0 <= value <= 1
        assert value == pytest.approx(grader._cosine(other, one))


def test_it_is_listed(evaltester):
    assert "semantic_similarity" in graders.BUILTIN
    told = evaltester.command("list-graders").stdout
    assert "cosine of their embeddings" in told


def test_in_a_suite_with_the_key_in_no_file(evaltester):
    with vectors() as server:
        settings = {"model": "embedder", "base_url": server.base_url, "api_key": "key-of-the-suite", "threshold": 0.7}
        evaltester.write_suite(
            [{"input": "the city of Paris", "ground_truth": "Paris"}, {"input": "Rome", "ground_truth": "Paris"}],
            graders={"meaning": {"kind": "tool", "function": "semantic_similarity", "grader_config": settings}},
        )
        finished = evaltester.run()
    assert finished.status in (0, 1), finished.output
    scores = [result.grades["meaning"].score for result in evaltester.results().values()]
    assert sorted(scores) == [0.0, 1.0]
    written = b"".join(path.read_bytes() for path in evaltester.results_path.rglob("*") if path.is_file())
    assert b"key-of-the-suite" not in written
    assert "key-of-the-suite" not in finished.output
