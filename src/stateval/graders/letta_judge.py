"""`letta_judge`: an agent on a Letta server that reads a submission beside a rubric and calls a tool with its grade."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from stateval.deadline import deadline
from stateval.errors import GradingError, TargetError, UsageError
from stateval.graders.judging.answers import Verdict, single_reader, single_schema
from stateval.graders.judging.prompt import Prompts, Question
from stateval.graders.judging.settings import JudgeSettings
from stateval.letta import judge_agent
from stateval.letta.agent import LettaAgent, import_agent
from stateval.letta.agent_file import LettaAgentFile
from stateval.letta.connection import LettaServer
from stateval.letta.judge_agent import SUBMIT_GRADE
from stateval.llm.schema import InvalidAnswer
from stateval.loading.fingerprint import digest_of_module
from stateval.records.grade import GradeResult
from stateval.records.protocols import GradeRequest, Needs, Spent
from stateval.records.sample import Sample
from stateval.records.usage import Usage

if TYPE_CHECKING:
    from letta_client import AsyncLetta

logger = logging.getLogger(__name__)

_SCALE = (0.0, 1.0)
_TRIES = 3
_SECONDS_TO_DELETE = 30.0


class LettaJudge:
    """Grades by an agent on a Letta server.

    Args:
        settings: `prompt` and `rubric_vars`; a row's own rubric comes first.
        server: the server.
        agent_file: an agent file; every grade is given by a fresh clone, which is deleted afterwards.
        agent_id: a live agent, which grades in a conversation of its own where the server has conversations, one grade
            at a time. Without both an agent is made that has the tool `submit_grade` alone.
        tool_name: the tool whose arguments `score` and `rationale` are the grade.
        model: the model of the agent that is made, by its handle on the server.
        embedding: its embedding, likewise.
        timeout: seconds for one grade.

    Raises UsageError for settings that do not go together and an agent file that cannot be used.
    """

    kind = "letta_judge"
    needs = Needs.NOTHING

    def __init__(
        self,
        settings: JudgeSettings,
        server: LettaServer,
        *,
        agent_file: Path | str | None = None,
        agent_id: str | None = None,
        tool_name: str = SUBMIT_GRADE,
        model: str = judge_agent.MODEL,
        embedding: str = judge_agent.EMBEDDING,
        timeout: float = 120.0,
    ) -> None:
        settings.require_valid()
        if agent_file is not None and agent_id is not None:
            raise UsageError("a Letta judge has an `agent_file` or an `agent_id`, not both")
        if tool_name != SUBMIT_GRADE and agent_file is None and agent_id is None:
            raise UsageError(
                f"`judge_tool_name: {tool_name}` needs an agent that has this tool: give `agent_file` or `agent_id`"
            )
        self._server = server
        self._file = None if agent_file is None else LettaAgentFile.read(Path(agent_file))
        self._live_id = agent_id
        self._tool = tool_name
        self._model = model
        self._embedding = embedding
        self._timeout = timeout
        self._prompts = Prompts(settings)
        self._question = _question(tool_name)
        self._one_at_a_time = anyio.Lock()
        self._is_reached = False
        self._open_client: AsyncLetta | None = None
        self._calls = 0
        self._usage = Usage()

    @property
    def server(self) -> LettaServer:
        """Where the judge lives."""
        return self._server

    @property
    def models(self) -> tuple[str, ...]:
        """The judge, as a suite names it."""
        if self._file is not None:
            return (self._file.model or self._file.name,)
        return (self._live_id or self._model,)

    @property
    def unpriced_models(self) -> tuple[str, ...]:
        """All: a Letta server does not say what its models cost."""
        return self.models

    @property
    def spent(self) -> Spent:
        """What its turns have taken so far."""
        return Spent(self._calls, usage=self._usage)

    @property
    def fingerprint(self) -> dict[str, Any]:
        """The agent, the tool, and the source of what makes prompts and reads answers."""
        agent: Any = judge_agent.fingerprint(self._model, self._embedding)
        if self._file is not None:
            agent = {"agent_file": self._file.sha256}
        elif self._live_id is not None:
            agent = {"agent_id": self._live_id, "server": self._server.base_url}
        told = self._prompts.told(self._prompts.template(Sample(id=0, input="")))
        return {
            "grader": self.kind,
            "agent": agent,
            "tool": self._tool,
            "told": told,
            "sha256": digest_of_module(__name__),
        }

    def check(self, sample: Sample) -> str | None:
        """What this sample lacks: a truth, or a value of a placeholder."""
        has_truth = sample.ground_truth is not None or sample.turn_truths is not None
        return self._prompts.problem(sample, has_truth=has_truth)

    async def grade(self, request: GradeRequest) -> GradeResult:
        """The grade.

        Raises GradingError: the server fails, or no valid grade is handed in within three messages; ModelUnavailable
        where the server does not answer at all, refuses the key, or lacks the live agent.
        """
        problem = self._prompts.problem(request.sample, has_truth=request.ground_truth is not None)
        if problem:
            raise GradingError(problem)
        messages = self._prompts.messages(self._prompts.shown(request), self._question)
        asked = "\n\n".join(message.content or "" for message in messages)
        await self._reach()
        try:
            verdict = await self._verdict(asked)
        except TargetError as error:
            raise GradingError(f"the Letta judge: {error}", cause_type=error.cause_type) from error
        return GradeResult(score=verdict["score"], rationale=verdict["rationale"])

    async def close(self) -> None:
        """Gives back connections."""
        if self._open_client is not None:
            client, self._open_client = self._open_client, None
            await client.close()

    @property
    def _client(self) -> AsyncLetta:
        if self._open_client is None:
            self._open_client = self._server.client()
        return self._open_client

    async def _reach(self) -> None:
        """Asks once whether the server is there."""
        async with self._one_at_a_time:
            if not self._is_reached:
                await self._server.check(self._client, self._live_id)
                self._is_reached = True

    async def _verdict(self, asked: str) -> Verdict:
        if self._live_id is None:
            return await self._in_time(self._of_a_fresh_agent, asked)
        async with self._one_at_a_time:  # waiting for one's turn does not count
            return await self._in_time(partial(self._of_the_live_agent, self._live_id), asked)

    async def _in_time(self, ask: Callable[[str], Awaitable[Verdict]], asked: str) -> Verdict:
        try:
            with deadline(self._timeout):
                return await ask(asked)
        except TimeoutError as error:
            raise GradingError(f"the Letta judge took longer than {self._timeout:g} s") from error

    async def _of_the_live_agent(self, agent_id: str, asked: str) -> Verdict:
        agent = LettaAgent(self._client, agent_id, is_live=True)
        await self._begin_anew(agent)
        return await self._handed_in(agent, asked)

    async def _of_a_fresh_agent(self, asked: str) -> Verdict:
        agent = await self._fresh_agent()
        try:
            return await self._handed_in(agent, asked)
        finally:
            with anyio.move_on_after(_SECONDS_TO_DELETE, shield=True):
                await _delete(agent)

    async def _fresh_agent(self) -> LettaAgent:
        with anyio.CancelScope(shield=True):  # else one of which the id is not known yet could not be deleted
            if self._file is None:
                return await judge_agent.new_judge(self._client, self._model, self._embedding)
            agent_id = await import_agent(
                self._client, self._file.name, self._file.content, project_id=self._server.project_id
            )
        return LettaAgent(self._client, agent_id)

    async def _begin_anew(self, agent: LettaAgent) -> None:
        """So that no grade hangs on those before; servers without conversations keep one for all."""
        try:
            await agent.new_conversation()
        except TargetError as error:
            logger.info("the judge goes on in its one conversation: %s", error)

    async def _handed_in(self, agent: LettaAgent, asked: str) -> Verdict:
        complaint = ""
        for _ in range(_TRIES):
            messages = await agent.send(asked)
            self._count(agent)
            try:
                return _grade_in(messages, self._tool)
            except InvalidAnswer as error:
                complaint = str(error)
                asked = (
                    f"That was no grade: {complaint}. Call the tool `{self._tool}` once, with `rationale` and `score`."
                )
        raise GradingError(f"the Letta judge handed in no valid grade in {_TRIES} messages: {complaint}")

    def _count(self, agent: LettaAgent) -> None:
        self._calls += 1
        last = (agent.usage() or [{}])[-1]
        self._usage += Usage.of_record(last) or Usage()


def _question(tool: str) -> Question:
    instruction = (
        "Grade the submission by the rubric in this message. Think first. Then call the tool "
        f"`{tool}` once, with `rationale`, your reasons in a few sentences, and `score`, a number from 0 (worst) to 1 "
        "(best)."
    )
    return Question({}, single_schema(_SCALE), single_reader(_SCALE), "", instruction)


def _grade_in(messages: Iterable[Mapping[str, Any]], tool: str) -> Verdict:
    """The one grade that was handed in. Raises InvalidAnswer."""
    read = single_reader(_SCALE)
    found: list[Verdict] = []
    complaint = f"`{tool}` was not called"
    for arguments in _calls_of(messages, tool):
        try:
            fields = json.loads(arguments)
            said = {name: fields[name] for name in ("rationale", "score") if name in fields}
            found.append(read(said))
        except InvalidAnswer as error:
            complaint = str(error)
        except (ValueError, TypeError) as error:
            complaint = f"the arguments of `{tool}` are no JSON object ({error})"
    scores = {verdict["score"] for verdict in found}
    if len(scores) > 1:
        raise InvalidAnswer(f"`{tool}` was called with different scores")
    if not found:
        raise InvalidAnswer(complaint)
    return found[0]


def _calls_of(messages: Iterable[Mapping[str, Any]], tool: str) -> Iterable[str]:
    for message in messages:
        several = message.get("tool_calls")
        calls = several if isinstance(several, list) and several else [several or message.get("tool_call")]
        yield from (str(call["arguments"]) for call in calls if isinstance(call, Mapping) and call.get("name") == tool)


async def _delete(agent: LettaAgent) -> None:
    try:
        await agent.delete()
    except TargetError as error:
        logger.warning("the clone of the Letta judge: %s", error)
