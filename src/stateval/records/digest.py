"""Hashes: of ids as numbers, so that millions of them fit into memory, and of whole values."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

from stateval.records.encoding import dump_json, plain


def digest_of(key: str) -> int:
    """64 bits of the BLAKE2b digest of an id. Among a million ids two share one with a chance of 1 in 37 million."""
    return int.from_bytes(blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


def hash_of(value: Any) -> str:
    """24 hexadecimal digits of the BLAKE2b digest of a JSON value, whatever the order of its keys; of fingerprints."""
    return blake2b(dump_json(plain(value), sort_keys=True), digest_size=12).hexdigest()
