"""The table of all commands: name, group, purpose, and the functions behind it.

The functions are named, not imported, so that the help of `recalld` and the start of one command
do not load the others. A function that adds arguments takes the command's parser. A function that
runs a command takes the parsed arguments and the settings, and returns the exit code.
"""

from typing import Final, NamedTuple


class Command(NamedTuple):
    """One command. `arguments` and `run` are `module:function`; `daemon.cli` runs the others."""

    name: str
    group: str
    about: str
    arguments: str = ""
    run: str = ""


_MEMORY: Final = "daemon.commands.memories.commands:"
_ARGUMENTS: Final = "daemon.commandline.arguments:"

COMMANDS: Final = (
    Command("add", "memories", "store a memory", f"{_MEMORY}add_add", f"{_MEMORY}add"),
    Command("search", "memories", "search memories", f"{_MEMORY}add_search", f"{_MEMORY}search"),
    Command("recent", "memories", "show the newest", f"{_MEMORY}add_recent", f"{_MEMORY}recent"),
    Command("list", "memories", "list memories", f"{_MEMORY}add_list", f"{_MEMORY}list_items"),
    Command("show", "memories", "show memories whole", f"{_MEMORY}add_show", f"{_MEMORY}show"),
    Command("edit", "memories", "change a memory", f"{_MEMORY}add_edit", f"{_MEMORY}edit"),
    Command(
        "forget",
        "memories",
        "forget memories; can be undone for a day",
        f"{_MEMORY}add_forget",
        f"{_MEMORY}forget",
    ),
    Command("undo", "memories", "undo a forget", f"{_MEMORY}add_undo", f"{_MEMORY}undo"),
    Command(
        "stats", "memories", "show what a bank contains", f"{_MEMORY}add_stats", f"{_MEMORY}stats"
    ),
    Command(
        "bank",
        "memories",
        "manage banks: back up, export, import, erase, check …",
        "daemon.commands.bank:add_arguments",
    ),
    Command(
        "source",
        "memories",
        "index folders, repositories and buckets",
        "daemon.commands.source:add_arguments",
    ),
    Command(
        "import",
        "memories",
        "import memories of other programs, and exports",
        "daemon.commands.importing:add_arguments",
    ),
    Command(
        "export",
        "memories",
        "write a bank as JSON lines, Markdown or CSV",
        "daemon.commands.exporting:add_arguments",
    ),
    Command(
        "ctx",
        "memories",
        "the commands of Context Harness, with its ctx.toml",
        "daemon.commands.ctx.command:add_arguments",
    ),
    Command("stdio", "server", "serve MCP on stdin and stdout", f"{_ARGUMENTS}add_stdio"),
    Command("serve", "server", "run the daemon, with HTTP", f"{_ARGUMENTS}add_serve"),
    Command("stop", "server", "stop the daemon", f"{_ARGUMENTS}add_socket"),
    Command("status", "server", "show the daemon and its clients", f"{_ARGUMENTS}add_probe"),
    Command("health", "server", "check the daemon; for probes", f"{_ARGUMENTS}add_probe"),
    Command(
        "logs",
        "server",
        "show the log of the daemon",
        "daemon.commands.diagnosis.logs:add_arguments",
        "daemon.commands.diagnosis.logs:run",
    ),
    Command(
        "open",
        "server",
        "open the web page of the daemon",
        "daemon.commands.diagnosis.web_page:add_arguments",
        "daemon.commands.diagnosis.web_page:run",
    ),
    Command(
        "tool",
        "server",
        "write, test and list Lua tools",
        "daemon.commands.tool:add_arguments",
        "daemon.commands.tool:run",
    ),
    Command(
        "token",
        "server",
        "manage bearer tokens for HTTP",
        f"{_ARGUMENTS}add_token",
    ),
    Command(
        "setup",
        "installation",
        "connect MCP clients to recalld",
        "daemon.commands.clients.setup:add_arguments",
        "daemon.commands.clients.setup:run",
    ),
    Command(
        "awareness-setup",
        "installation",
        "write the rules and the MCP file of an IDE for Awareness",
        "daemon.commands.clients.awareness_setup:add_arguments",
        "daemon.commands.clients.awareness_setup:run",
    ),
    Command(
        "service",
        "installation",
        "install or remove a service of this user",
        "daemon.commands.clients.service:add_arguments",
        "daemon.commands.clients.service:run",
    ),
    Command(
        "hook",
        "installation",
        "called by the hooks of a client",
        f"{_ARGUMENTS}add_hook",
    ),
    Command(
        "config",
        "installation",
        "show the settings and their origin",
        "daemon.commands.diagnosis.configuration:add_arguments",
        "daemon.commands.diagnosis.configuration:run",
    ),
    Command(
        "doctor",
        "installation",
        "check the installation",
        "daemon.commands.diagnosis.doctor:add_arguments",
        "daemon.commands.diagnosis.doctor:run",
    ),
    Command(
        "completion",
        "installation",
        "print tab completion for a shell",
        "daemon.commandline.completion:add_arguments",
        "daemon.commandline.completion:run",
    ),
    Command(
        "manual",
        "installation",
        "print the man page",
        "daemon.commandline.manual:add_arguments",
        "daemon.commandline.manual:run",
    ),
    Command(
        "version",
        "installation",
        "show versions",
        "daemon.commands.diagnosis.versions:add_arguments",
        "daemon.commands.diagnosis.versions:run",
    ),
)

EXAMPLES: Final = (
    ("recalld setup", "connect the clients on this machine"),
    ("recalld add 'We release on Fridays' --tag release", "store a memory"),
    ("recalld search 'when do we release?'", "find it again"),
    ("recalld recent", "see the newest memories"),
    ("recalld status", "see the daemon and its clients"),
    ("recalld doctor", "check the installation"),
)
