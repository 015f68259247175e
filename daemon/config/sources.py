"""Definitions of document sources: the keys of `[sources.NAME]`, their rules and defaults.

The same rules apply to the configuration file, `recalld source add` and the REST API. A definition
that breaks one raises `Mistake`, which names the key and the rule.
"""

import os
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, cast

KINDS: Final = ("filesystem", "git", "s3", "script")
NAME_RULE: Final = "must have 1 to 64 letters, digits, dots, underscores or hyphens"
MIB: Final = 1024 * 1024

_NAME: Final = re.compile(r"[\w.\-]{1,64}")
_URL: Final = re.compile(r"(https?|ssh|git|file)://\S+|[\w.\-]+@[\w.\-]+:\S+|/\S.*")
_WEB_ADDRESS: Final = re.compile(r"https?://\S+")
_NOT_IN_BRANCH: Final = re.compile(r"[\s~^:?*\[\\]|\.\.")
_BUCKET: Final = re.compile(r"s3://[a-z0-9][a-z0-9.\-]{1,62}(/.*)?")


class Mistake(Exception):
    """A definition breaks a rule. `key` is empty if the whole definition is meant."""

    def __init__(
        self, key: str, rule: str, wrong: str = "", candidates: tuple[str, ...] = ()
    ) -> None:
        super().__init__(f"{key}: {rule}" if key else rule)
        self.key = key
        self.rule = rule
        #: A misspelt word, and the words that may be meant.
        self.wrong = wrong
        self.candidates = candidates


class Key(NamedTuple):
    """One key of a definition. `kinds` lists the kinds of source that have it."""

    name: str
    kinds: tuple[str, ...]
    read: Callable[[Any], Any]
    about: str
    default: Any = None  # of a key that may be absent
    is_required: bool = False


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise ValueError("must be a text that is not empty")
    return value


def _any_text(value: Any) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise ValueError("must be a text")
    return value


def _absolute(value: Any) -> str:
    path = os.path.expanduser(_text(value))  # noqa: PTH111  (the bridge does not import pathlib)
    if not path.startswith("/"):
        raise ValueError("must be an absolute path, or begin with ~")
    return os.path.normpath(path)


def _inside(value: Any) -> str:
    path = os.path.normpath(_text(value))
    if path.startswith(("/", "..")):
        raise ValueError("must be a folder inside the repository")
    return "" if path == "." else path


def _git_url(value: Any) -> str:
    if not _URL.fullmatch(_text(value)) or value.startswith("-"):
        raise ValueError("must be the address of a repository, such as https://host/name.git")
    return str(value)


def _bucket(value: Any) -> str:
    if not _BUCKET.fullmatch(_text(value)):
        raise ValueError("must be s3://BUCKET or s3://BUCKET/PREFIX")
    return str(value)


def _branch(value: Any) -> str:
    branch = _text(value)
    if branch.startswith("-") or _NOT_IN_BRANCH.search(branch):
        raise ValueError("must be the name of a branch")
    return branch


def _web_address(value: Any) -> str:
    if not _WEB_ADDRESS.fullmatch(_text(value)):
        raise ValueError("must begin with http:// or https://")
    return str(value)


def _patterns(value: Any) -> list[str]:
    if not isinstance(value, list | tuple):
        raise ValueError("must be a list of patterns")  # noqa: TRY004  (mapped to `Mistake`)
    return [_text(each) for each in cast("list[Any]", value)]


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("must be true or false")  # noqa: TRY004
    return value


def _whole(low: int, high: int) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise ValueError(f"must be a whole number from {low} to {high}")
        return value

    return read


def _table(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("must be a table")  # noqa: TRY004
    return cast("dict[str, Any]", value)


_FILES: Final = ("filesystem", "git", "s3")

KEYS: Final = (
    Key("root", ("filesystem",), _absolute, "folder to index", is_required=True),
    Key("url", ("git",), _git_url, "address of the repository, or a local path", is_required=True),
    Key("branch", ("git",), _branch, "branch to index; the default branch if absent", ""),
    Key("root", ("git",), _inside, "folder in the repository; all of it if absent", ""),
    Key("url", ("s3",), _bucket, "`s3://BUCKET/PREFIX`", is_required=True),
    Key("endpoint", ("s3",), _web_address, "address of a server that is not Amazon's", ""),
    Key("region", ("s3",), _text, "region of the bucket", "us-east-1"),
    Key("path", ("script",), _absolute, "Lua file of the connector", is_required=True),
    Key("timeout", ("script",), _whole(1, 86_400), "seconds that one scan may take", 300),
    Key("config", ("script",), _table, "table that is passed to the script", {}),
    Key("allow_hosts", ("script",), _patterns, "hosts it may reach; else those of `[tools]`", []),
    Key("env", ("script",), _patterns, "variables it may read; else those of `[tools]`", []),
    Key("include", _FILES, _patterns, "patterns of files; every known format if absent", []),
    Key("exclude", _FILES, _patterns, "patterns of files to leave out, as in `.gitignore`", []),
    Key("max_bytes", _FILES, _whole(1, 16 * MIB), "size of the largest file", 16 * MIB),
    Key("follow_symlinks", ("filesystem",), _flag, "follow links that leave the root", False),
    Key("bank", KINDS, _any_text, "bank for the documents; the default bank if absent", ""),
    Key("watch", KINDS, _flag, "keep the index up to date while the daemon runs", False),
    Key("interval", KINDS, _whole(10, 86_400), "seconds between comparisons if watched", 0),
)  # fmt: skip


def check_name(name: str) -> str:
    if not _NAME.fullmatch(name) or name.startswith("-"):
        raise Mistake("", NAME_RULE)
    return name


def check_definition(given: Any) -> dict[str, Any]:
    """The definition with defaults filled in, or `Mistake`."""
    if not isinstance(given, Mapping):
        raise Mistake("", "must be a table with kind, and root or url")
    entries = cast("Mapping[str, Any]", given)
    if "kind" not in entries:
        raise Mistake("", f"kind is required: {', '.join(KINDS)}")
    kind = entries["kind"]
    if kind not in KINDS:
        raise Mistake("kind", f"{kind!r} is not one of {', '.join(KINDS)}", str(kind), KINDS)
    keys = {key.name: key for key in KEYS if kind in key.kinds}
    for name in entries:
        if name not in keys and name != "kind":
            others = [key.kinds for key in KEYS if key.name == name]
            why = f"is not a key of kind {kind}" if others else "is not a key of a source"
            raise Mistake(name, why, name, () if others else ("kind", *keys))
    made: dict[str, Any] = {"kind": kind}
    for name, key in keys.items():
        if name in entries:
            try:
                made[name] = key.read(entries[name])
            except ValueError as error:
                raise Mistake(name, f"{entries[name]!r}: {error}") from None
        elif key.is_required:
            raise Mistake("", f"{name} is required with kind = {kind!r}: {key.about}")
        else:
            made[name] = key.default
    return made
