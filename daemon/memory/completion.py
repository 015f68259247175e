"""Completion of bank names and source names that the caller may see."""

from typing import Final

from daemon.memory.prompts import PROMPTS
from daemon.memory.resources import TEMPLATES, visible_banks
from daemon.tools.authority import Forbidden, authorise
from daemon.tools.context import Context
from daemon.tools.toolkit import Toolkit
from protocol.mcp import CompleteParams, CompletionValues, PromptReference
from store.errors import BankNotFound, InvalidInput

MOST: Final = 100

_ARGUMENTS: Final = {prompt.name: {a.name for a in prompt.arguments or []} for prompt in PROMPTS}
_VARIABLES: Final = {
    template.uri_template: {part.partition("}")[0] for part in template.uri_template.split("{")[1:]}
    for template in TEMPLATES
}


class MemoryCompletions:
    def __init__(self, toolkit: Toolkit) -> None:
        self._toolkit = toolkit

    async def complete(self, params: CompleteParams, context: Context) -> CompletionValues | None:
        if isinstance(params.ref, PromptReference):
            known = _ARGUMENTS.get(params.ref.name)
        else:
            known = _VARIABLES.get(params.ref.uri)
        if known is None or params.argument.name not in known:
            return None
        match params.argument.name:
            case "bank":
                names = await visible_banks(self._toolkit, context.principal, context.bank)
            case "source":
                names = await self._sources(
                    params.context.arguments.get("bank") or context.bank, context
                )
            case _:
                names = []
        found = [name for name in names if name.startswith(params.argument.value)]
        return CompletionValues(values=found[:MOST], total=len(found), has_more=len(found) > MOST)

    async def _sources(self, bank: str, context: Context) -> list[str]:
        try:
            authorise(context.principal, bank, writes=False)
            return sorted(source.source for source in await self._toolkit.engine.sources(bank))
        except (Forbidden, BankNotFound, InvalidInput):
            return []
