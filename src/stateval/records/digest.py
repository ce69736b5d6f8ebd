"""Ids as numbers, so that millions of them fit into memory."""

from __future__ import annotations

from hashlib import blake2b


def digest_of(key: str) -> int:
    """64 bits of the BLAKE2b digest of an id. Among a million ids two share one with a chance of 1 in 37 million."""
    return int.from_bytes(blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")
