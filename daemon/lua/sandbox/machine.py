"""One run of a script in a fresh Lua state, inside a script process.

`prelude.lua` builds the script's environment. The functions of the host are the methods named in
`_HOST`; those that need the daemon go through `Link`.
"""

import base64
import hashlib
import hmac
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Protocol

import lupa.lua54
import msgspec

from daemon.lua.sandbox.messages import Level, Run
from daemon.lua.sandbox.values import ToLua, ToPython, Unusable

PRELUDE: Final = Path(__file__).with_name("prelude.lua").read_bytes()
#: The largest argument list of one host call.
_ARGUMENT_BYTES: Final = 8 * 1024 * 1024
_MESSAGE_CHARACTERS: Final = 300
_NOTE_CHARACTERS: Final = 2_000
_LONGEST_SLEEP: Final = 1e6

lua: Final[Any] = lupa.lua54  # its stubs describe another version

_encoder: Final = msgspec.json.Encoder()


class Link(Protocol):
    """The way to the daemon."""

    def ask(self, name: str, arguments: list[Any]) -> Any:
        """The daemon's answer; raises `HostRefusedError`."""
        ...

    def note(self, level: Level, text: str) -> None: ...


class HostRefusedError(Exception):
    """The daemon refused a host call; the script sees the message as a Lua error."""


class ScriptError(Exception):
    """The script failed; the message has the file and the line where Lua knows them."""


class Outcome(msgspec.Struct, frozen=True):
    result: bytes
    memory_bytes: int


def perform(run: Run, link: Link) -> Outcome:
    """Run a script. The Lua state is gone when this returns or raises."""
    machine = _Machine(run, link)
    try:
        return machine.perform()
    except Unusable as error:
        raise ScriptError(str(error)) from None
    except (lua.LuaMemoryError, MemoryError):
        limit = run.memory_bytes // (1024 * 1024)
        raise ScriptError(f"{run.name}: not enough memory; the limit is {limit} MiB") from None
    except lua.LuaError as error:
        text = str(error).partition("\nstack traceback:")[0] or "unknown error"
        raise ScriptError(_shortened(text)) from None
    finally:
        machine.close()


def _deny(_value: object, _name: object, _is_setting: bool) -> Any:
    raise AttributeError("scripts cannot use Python objects")


class _Machine:
    def __init__(self, run: Run, link: Link) -> None:
        self._run = run
        self._link = link
        self._lua = lua.LuaRuntime(
            encoding=None,
            register_eval=False,
            register_builtins=False,
            unpack_returned_tuples=True,
            attribute_filter=_deny,
            max_memory=run.memory_bytes,
        )
        self._to_lua: ToLua
        self._is_array: Callable[[Any], bool]

    def close(self) -> None:
        """Drop the references that form a cycle with the Lua state, so that it is freed now."""
        self.__dict__.clear()

    def perform(self) -> Outcome:
        run = self._run
        functions = {name.encode(): self._guarded(name) for name in _HOST}
        start = self._lua.eval(b"function(source, host) return load(source, '=prelude')(host) end")
        entry, new_array, is_array = start(PRELUDE, self._lua.table_from(functions))
        self._is_array = is_array
        self._to_lua = ToLua(self._lua.table, new_array)
        ok, value = entry(
            run.source,
            run.name.encode(),
            run.table.encode(),
            run.function.encode(),
            self._to_lua(run.config),
            self._to_lua(run.arguments),
        )
        if not ok:
            if value == b"not enough memory":
                raise lua.LuaMemoryError
            raise ScriptError(_shortened(_shown(value)))
        convert = ToPython(self._is_array, run.result_bytes, binary=False)
        result = convert(value, "result", functions=not run.function)
        encoded = _encoder.encode(result)
        return Outcome(encoded, self._lua.get_memory_used() or 0)

    def _guarded(self, name: str) -> Callable[..., tuple[bool, Any]]:
        """The host function as Lua calls it: it returns (True, value) or (False, message)."""
        work = _HOST[name]

        def called(count: int, *arguments: Any) -> tuple[bool, Any]:
            try:
                convert = ToPython(self._is_array, _ARGUMENT_BYTES, binary=True)
                given = list(arguments[:count])
                plain = [convert(value, f"argument {n}") for n, value in enumerate(given, 1)]
                return True, self._to_lua(work(self, *plain))
            except (HostRefusedError, Unusable) as error:
                return False, str(error).encode("utf-8", "replace")
            except TypeError:
                return False, f"{name}: wrong number or type of arguments".encode()
            except (ValueError, OverflowError) as error:
                return False, f"{name}: {error}".encode("utf-8", "replace")
            except MemoryError:
                return False, b"not enough memory"

        return called

    # --- functions that need no daemon ---------------------------------------------------------

    def json_parse(self, text: str | bytes) -> Any:
        try:
            return msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise HostRefusedError(f"json.parse: {error}") from None

    def json_encode(self, value: Any = None) -> str:
        return _encoder.encode(value).decode()

    def base64_encode(self, value: str | bytes) -> str:
        return base64.b64encode(_bytes(value)).decode()

    def base64_decode(self, value: str) -> bytes:
        return base64.b64decode(value, validate=True)

    def sha256(self, value: str | bytes) -> str:
        return hashlib.sha256(_bytes(value)).hexdigest()

    def hmac_sha256(self, key: str | bytes, value: str | bytes) -> str:
        return hmac.digest(_bytes(key), _bytes(value), "sha256").hex()

    def sleep(self, seconds: float) -> None:
        time.sleep(min(max(0.0, seconds), _LONGEST_SLEEP))

    def env_get(self, name: str) -> str | None:
        return self._run.environment.get(name)

    def note_debug(self, text: str | bytes) -> None:
        self._link.note("debug", _shown(text)[:_NOTE_CHARACTERS])

    def note_info(self, text: str | bytes) -> None:
        self._link.note("info", _shown(text)[:_NOTE_CHARACTERS])

    def note_warn(self, text: str | bytes) -> None:
        self._link.note("warning", _shown(text)[:_NOTE_CHARACTERS])

    def note_error(self, text: str | bytes) -> None:
        self._link.note("error", _shown(text)[:_NOTE_CHARACTERS])

    # --- functions of the daemon ---------------------------------------------------------------

    def search(self, query: Any = None, options: Any = None) -> Any:
        return self._link.ask("search", [query, options])

    def get(self, id: Any = None) -> Any:
        return self._link.ask("get", [id])

    def sources(self) -> Any:
        return self._link.ask("sources", [])

    def fs_read(self, path: str) -> Any:
        return self._link.ask("fs_read", [path])

    def fs_list(self, path: str = ".") -> Any:
        return self._link.ask("fs_list", [path])

    def http_get(self, url: str, options: Any = None) -> Any:
        return self._with_json(self._link.ask("http", ["GET", url, None, options]))

    def http_post(self, url: str, body: Any = None, options: Any = None) -> Any:
        return self._with_json(self._link.ask("http", ["POST", url, body, options]))

    def http_put(self, url: str, body: Any = None, options: Any = None) -> Any:
        return self._with_json(self._link.ask("http", ["PUT", url, body, options]))

    def _with_json(self, answer: Any) -> Any:
        """Add the parsed body of a JSON response."""
        if "json" in str(answer.get("headers", {}).get("content-type", "")):
            try:
                answer["json"] = msgspec.json.decode(answer["body"])
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                return answer
        return answer


_HOST: Final[dict[str, Callable[..., Any]]] = {
    name: getattr(_Machine, name)
    for name in (
        *("json_parse", "json_encode", "base64_encode", "base64_decode", "sha256", "hmac_sha256"),
        *("sleep", "env_get", "note_debug", "note_info", "note_warn", "note_error"),
        *("search", "get", "sources", "fs_read", "fs_list", "http_get", "http_post", "http_put"),
    )
}


def _shortened(message: str) -> str:
    """A long message without its middle, because the cause is at one of the ends."""
    if len(message) <= _MESSAGE_CHARACTERS:
        return message
    half = _MESSAGE_CHARACTERS // 2
    return f"{message[:half]} … {message[-half:]}"


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


def _shown(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
