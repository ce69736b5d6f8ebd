"""Judges as instruments: how well they agree with people, and how easily they are talked round.

labels = read_labels(Path("labels.csv"), judges)
answers = labelled_answers(labels, judges, samples, results)
check = await check_judge(judge, answers[judge.key], wish)
"""

from stateval.judges.asking import OnAnswer
from stateval.judges.attack import (
    AttackWish,
    WrongAnswer,
    attack_judge,
    calls_of_attack,
    lowest_graded,
    wrong_answers,
)
from stateval.judges.check import CheckWish, calls_of_check, check_judge
from stateval.judges.judge import MetricJudge
from stateval.judges.labels import Labels, read_labels
from stateval.judges.placing import LabelledAnswer, labelled_answers
from stateval.judges.reported import Reported, reported_by

__all__ = [
    "AttackWish",
    "CheckWish",
    "LabelledAnswer",
    "Labels",
    "MetricJudge",
    "OnAnswer",
    "Reported",
    "WrongAnswer",
    "attack_judge",
    "calls_of_attack",
    "calls_of_check",
    "check_judge",
    "labelled_answers",
    "lowest_graded",
    "read_labels",
    "reported_by",
    "wrong_answers",
]
