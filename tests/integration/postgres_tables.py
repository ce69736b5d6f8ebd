"""Makes the tables of a Letta server that ships no migrations; runs in the server's own environment.

python postgres_tables.py postgresql+asyncpg://USER@127.0.0.1:PORT/NAME
"""

from __future__ import annotations

import asyncio
import sys

import letta.orm  # type: ignore[import-not-found]
from sqlalchemy import text  # type: ignore[import-not-found]
from sqlalchemy.ext.asyncio import create_async_engine  # type: ignore[import-not-found]

_STATEMENTS = (
    "create sequence message_seq_id",
    "alter table messages alter column sequence_id set default nextval('message_seq_id')",
)


async def make_tables(address: str) -> None:
    """All tables of the server's metadata, and the sequence that its models leave to the migrations."""
    engine = create_async_engine(address)
    async with engine.begin() as connection:
        await connection.execute(text("create extension if not exists vector"))
        await connection.run_sync(letta.orm.Base.metadata.create_all)
        for statement in _STATEMENTS:
            await connection.execute(text(statement))
    await engine.dispose()


if __name__ == "__main__":
    asyncio.run(make_tables(sys.argv[1]))
