"""The judge's calls through the plain SDK, in a bare loop: `plain_sdk.py CALLS IN_FLIGHT BASE_URL [aiohttp]`."""

from __future__ import annotations

import asyncio
import json
import sys
import time

import openai

SCHEMA = {
    "type": "object",
    "properties": {"rationale": {"type": "string"}, "score": {"type": "number"}},
    "required": ["rationale", "score"],
    "additionalProperties": False,
}
FORMAT = {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA, "strict": True}}


async def main(calls: int, in_flight: int, base_url: str, client: object) -> None:
    sdk = openai.AsyncOpenAI(base_url=base_url, api_key="unused", max_retries=0, http_client=client)
    numbers = iter(range(calls))

    async def work() -> None:
        for number in numbers:
            reply = await sdk.chat.completions.create(
                model="slow-judge",
                messages=[{"role": "user", "content": f"Grade this. {'word ' * 300}{number}"}],
                response_format=FORMAT,
                temperature=0,
            )
            assert json.loads(reply.choices[0].message.content)["score"] == 1

    async with asyncio.TaskGroup() as tasks:
        for _ in range(in_flight):
            tasks.create_task(work())
    await sdk.close()


if __name__ == "__main__":
    http = openai.DefaultAioHttpClient() if sys.argv[4:] == ["aiohttp"] else None
    started = time.perf_counter()
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], http))
    print(json.dumps({"seconds": time.perf_counter() - started}))
