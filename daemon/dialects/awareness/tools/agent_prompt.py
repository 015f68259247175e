"""`awareness_get_agent_prompt`: the prompt that starts a sub-agent of a role."""

from hmac import compare_digest

from msgspec import UNSET, Struct, UnsetType

from daemon.dialects.awareness import roles
from daemon.dialects.awareness.arguments import PromptArguments
from daemon.tools.context import Context
from daemon.tools.errors import Denied, Missing
from daemon.tools.toolkit import Toolkit
from store.errors import BankNotFound, NotFound
from store.model import AgentProfile


class AgentPrompt(Struct, frozen=True, kw_only=True):
    agent_role: str
    title: str
    activation_prompt: str
    system_prompt: str
    #: `stored` if an agent wrote the role to this memory; absent for a built-in one.
    origin: str | UnsetType = UNSET


class GetAgentPrompt:
    def __init__(self, toolkit: Toolkit) -> None:
        self._toolkit = toolkit

    async def __call__(self, arguments: PromptArguments, context: Context) -> AgentPrompt:
        self._authenticate(arguments.api_key)
        role = arguments.agent_role.strip()
        if not role:
            raise Denied("agent_role is required.")
        memory_id = arguments.memory_id or context.bank
        profile = await self._profile(memory_id, role, is_default=memory_id == context.bank)
        if profile is None:
            raise Missing(f"Agent role '{role}' not found in memory {memory_id}.")
        return AgentPrompt(
            agent_role=profile.agent_role,
            title=roles.title_of(profile),
            activation_prompt=roles.activation_prompt(profile, memory_id),
            system_prompt=roles.system_prompt(profile),
            origin=roles.origin_of(profile),
        )

    def _authenticate(self, api_key: str) -> None:
        """Check the API key if one is configured in `server.api_key`."""
        expected = self._toolkit.api_key
        if expected and not compare_digest(expected.encode(), api_key.encode("utf-8", "replace")):
            reason = "is not the right one" if api_key else "is missing"
            raise Denied(f"Authentication required: api_key {reason}.")

    async def _profile(self, bank: str, role: str, *, is_default: bool) -> AgentProfile | None:
        built_in = roles.built_in(role)
        try:
            stored = await self._toolkit.engine.profile(bank, role)
        except NotFound:
            return built_in
        except BankNotFound:
            # The default memory has the built-in roles before anything is written to it.
            return built_in if is_default else None
        return built_in or stored
