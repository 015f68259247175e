"""Exceptions that a tool raises to refuse a call or to report a failure to its caller.

`daemon.rpc.failures` turns them into results and JSON-RPC errors. A tool that raises any other
exception, apart from the engine's `StoreError`, has crashed.
"""


class ToolFailure(Exception):
    """The tool understood the call and cannot do it; the message is shown to the caller."""


class ScriptFailed(ToolFailure):
    """A script raised an error; the message has its file and line where they are known."""


class ScriptTimedOut(ToolFailure):
    """A script exceeded its time limit; its process was ended."""


class Denied(ToolFailure):
    """A refusal in the dialect's own form (`Dialect.refuse`); nothing was changed."""


class Missing(Denied):
    """The bank, task or role that the call names does not exist."""


class Conflict(ToolFailure):
    """It exists already, or something else is under way with it."""


class ArgumentsRefused(Exception):
    """The arguments break the tool's schema or one of its rules; the message is `field: rule`."""
