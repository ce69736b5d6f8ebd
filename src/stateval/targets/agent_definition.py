"""What a local agent is: its instructions and the blocks of memory that it starts with."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

DEFAULT_SYSTEM = "You are a helpful assistant. Answer in one short sentence."


class BlockDefinition(BaseModel):
    """A block of memory at the start. `limit` is its longest length in characters."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    value: str = ""
    limit: int | None = Field(default=None, ge=1)
    description: str | None = None
    read_only: bool = False

    @model_validator(mode="after")
    def _within_its_limit(self) -> BlockDefinition:
        if self.limit is not None and len(self.value) > self.limit:
            raise ValueError(f"`value` has {len(self.value)} characters, more than its `limit` of {self.limit}")
        return self


class AgentDefinition(BaseModel):
    """An agent. A block may be written as its text alone."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    system: str = DEFAULT_SYSTEM
    blocks: dict[str, BlockDefinition] = Field(default_factory=dict)

    @field_validator("system", mode="before")
    @classmethod
    def _without_instructions(cls, system: Any) -> Any:
        return DEFAULT_SYSTEM if system is None else system

    @field_validator("blocks", mode="before")
    @classmethod
    def _text_is_a_block(cls, blocks: Any) -> Any:
        if not isinstance(blocks, dict):
            return blocks
        return {label: {"value": block} if isinstance(block, str) else block for label, block in blocks.items()}
