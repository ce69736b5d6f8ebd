"""The summary of a run that lies on the disk, finished or not."""

from __future__ import annotations

from stateval.records.summary import Summary
from stateval.results.directory import ResultsDirectory
from stateval.results.reading import Results
from stateval.running.summary import summarise
from stateval.stats.table import ObservationTable


def summary_of(results: Results) -> Summary:
    """The stored summary, or one made of the lines that there are. Raises ResultsError for damaged files."""
    stored = results.summary()
    if stored is not None:
        return stored
    tables = {label: ObservationTable.of(results.observations(label), results.metric_keys) for label in results.labels}
    observed = max((-(-len(table) // results.num_runs) for table in tables.values()), default=0)
    summary = summarise(
        results.suite_name,
        tables,
        planned_per_run=max(results.planned, observed),
        num_runs=results.num_runs,
        has_reward=results.has_reward,
        on_error=results.on_error,
        pass_threshold=results.pass_threshold,
    )
    is_over = not isinstance(results, ResultsDirectory) or results.record.finished is not None
    return summary if is_over else summary.model_copy(update={"finished": False})
