"""Agents as MCP prompts, beside the prompts of the memory.

MCP knows no system role, so the system prompt is the first message of the user.
"""

from collections.abc import Awaitable, Callable, Sequence

import msgspec
from msgspec import UNSET, Raw

from daemon.lua.agents import AgentPrompt, FoundAgents, OfferedAgent
from daemon.tools.bound_tool import Answer, BoundTool
from daemon.tools.context import Context
from daemon.tools.surface import Agent, Prompts
from protocol.mcp import (
    CallToolResult,
    GetPromptResult,
    InputRequired,
    Prompt,
    PromptArgument,
    PromptMessage,
    TextContent,
)


class OfferedAgents:
    """The agents of this process. `found` gives the current ones."""

    def __init__(self, found: Callable[[], FoundAgents]) -> None:
        self._found = found

    def list(self) -> Sequence[Agent]:
        return [agent.about for agent in self._found().agents]

    def find(self, name: str) -> BoundTool | None:
        found = self.agent(name)
        return found.tool if found is not None else None

    def agent(self, name: str) -> OfferedAgent | None:
        return next((each for each in self._found().agents if each.about.name == name), None)


class AgentPrompts:
    """The prompts of the memory, then one for each agent."""

    def __init__(self, others: Prompts, agents: OfferedAgents) -> None:
        self._others = others
        self._agents = agents

    def list(self) -> Sequence[Prompt]:
        return [*self._others.list(), *(_prompt(agent) for agent in self._agents.list())]

    def get(
        self, name: str, arguments: dict[str, str], context: Context
    ) -> GetPromptResult | InputRequired | Awaitable[GetPromptResult | InputRequired | None] | None:
        agent = self._agents.agent(name)
        if agent is None:
            return self._others.get(name, arguments, context)
        answer = agent.tool.call(Raw(msgspec.json.encode(arguments)), context)
        if isinstance(answer, Awaitable):
            return _later(answer, agent.about)
        return _result(answer, agent.about)


async def _later(answer: Awaitable[Answer], about: Agent) -> GetPromptResult | None:
    return _result(await answer, about)


def _result(answer: Answer, about: Agent) -> GetPromptResult | None:
    if not isinstance(answer, CallToolResult) or answer.structured_content is UNSET:
        return None
    prompt = msgspec.json.decode(answer.structured_content, type=AgentPrompt)
    messages = [PromptMessage(role="user", content=TextContent(text=prompt.system))]
    messages += [
        PromptMessage(
            role="assistant" if message.role == "assistant" else "user",
            content=TextContent(text=message.content),
        )
        for message in prompt.messages
    ]
    return GetPromptResult(messages=messages, description=about.description or UNSET)


def _prompt(agent: Agent) -> Prompt:
    return Prompt(
        name=agent.name,
        description=agent.description or UNSET,
        arguments=[
            PromptArgument(
                name=each.name, description=each.description or UNSET, required=each.required
            )
            for each in agent.arguments
        ],
    )
