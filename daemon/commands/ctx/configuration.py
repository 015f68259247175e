"""Reads `ctx.toml`, the configuration of Context Harness, and translates it for recalld.

Every key that Context Harness documents is accepted. A key that recalld does not need is ignored in
silence if it only tunes the original's index, and named in a note if it changes results. An unknown
key is a warning. A value that breaks a rule is an error with file, line, key, rule and, for a
misspelt word, a suggestion.

The original resolves relative paths against the working directory, and so does this module.
"""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from daemon.config.parsers import flag, integer, names, number, text
from daemon.config.scripts import inline_agent, named, script_entry, suggestion
from daemon.config.toml_lines import line_of
from daemon.exit_codes import CONFIG, Exit

#: Where the original looks if `--config` is absent.
DEFAULTS: Final = ("./.ctx/config.toml", "./config/ctx.toml")
DEFAULT_BIND: Final = "127.0.0.1:7331"
_OPENAI: Final = "https://api.openai.com/v1/embeddings"

_Reader = Callable[[str, Any], Any]
_COUNT: Final = integer(0, 2**53)
#: The documented keys with their parsers, by section.
_SECTIONS: Final[dict[str, dict[str, _Reader]]] = {
    "db": {"path": text},
    "chunking": {"max_tokens": integer(1, 1_000_000), "overlap_tokens": _COUNT},
    "embedding": {
        **dict.fromkeys(("provider", "model", "url"), text),
        **dict.fromkeys(("dims", "batch_size", "max_retries", "timeout_secs"), _COUNT),
    },
    "retrieval": {
        "final_limit": integer(1, 1000),
        "hybrid_alpha": number(0, 1),
        "candidate_k_keyword": _COUNT,
        "candidate_k_vector": _COUNT,
        "group_by": text,
        "doc_agg": text,
        "max_chunks_per_doc": _COUNT,
    },
    "server": {"bind": text, "cors_origins": names},
    "vector_index": {},
}
_CONNECTORS: Final[dict[str, dict[str, _Reader]]] = {
    "filesystem": {
        "root": text,
        "include_globs": names,
        "exclude_globs": names,
        "follow_symlinks": flag,
        "max_extract_bytes": _COUNT,
    },
    "git": {
        **dict.fromkeys(("url", "branch", "root", "cache_dir"), text),
        "include_globs": names,
        "exclude_globs": names,
        "shallow": flag,
        "max_extract_bytes": _COUNT,
    },
    "s3": {
        **dict.fromkeys(("bucket", "prefix", "region", "endpoint_url"), text),
        "include_globs": names,
        "exclude_globs": names,
        "max_extract_bytes": _COUNT,
    },
}
_REQUIRED: Final = {"filesystem": "root", "git": "url", "s3": "bucket", "script": "path"}
_SCRIPT_KEYS: Final = ("path", "timeout", "allow_hosts", "env")
_VARIABLE: Final = re.compile(r"\$\{(\w+)\}")


class Translated(NamedTuple):
    """The tables of recalld's `config.toml`, the folder for its data, and remarks for the user."""

    home: Path
    tables: dict[str, Any]
    warnings: list[str]


def find(given: str | None, environment: Mapping[str, str]) -> Path:
    """The configuration file: `--config`, `CTX_CONFIG`, or the first default that exists."""
    chosen = given or environment.get("CTX_CONFIG", "")
    if chosen:
        return Path(chosen)
    return next((Path(each) for each in DEFAULTS if Path(each).is_file()), Path(DEFAULTS[-1]))


def read(path: Path, environment: Mapping[str, str]) -> Translated:
    """Read and translate a file; `Exit(CONFIG)` names the mistake."""
    import tomllib

    try:
        content = path.read_bytes().decode()
        tables = tomllib.loads(content)
    except OSError as error:
        raise Exit(
            CONFIG, f"{path}: {error.strerror}; `recalld ctx init` writes an example"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Exit(CONFIG, f"{path}: is not TOML: {error}") from None
    return _Translation(path, content, tables, environment).run()


class _Translation:
    def __init__(
        self, path: Path, content: str, tables: dict[str, Any], environment: Mapping[str, str]
    ) -> None:
        self._path = path
        self._content = content
        self._tables = tables
        self._environment = environment
        self._warnings: list[str] = []
        self._result: dict[str, Any] = {}

    def run(self) -> Translated:
        known = {*_SECTIONS, "connectors", "tools", "agents", "registries"}
        for section, value in self._tables.items():
            if section not in known:
                self._warn((section,), f"unknown section, ignored{suggestion(section, known)}")
            elif not isinstance(value, dict):
                raise Exit(CONFIG, f"{self.where(section)}: must be a table")
        values = {name: self._section(name) for name in _SECTIONS}
        home = self._home(values["db"])
        self._server(values["server"])
        self._embedding(values["embedding"])
        if "final_limit" in values["retrieval"]:
            self._result["retrieval"] = {"final_limit": values["retrieval"]["final_limit"]}
        if "hybrid_alpha" in values["retrieval"]:
            self._warn(("retrieval", "hybrid_alpha"), "has no effect: recalld weighs by itself")
        if "registries" in self._tables:
            self._warn(("registries",), "has no effect: recalld has no extension registries")
        self._connectors()
        self._scripts()
        return Translated(home, self._result, self._warnings)

    def where(self, *keys: str) -> str:
        return f"{self._path}: line {line_of(self._content, keys)}: {'.'.join(keys)}"

    def _warn(self, keys: tuple[str, ...], message: str) -> None:
        self._warnings.append(f"{self.where(*keys)}: {message}")

    def _section(self, name: str) -> dict[str, Any]:
        given: dict[str, Any] = self._tables.get(name, {})
        return self._values((name,), given, _SECTIONS[name])

    def _values(
        self, keys: tuple[str, ...], given: Mapping[str, Any], known: Mapping[str, _Reader]
    ) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in given.items():
            if key in known:
                found[key] = known[key](self.where(*keys, key), value)
            elif keys != ("vector_index",):
                self._warn((*keys, key), f"unknown key, ignored{suggestion(key, known)}")
        return found

    def _home(self, db: Mapping[str, Any]) -> Path:
        """The data lies beside the database that the file names, in a folder of its own."""
        if not db.get("path"):
            raise Exit(CONFIG, f'{self.where("db", "path")}: required, such as "./data/ctx.sqlite"')
        return Path(db["path"]).expanduser().absolute().with_suffix(".recalld")

    def _server(self, server: Mapping[str, Any]) -> None:
        self._result["server"] = {"dialects": "harness", "bind": server.get("bind", DEFAULT_BIND)}
        if "cors_origins" in server:
            self._result["server"]["cors_origins"] = list(server["cors_origins"])

    def _embedding(self, given: Mapping[str, Any]) -> None:
        provider = given.get("provider", "disabled")
        providers = ("disabled", "local", "openai", "ollama")
        place = self.where("embedding", "provider")
        if provider not in providers:
            hint = suggestion(provider, providers)
            raise Exit(CONFIG, f"{place}: {provider!r} is not one of {', '.join(providers)}{hint}")
        if provider in ("disabled", "local"):
            return  # the installed model; keyword search does not use it
        for key in ("model", "dims"):
            if not given.get(key):
                raise Exit(
                    CONFIG, f"{self.where('embedding')}: {key} is required with {provider!r}"
                )
        url = _OPENAI
        if provider == "ollama":
            url = given.get("url", "http://localhost:11434").rstrip("/") + "/v1/embeddings"
        made = {"url": url, "model": given["model"], "dims": given["dims"]}
        key = self._environment.get("OPENAI_API_KEY", "")
        if provider == "openai" and not key:
            raise Exit(CONFIG, f"{place}: the variable OPENAI_API_KEY is not set")
        # The key stays in the environment, which the server inherits.
        self._result["embedding"] = made

    # --- sources -------------------------------------------------------------------------------

    def _connectors(self) -> None:
        connectors: dict[str, Any] = self._tables.get("connectors", {})
        kinds = (*_CONNECTORS, "script")
        sources: dict[str, Any] = {}
        for kind, value in connectors.items():
            keys = ("connectors", kind)
            if kind not in kinds:
                self._warn(keys, f"unknown connector, ignored{suggestion(kind, kinds)}")
                continue
            if not isinstance(value, dict):
                raise Exit(CONFIG, f"{self.where(*keys)}: must be a table")
            table = cast("dict[str, Any]", value)
            if kind != "script" and not _is_named(table):
                sources[kind] = self._source(keys, kind, table)
                continue
            for name, entry in named(self.where, keys, table):
                # The label of a named instance in the original is `kind:name`.
                sources[f"{kind}-{name}"] = self._source((*keys, name), kind, entry)
        if sources:
            self._result["sources"] = sources

    def _source(self, keys: tuple[str, ...], kind: str, entry: Mapping[str, Any]) -> dict[str, Any]:
        required = _REQUIRED[kind]
        if not entry.get(required):
            for key in entry:
                if key not in _CONNECTORS.get(kind, _SCRIPT_KEYS) and suggestion(key, [required]):
                    raise Exit(
                        CONFIG, f"{self.where(*keys, key)}: unknown key; did you mean {required}?"
                    )
            raise Exit(CONFIG, f"{self.where(*keys)}: {required} is required")
        if kind == "script":
            read = script_entry(self.where, keys, _only(entry, _SCRIPT_KEYS), {})
            config = {key: entry[key] for key in entry if key not in _SCRIPT_KEYS}
            made: dict[str, Any] = {"kind": kind, "path": _absolute(read.path)}
            if read.seconds is not None:
                made["timeout"] = max(1, int(read.seconds))
            rights = _only(entry, ("allow_hosts", "env"))
            return {**made, **rights, "config": self._expanded(config)}
        values = self._values(keys, entry, _CONNECTORS[kind])
        made = {"kind": kind}
        for ours, theirs in (("include", "include_globs"), ("exclude", "exclude_globs")):
            if values.get(theirs):
                made[ours] = list(values[theirs])
        if kind == "filesystem":
            made["root"] = _absolute(values["root"])
            made["follow_symlinks"] = values.get("follow_symlinks", False)
        elif kind == "git":
            url = str(values["url"])
            made["url"] = _absolute(url) if url.startswith((".", "~")) else url
            made["branch"] = values.get("branch", "main")
            if values.get("root", ".") not in (".", "./", ""):
                made["root"] = values["root"]
        else:
            made["url"] = f"s3://{values['bucket']}/{values.get('prefix', '')}".rstrip("/")
            made["region"] = values.get("region", "us-east-1")
            if values.get("endpoint_url"):
                made["endpoint"] = values["endpoint_url"]
        return made

    # --- scripts -------------------------------------------------------------------------------

    def _scripts(self) -> None:
        tools: dict[str, Any] = self._tables.get("tools", {})
        made: dict[str, Any] = {}
        for key, value in tools.items():
            if key == "dir":
                made["dir"] = _absolute(text(self.where("tools", "dir"), value))
            elif key == "script":
                made["script"] = self._named_scripts(("tools", "script"), value)
            elif key in ("allow_hosts", "env"):
                made[key] = list(names(self.where("tools", key), value))
            else:
                hint = suggestion(key, ("dir", "script", "allow_hosts", "env"))
                self._warn(("tools", key), f"unknown key, ignored{hint}")
        if made:
            self._result["tools"] = made
        agents: dict[str, Any] = self._tables.get("agents", {})
        found: dict[str, Any] = {}
        for key, value in agents.items():
            if key == "script":
                found["script"] = self._named_scripts(("agents", "script"), value)
            elif key == "inline":
                for name, entry in named(self.where, ("agents", "inline"), value):
                    self._agent(found, ("agents", "inline", name), entry)
            elif isinstance(value, dict):  # [agents.NAME] is an inline agent
                self._agent(found, ("agents", key), cast("dict[str, Any]", value))
            else:
                self._warn(("agents", key), "unknown key, ignored")
        if found:
            self._result["agents"] = found

    def _agent(
        self, found: dict[str, Any], keys: tuple[str, ...], entry: Mapping[str, Any]
    ) -> None:
        agent = inline_agent(self.where, keys, entry)
        made = {"description": agent.description, "system_prompt": agent.system_prompt}
        found.setdefault("inline", {})[keys[-1]] = {**made, "tools": list(agent.tools)}

    def _named_scripts(self, keys: tuple[str, ...], value: Any) -> dict[str, Any]:
        """Scripts, whose further keys are their configuration."""
        found: dict[str, Any] = {}
        for name, entry in named(self.where, keys, value):
            read = script_entry(self.where, (*keys, name), _only(entry, _SCRIPT_KEYS), {})
            if not read.path:
                raise Exit(CONFIG, f"{self.where(*keys, name)}: path is required")
            config = {key: entry[key] for key in entry if key not in _SCRIPT_KEYS}
            made = {**_only(entry, _SCRIPT_KEYS), "path": _absolute(read.path)}
            found[name] = {**made, "config": self._expanded(config)} if config else made
        return found

    def _expanded(self, value: Any) -> Any:
        """`${NAME}` in the configuration of a script is an environment variable."""
        if isinstance(value, str):
            return _VARIABLE.sub(lambda found: self._environment.get(found[1], ""), value)
        if isinstance(value, list):
            return [self._expanded(each) for each in cast("list[Any]", value)]
        if isinstance(value, dict):
            table = cast("dict[str, Any]", value)
            return {key: self._expanded(each) for key, each in table.items()}
        return value


def _is_named(table: Mapping[str, Any]) -> bool:
    """Whether a connector's table holds instances: `[connectors.git.NAME]`."""
    return bool(table) and all(isinstance(value, dict) for value in table.values())


def _only(entry: Mapping[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    return {key: entry[key] for key in keys if key in entry}


def _absolute(path: str) -> str:
    # Not `Path`, which would drop a trailing slash that git needs in some addresses.
    return os.path.abspath(os.path.expanduser(path))  # noqa: PTH100, PTH111
