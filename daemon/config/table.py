"""The table of all settings: name, environment variables, default, parser and description."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from daemon.config.parsers import choice, dialects, flag, integer, names, number, size, text
from daemon.config.scripts import LONGEST_SECONDS

MIB: Final = 1024 * 1024


class Setting(NamedTuple):
    """One setting: key in the file (`section.name`), variables, default, parser, description."""

    key: str
    variables: tuple[str, ...]
    default: Any
    read: Callable[[str, Any], Any]
    about: str


SETTINGS: Final = (
    Setting(
        "limits.requests_per_minute",
        ("RECALLD_RATE_LIMIT", "CLAUDE_RECALL_RATE_LIMIT"),
        100,
        integer(0, 1_000_000),
        "requests per minute in one session; 0 disables the rate limiter",
    ),
    Setting(
        "limits.principal_requests_per_minute",
        ("RECALLD_PRINCIPAL_RATE_LIMIT",),
        1000,
        integer(0, 10_000_000),
        "requests per minute with one bearer token, over all its sessions; 0 disables this limit",
    ),
    Setting(
        "limits.frame_bytes",
        ("RECALLD_FRAME_BYTES",),
        4 * MIB,
        size(1024, 256 * MIB),
        "largest accepted message, in bytes",
    ),
    Setting(
        "limits.in_flight",
        ("RECALLD_IN_FLIGHT",),
        256,
        integer(1, 100_000),
        "concurrent calls on one connection; further calls get an error",
    ),
    Setting(
        "limits.in_flight_total",
        ("RECALLD_IN_FLIGHT_TOTAL",),
        4096,
        integer(1, 1_000_000),
        "concurrent calls on all connections together",
    ),
    Setting(
        "limits.wait_seconds",
        ("RECALLD_WAIT_SECONDS",),
        5.0,
        number(0.01, 3600),
        "when tool calls take longer than this and 64 wait, new ones are refused with a retry hint",
    ),
    Setting(
        "limits.connections",
        ("RECALLD_CONNECTIONS",),
        1000,
        integer(1, 100_000),
        "concurrent socket connections; further ones are closed with an error,"
        " except for a few health checks",
    ),
    Setting(
        "limits.output_bytes",
        ("RECALLD_OUTPUT_BYTES",),
        MIB,
        size(4096, 256 * MIB),
        "bytes of unsent answers after which a connection's requests are no longer read",
    ),
    Setting(
        "limits.unsent_bytes",
        ("RECALLD_UNSENT_BYTES",),
        16 * MIB,
        integer(4096, 1024 * MIB),
        "finished but unsent answers of one connection; large ones beyond are discarded",
    ),
    Setting(
        "limits.unsent_bytes_total",
        ("RECALLD_UNSENT_BYTES_TOTAL",),
        256 * MIB,
        integer(4096, 65_536 * MIB),
        "finished but unsent answers of all connections; large ones beyond are discarded",
    ),
    Setting(
        "limits.answer_bytes",
        ("RECALLD_ANSWER_BYTES",),
        4 * MIB,
        size(4096, 256 * MIB),
        "JSON of one answer to a read-only tool call; longer lists are cut, other answers refused",
    ),
    Setting(
        "daemon.idle_seconds",
        ("RECALLD_IDLE_SECONDS",),
        600.0,
        number(0, 86_400 * 365),
        "a daemon started by `recalld stdio` exits after this time without a client",
    ),
    Setting(
        "daemon.start_seconds",
        ("RECALLD_START_SECONDS",),
        10.0,
        number(0.1, 3600),
        "how long `stdio` waits for a daemon, and `stdio --embedded` and `bank` for the lock",
    ),
    Setting(
        "sessions.idle_days",
        ("RECALLD_SESSION_IDLE_DAYS",),
        30.0,
        number(0.00001, 3650),
        "a session is deleted after this time without use; fractions are allowed",
    ),
    Setting(
        "sessions.resume_seconds",
        ("RECALLD_SESSION_RESUME_SECONDS",),
        600.0,
        number(0, 86_400 * 365),
        "a stdio client that reconnects within this time with the same name and bank resumes its"
        " session; 0 starts a new session each time",
    ),
    Setting(
        "sessions.keep",
        ("RECALLD_SESSIONS_KEEP",),
        1000,
        integer(1, 1_000_000),
        "number of inactive sessions to keep; the least recently used are deleted first",
    ),
    Setting(
        "limits.http_sessions",
        ("RECALLD_HTTP_SESSIONS",),
        200,
        integer(1, 100_000),
        "legacy HTTP sessions per token or owner; a further one ends the least recently used",
    ),
    Setting(
        "log.level",
        ("RECALLD_LOG_LEVEL",),
        "info",
        choice("debug", "info", "warning", "error"),
        "lowest level that is logged; debug logs every call",
    ),
    Setting(
        "server.socket",
        ("RECALLD_SOCKET",),
        "",
        text,
        "path of the unix socket; by default recalld.sock in the runtime directory",
    ),
    Setting(
        "server.bind",
        ("RECALLD_BIND",),
        "127.0.0.1:7331",
        text,
        "address on which `recalld serve` listens for HTTP",
    ),
    Setting(
        "server.hosts",
        ("RECALLD_HOSTS",),
        tuple[str, ...](),
        names,
        "accepted Host headers besides this machine's own names, such as `memory.lan:7331`",
    ),
    Setting(
        "server.cors_origins",
        ("RECALLD_CORS_ORIGINS",),
        tuple[str, ...](),
        names,
        "web origins that may send requests, besides this machine's own; `*` allows every origin",
    ),
    Setting(
        "server.token_file",
        ("RECALLD_TOKEN_FILE",),
        "",
        text,
        "file of bearer tokens for HTTP; without it only this machine can connect, as the owner",
    ),
    Setting(
        "server.mcp",
        ("RECALLD_MCP", "HINDSIGHT_API_MCP_ENABLED"),
        True,
        flag,
        "serve MCP over HTTP; false serves REST only",
    ),
    Setting(
        "limits.call_seconds",
        ("RECALLD_CALL_SECONDS",),
        60.0,
        number(0.01, 3600),
        "time limit of a REST call; it is answered with 408 after that",
    ),
    Setting(
        "server.dialects",
        ("RECALLD_DIALECTS",),
        "",
        dialects,
        "comma-separated dialects to serve; hindsight, awareness, recall and harness by default",
    ),
    Setting(
        "server.bank",
        ("RECALLD_BANK", "AWARENESS_MEMORY_ID"),
        "",
        text,
        "bank for tools that name none; `auto` uses one bank per git repository",
    ),
    Setting(
        "retrieval.final_limit",
        ("RECALLD_FINAL_LIMIT",),
        12,
        integer(1, 1000),
        "number of documents that Context Harness `search` returns when no limit is given",
    ),
    Setting(
        "tools.dir",
        ("RECALLD_TOOLS_DIR",),
        "",
        text,
        "folder of Lua tools; a relative path starts at the folder of the config file",
    ),
    Setting(
        "tools.timeout",
        ("RECALLD_TOOLS_TIMEOUT",),
        30.0,
        number(0.01, LONGEST_SECONDS),
        "seconds that a Lua script may run; its process is ended after that",
    ),
    Setting(
        "tools.memory_mb",
        ("RECALLD_TOOLS_MEMORY_MB",),
        128,
        integer(8, 8192),
        "memory of one Lua script, in MiB",
    ),
    Setting(
        "tools.processes",
        ("RECALLD_TOOLS_PROCESSES",),
        4,
        integer(1, 64),
        "Lua scripts that run at the same time, each in a process of its own; others wait",
    ),
    Setting(
        "tools.allow_hosts",
        ("RECALLD_TOOLS_ALLOW_HOSTS",),
        tuple[str, ...](),
        names,
        "hosts that Lua scripts may reach over HTTP, such as `api.example.com`; none by default",
    ),
    Setting(
        "tools.env",
        ("RECALLD_TOOLS_ENV",),
        tuple[str, ...](),
        names,
        "environment variables that Lua scripts may read; none by default",
    ),
    Setting(
        "storage.url",
        ("RECALLD_STORAGE_URL",),
        "",
        text,
        "PostgreSQL database that stores the banks, as `postgresql://user@host/database`; if empty,"
        " they are in the data directory (see docs/scale.md)",
    ),
    Setting(
        "storage.read_url",
        ("RECALLD_STORAGE_READ_URL",),
        "",
        text,
        "replica of that database for reads; a read that needs newer changes goes to `storage.url`",
    ),
    Setting(
        "storage.password_file",
        ("RECALLD_STORAGE_PASSWORD_FILE",),
        "",
        text,
        "file with the password for `storage.url`; `PGPASSWORD` and `PGPASSFILE` work too",
    ),
    Setting(
        "storage.pooler",
        ("RECALLD_STORAGE_POOLER",),
        False,
        flag,
        "whether a pooler in transaction mode, such as PgBouncer, is in front of the database",
    ),
    Setting(
        "storage.vector_bytes",
        ("RECALLD_STORAGE_VECTOR_BYTES",),
        512 * MIB,
        size(MIB, 2**40),
        "memory for the vectors of banks on a server; the least recently used banks leave it first",
    ),
    Setting(
        "embedding.url",
        ("RECALLD_EMBEDDING_URL",),
        "",
        text,
        "URL of an OpenAI-style embeddings endpoint to use instead of the installed model;"
        " all stored texts and queries are sent to it",
    ),
    Setting(
        "embedding.model",
        ("RECALLD_EMBEDDING_MODEL",),
        "",
        text,
        "model name for that endpoint; required with `embedding.url`",
    ),
    Setting(
        "embedding.dims",
        ("RECALLD_EMBEDDING_DIMS",),
        0,
        integer(0, 16_384),
        "dimensions of that model's vectors; required with `embedding.url`",
    ),
    Setting(
        "embedding.key",
        ("RECALLD_EMBEDDING_KEY",),
        "",
        text,
        "bearer key for that endpoint; none by default",
    ),
    Setting(
        "embedding.file",
        ("RECALLD_EMBEDDING_FILE",),
        "",
        text,
        "path of another model file with the same layout as the installed one",
    ),
    Setting(
        "embedding.hashed",
        ("RECALLD_EMBEDDING_HASHED",),
        False,
        flag,
        "use no model: vectors compare spelling instead of meaning and need little memory",
    ),
    Setting(
        "server.api_key",
        ("RECALLD_API_KEY",),
        "",
        text,
        "api_key that `awareness_get_agent_prompt` requires; none by default",
    ),
    Setting(
        "server.skill_banks",
        ("RECALLD_SKILL_BANKS",),
        (),
        names,
        "banks whose skills `awareness_init` delivers in every bank, as installed memories",
    ),
    Setting(
        "server.fixtures",
        ("RECALLD_FIXTURES",),
        False,
        flag,
        "serve test fixtures instead of memory tools; without a rate limit unless one is set",
    ),
)
