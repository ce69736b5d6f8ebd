"""Which rows are held out, decided by their ids alone."""

from __future__ import annotations

import hashlib
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Side = Literal["dev", "holdout"]


class SplitSpec(BaseModel):
    """A share `holdout` of the rows (0 to 1, both excluded) is kept apart; `use` says which side is read.

    A row's side follows from `seed` and its id, so rows keep their side when the file grows or is sorted anew.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    holdout: float = Field(gt=0, lt=1)
    seed: int = Field(default=0, ge=-(2**63 - 1), le=2**63 - 1)
    use: Side = "dev"

    def side_of(self, sample_id: str | int) -> Side:
        """The side: the first 64 bits of the SHA-256 of `seed:id`, as a fraction of 2**64, against `holdout`."""
        digest = hashlib.sha256(f"{self.seed}:{sample_id}".encode("utf-8", "surrogatepass")).digest()
        fraction = int.from_bytes(digest[:8], "big") / 2**64
        return "holdout" if fraction < self.holdout else "dev"
