"""The limit: reads rows, serialises the record that stateval would write for each, writes it: `bare_loop.py SAMPLES`.

The record is one that `stateval run` wrote for such a row (`record.json` in the cwd); only the id changes.
"""

import sys
from pathlib import Path

import orjson

record = orjson.loads(Path("record.json").read_bytes())
written = 0
with Path("rows.jsonl").open("rb") as rows, Path("results.jsonl").open("wb", buffering=0) as results:
    for row in rows:
        record["sample_id"] = orjson.loads(row)["id"]
        results.write(orjson.dumps(record) + b"\n")
        written += 1
if written != int(sys.argv[1]):
    sys.exit(f"bare loop: {written} records")
