"""Rows of files, lists and streams as samples: reading, column mapping, filters, hold-out splits, and the check.

dataset = open_dataset("data.jsonl", base_directory=Path("suite"))
dataset = select(dataset, tags=["memory"], max_samples=100)
check = check_dataset(dataset)          # every row, before any model call
for sample in dataset: ...              # reads the rows again
"""

from stateval.datasets.check import DatasetCheck, check_dataset
from stateval.datasets.dataset import PlacedDataset
from stateval.datasets.fields import FIELDS
from stateval.datasets.opening import open_dataset
from stateval.datasets.selection import select
from stateval.datasets.split import SplitSpec

__all__ = ["FIELDS", "DatasetCheck", "PlacedDataset", "SplitSpec", "check_dataset", "open_dataset", "select"]
