"""From labels to what a judge is asked: each label finds its row of the dataset, and the answer that it is about."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from stateval.judges.judge import MetricJudge
from stateval.judges.labels import Label, Labels, raise_problems
from stateval.records.protocols import GradeRequest
from stateval.records.result import SampleResult
from stateval.records.sample import Sample
from stateval.records.source import Problem, Source
from stateval.results.reading import Results

_MOST_IDS_KEPT = 10_000
_LISTED = 5


@dataclass(frozen=True, slots=True)
class LabelledAnswer:
    """One answer, what a judge is asked about it, and what people said: from 0 to 1, by criterion ("" is the whole)."""

    name: str
    request: GradeRequest
    labels: Mapping[str, float]


def labelled_answers(
    labels: Labels, judges: Sequence[MetricJudge], samples: Iterable[Sample], results: Results | None = None
) -> dict[str, list[LabelledAnswer]]:
    """The labelled answers by metric, in the order of the labels.

    Args:
        labels: what `read_labels` read for these judges.
        samples: the rows of the dataset.
        results: the run whose submissions are judged where the labels hold none.

    Raises InputError with all that is wrong with the labels: ids that no row has, answers that are not there, and rows
    that lack what a judge needs.
    """
    placing = _Placing(labels, judges, results, problems=list(labels.problems))
    placing.find_rows(samples)
    placing.find_submissions()
    found = {judge.key: list(placing.answers(judge)) for judge in judges}
    raise_problems(placing.problems)
    return found


def submissions_in(result: SampleResult, metric: str) -> dict[int | None, str]:
    """What was judged of a result: by turn where turns were graded alone, else under None."""
    grade = result.grades.get(metric)
    if grade is not None and grade.per_turn_grades:
        return {turn.turn: turn.submission for turn in grade.per_turn_grades}
    return {None: result.submissions[metric]} if metric in result.submissions else {}


@dataclass(slots=True)
class _Placing:
    labels: Labels
    judges: Sequence[MetricJudge]
    results: Results | None
    problems: list[Problem]
    rows: dict[str, Sample] = field(default_factory=dict)
    submissions: dict[tuple[str, str, int], dict[str, dict[int | None, str]]] = field(default_factory=dict)

    def find_rows(self, samples: Iterable[Sample]) -> None:
        wanted = {label.sample_id for label in self.labels.rows if label.sample_id}
        known: list[str] = []
        for sample in samples:
            if sample.key in wanted:
                self.rows[sample.key] = sample
            if len(known) < _MOST_IDS_KEPT:
                known.append(sample.key)
        for label in self.labels.rows:
            if label.sample_id and label.sample_id not in self.rows:
                message = f"no row of the dataset has the id `{label.sample_id}`"
                self.problems.append(Problem(message, label.place.source("id"), _nearest(label.sample_id, known)))

    def find_submissions(self) -> None:
        """Reads the results of the models and runs that labels without a submission name."""
        open_labels = [label for label in self.labels.rows if label.submission is None and label.scores]
        if not open_labels:
            return
        if self.results is None:
            self._say_without_submission(open_labels)
            return
        wanted: dict[str, set[str]] = {}
        for label in open_labels:
            model, run = self._model(label), self._run(label)
            if model is not None and run is not None:
                wanted.setdefault(model, set()).add(label.sample_id)
        for model, ids in wanted.items():
            for result in self.results.results(model):
                if str(result.sample_id) in ids:
                    by_metric = {judge.key: submissions_in(result, judge.key) for judge in self.judges}
                    self.submissions[(str(result.sample_id), model, result.run)] = by_metric

    def answers(self, judge: MetricJudge) -> Iterator[LabelledAnswer]:
        for label in self.labels.rows:
            scores = {name: score for (metric, name), score in label.scores.items() if metric == judge.key}
            sample = self.rows.get(label.sample_id)
            if not scores or sample is None:
                continue
            complaint = judge.grader.check(judge.view(sample)) or self._turn_problem(judge, label, sample)
            if complaint:
                self.problems.append(Problem(f"metric `{judge.key}`: {complaint}", label.place.source()))
                continue
            submission = label.submission if label.submission is not None else self._submission(judge, label)
            if submission is not None:
                run = label.run if label.run is not None else 1
                request = judge.request(sample, submission, turn=label.turn, run=run)
                yield LabelledAnswer(label.name, request, scores)

    def _submission(self, judge: MetricJudge, label: Label) -> str | None:
        if self.results is None:
            return None
        model, run = self._model(label, tell=False), self._run(label, tell=False)
        if model is None or run is None:
            return None
        found = self.submissions.get((label.sample_id, model, run), {}).get(judge.key, {})
        if label.turn in found:
            return found[label.turn]
        message = f"the results hold no submission of `{label.name}` for metric `{judge.key}`"
        advice = "it errored, or was not reached; leave its label empty, or write the submission beside it"
        self.problems.append(Problem(message, label.place.source(), advice))
        return None

    def _say_without_submission(self, labels: Sequence[Label]) -> None:
        advice = "name the results that hold the answers with `--results DIR`, or write them in a column `submission`"
        if len(labels) == sum(bool(label.scores) for label in self.labels.rows):
            message = "there are labels and nothing that they are about"
            self.problems.append(Problem(message, Source(path=self.labels.path), advice))
            return
        self.problems += [Problem("has no submission", label.place.source("submission"), advice) for label in labels]

    def _model(self, label: Label, *, tell: bool = True) -> str | None:
        models = self.results.labels if self.results is not None else ()
        if label.model is None and len(models) == 1:
            return models[0]
        if label.model in models:
            return label.model
        if tell:
            told = "has no model" if label.model is None else f"the results have no model `{label.model}`"
            advice = f"a column `model` says whose answer it is: {_listed(models)}"
            self.problems.append(Problem(told, label.place.source("model"), advice))
        return None

    def _run(self, label: Label, *, tell: bool = True) -> int | None:
        runs = self.results.num_runs if self.results is not None else 1
        if label.run is None and runs == 1:
            return 1
        if label.run is not None and label.run <= runs:
            return label.run
        if tell:
            told = "has no run" if label.run is None else f"the results have no run {label.run}"
            advice = f"a column `run` says of which run it is, from 1 to {runs}"
            self.problems.append(Problem(told, label.place.source("run"), advice))
        return None

    def _turn_problem(self, judge: MetricJudge, label: Label, sample: Sample) -> str | None:
        turns = judge.turns_of(sample)
        if turns is None:
            return "this row is graded as a whole, so its label has no `turn`" if label.turn is not None else None
        if label.turn in turns:
            return None
        listed = ", ".join(map(str, turns))
        return f"this row is graded turn by turn: a column `turn` says which one the label is about, of {listed}"


def _nearest(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f"did you mean `{near[0]}`?" if near else f"there are {_listed(known)}"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names[:_LISTED]) + (", ..." if len(names) > _LISTED else "")
