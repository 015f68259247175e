"""Lifecycle: the era and revision of a request, and whether it is allowed now.

The era is decided for each message and is not a property of the connection. A request whose
`params._meta` names a protocol version is modern; any other belongs to the legacy handshake of this
connection. One connection can carry both, and a client that probed with a modern request can fall
back to `initialize`.

    request ── _meta names a version ──► modern checks: _meta complete, version known, method known
       │
       └─ no ── initialize ──► legacy handshake (once)
                handshake done ──► legacy, at the negotiated revision
                otherwise ──► only the methods that need no handshake
"""

import re
from collections.abc import Callable
from typing import Any, Final, TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from protocol.choices import choices_at
from protocol.errors import Fault, ProtocolError
from protocol.jsonrpc import Request, identity
from protocol.revisions import (
    CLIENT_CAPABILITIES,
    CLIENT_INFO,
    LOG_LEVEL,
    MODERN,
    PROTOCOL_VERSION,
    SUPPORTED,
    Revision,
    negotiate,
)

LOG_LEVELS: Final = (
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
)

_ABSENT: Final = Raw(b"")

T = TypeVar("T")


class Implementation(Struct, frozen=True, kw_only=True):
    """Name and version that the client reports."""

    name: str = ""
    version: str = ""
    title: str | UnsetType = UNSET


class ClientCapabilities(Struct, frozen=True, kw_only=True):
    """The capabilities of the client; unknown members are ignored."""

    sampling: dict[str, Any] | UnsetType = UNSET
    elicitation: dict[str, Any] | UnsetType = UNSET
    roots: dict[str, Any] | UnsetType = UNSET
    extensions: dict[str, Any] | UnsetType = UNSET

    def has(self, name: str) -> bool:
        """Whether the client declared a capability, or an extension by its identifier."""
        if "/" in name:
            return self.extensions is not UNSET and name in self.extensions
        return getattr(self, name, UNSET) is not UNSET


class Meta(Struct, frozen=True, kw_only=True):
    """The decoded `_meta` of a request. `progress_token` is raw JSON, empty when absent."""

    progress_token: bytes = b""
    capabilities: ClientCapabilities | None = None
    client: Implementation | None = None
    log_level: str | None = None
    traceparent: str | None = None


class Offered(Struct, frozen=True, kw_only=True):
    """The methods this server answers, per era; `unopened` ones need no handshake."""

    legacy: frozenset[str]
    modern: frozenset[str]
    unopened: frozenset[str]


class Handshake(Struct, frozen=True, kw_only=True):
    """The result of a legacy `initialize`."""

    revision: Revision
    client: Implementation
    capabilities: ClientCapabilities


class Admitted(Struct, frozen=True):
    """The revision and the `_meta` of a request that may be answered."""

    revision: Revision | None
    meta: Meta


class _InitializeParams(Struct, kw_only=True):
    protocol_version: str = field(name="protocolVersion")
    capabilities: ClientCapabilities = ClientCapabilities()
    client_info: Implementation = field(name="clientInfo", default=Implementation())


class _WithMeta(Struct):
    meta: Raw = field(name="_meta", default=_ABSENT)
    protocol_version: Raw = field(name="protocolVersion", default=_ABSENT)


class _RawMeta(Struct):
    progress_token: Raw = field(name="progressToken", default=_ABSENT)
    protocol_version: Raw = field(name=PROTOCOL_VERSION, default=_ABSENT)
    capabilities: Raw = field(name=CLIENT_CAPABILITIES, default=_ABSENT)
    client: Raw = field(name=CLIENT_INFO, default=_ABSENT)
    log_level: Raw = field(name=LOG_LEVEL, default=_ABSENT)
    traceparent: Raw = _ABSENT


_with_meta: Final = msgspec.json.Decoder(_WithMeta)
_raw_meta: Final = msgspec.json.Decoder(_RawMeta)
_initialize_params: Final = msgspec.json.Decoder(_InitializeParams)
_capabilities: Final = msgspec.json.Decoder(ClientCapabilities)
_implementation: Final = msgspec.json.Decoder(Implementation)
_text: Final = msgspec.json.Decoder(str)

_NO_META: Final = Meta()

_NOT_INITIALIZED: Final = (
    "not initialized: send initialize first, or name "
    f"{PROTOCOL_VERSION} in params._meta of each request"
)


class Lifecycle:
    """The legacy handshake of one connection, and the checks that every request must pass.

    `mirror` compares a modern request and its version with the HTTP headers that mirror them, and
    raises `ProtocolError` when they differ. It is None on transports without headers.
    """

    def __init__(self, offered: Offered) -> None:
        self.offered = offered
        self.mirror: Callable[[Request, str | None], None] | None = None
        self.handshake: Handshake | None = None
        self.initialized = False

    @property
    def revision(self) -> Revision | None:
        """The revision of the legacy handshake; None before it."""
        return self.handshake.revision if self.handshake else None

    def admit(self, request: Request) -> Admitted:
        """Decide era and revision; raises `ProtocolError` when the request is not allowed."""
        params = request.params
        # Decode only when `_meta` may be present; an escape sequence can spell it differently.
        if b'"_meta"' in params or b"\\" in params:
            found = _with_meta.decode(params)
            raw_meta = bytes(found.meta)
            if raw_meta:
                meta = _open_meta(raw_meta)
                legacy_opening = request.method == "initialize" and bytes(found.protocol_version)
                if bytes(meta.protocol_version) and not legacy_opening:
                    return self._admit_modern(request, meta)
                legacy_meta = Meta(progress_token=_token(meta), traceparent=_trace(meta))
                return self._admit_legacy(request, legacy_meta)
        return self._admit_legacy(request, _NO_META)

    def _admit_legacy(self, request: Request, meta: Meta) -> Admitted:
        method = request.method
        if method == "initialize":
            return Admitted(self._shake_hands(request.params), meta)
        if self.handshake is not None:
            if method not in self.offered.legacy:
                raise ProtocolError(Fault.METHOD_NOT_FOUND, method)
            return Admitted(self.handshake.revision, meta)
        if method in self.offered.unopened:
            return Admitted(None, meta)
        if method not in self.offered.legacy and method not in self.offered.modern:
            raise ProtocolError(Fault.METHOD_NOT_FOUND, method)
        raise ProtocolError(Fault.INVALID_PARAMS, _NOT_INITIALIZED)

    def _shake_hands(self, params: bytes) -> Revision:
        if self.handshake is not None:
            raise ProtocolError(Fault.INVALID_REQUEST, "initialize was already done here")
        opening = decode_params(_initialize_params, params)
        self.handshake = Handshake(
            revision=negotiate(opening.protocol_version),
            client=opening.client_info,
            capabilities=opening.capabilities,
        )
        return self.handshake.revision

    def _admit_modern(self, request: Request, raw: _RawMeta) -> Admitted:
        if not bytes(raw.capabilities):
            raise ProtocolError(
                Fault.INVALID_PARAMS, f"_meta.{CLIENT_CAPABILITIES}: required field is missing"
            )
        is_text = bytes(raw.protocol_version)[:1] == b'"'
        version = _text.decode(raw.protocol_version) if is_text else None
        if self.mirror is not None:
            self.mirror(request, version)
        if version is None:
            raise ProtocolError(Fault.INVALID_PARAMS, f"_meta.{PROTOCOL_VERSION}: must be a string")
        if version != MODERN.date:
            raise ProtocolError(
                Fault.UNSUPPORTED_VERSION, version, supported=SUPPORTED, requested=version
            )
        if request.method not in self.offered.modern:
            raise ProtocolError(Fault.METHOD_NOT_FOUND, request.method)
        return Admitted(MODERN, _read_meta(raw))


def speaks_modern(request: Request) -> bool:
    """Return whether a request names its revision, by the same rule as `Lifecycle.admit`."""
    params = request.params
    if b'"_meta"' not in params and b"\\" not in params:
        return False
    found = _with_meta.decode(params)
    raw_meta = bytes(found.meta)
    if raw_meta[:1] != b"{" or not bytes(_raw_meta.decode(raw_meta).protocol_version):
        return False
    return not (request.method == "initialize" and bytes(found.protocol_version))


def decode_params(decoder: msgspec.json.Decoder[T], params: bytes) -> T:
    """Decode params; raises a `ProtocolError` that names the field and the rule."""
    try:
        return decoder.decode(params)
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        raise ProtocolError(Fault.INVALID_PARAMS, explain(error, decoder.type)) from None


def explain(error: Exception, kind: Any = None) -> str:
    """Rewrite a decoder error with JSON type names: `text: expected string, got integer`.

    With `kind`, the type that was decoded, an invalid enum value is answered with the allowed ones.
    """
    # Split from the right, because the quoted input may contain " - at ".
    message, _, place = str(error).rpartition(" - at ")
    if not message:
        message, place = place, ""
    path = place.strip("`").removeprefix("$").removeprefix(".")
    if path.startswith("key in"):
        path = path.removeprefix("key in `$").strip("`.")
    message = message.replace("`", "")
    if message.startswith("Object missing required field "):
        name = message.removeprefix("Object missing required field ")
        return f"{path + '.' if path else ''}{name}: required field is missing"
    if message.startswith("Object contains unknown field "):
        name = message.removeprefix("Object contains unknown field ")
        return f"{path + '.' if path else ''}{name}: unknown field"
    if message.startswith("Invalid enum value ") and kind is not None:
        choices = ", ".join(choices_at(kind, place.strip("`")))
        if choices:
            value = message.removeprefix("Invalid enum value ")
            return f"{path + ': ' if path else ''}{value} is not one of {choices}"
    message = _TYPE_NAME.sub(lambda found: _WIRE_NAMES[found[0]], message)
    message = message[:1].lower() + message[1:]
    return f"{path}: {message}" if path else message


_WIRE_NAMES: Final = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}
_TYPE_NAME: Final = re.compile(r"\b(?:str|int|float|bool)\b")


def _open_meta(raw: bytes) -> _RawMeta:
    if raw[:1] != b"{":
        raise ProtocolError(Fault.INVALID_PARAMS, "_meta: must be an object")
    return _raw_meta.decode(raw)


def _token(raw: _RawMeta) -> bytes:
    token = bytes(raw.progress_token)
    if token and not identity(token):
        raise ProtocolError(
            Fault.INVALID_PARAMS, "_meta.progressToken: must be a string or an integer"
        )
    return token


def _trace(raw: _RawMeta) -> str | None:
    """Return the traceparent; one that is not a string is ignored."""
    trace = bytes(raw.traceparent)
    return _text.decode(trace) if trace[:1] == b'"' else None


def _read_meta(raw: _RawMeta) -> Meta:
    level: str | None = None
    if bytes(raw.log_level):
        level = _named(_text, raw.log_level, LOG_LEVEL)
        if level not in LOG_LEVELS:
            allowed = ", ".join(LOG_LEVELS)
            raise ProtocolError(
                Fault.INVALID_PARAMS, f"_meta.{LOG_LEVEL}: must be one of {allowed}"
            )
    client = bytes(raw.client)
    return Meta(
        progress_token=_token(raw),
        capabilities=_named(_capabilities, raw.capabilities, CLIENT_CAPABILITIES),
        client=_named(_implementation, raw.client, CLIENT_INFO) if client else None,
        log_level=level,
        traceparent=_trace(raw),
    )


def _named(decoder: msgspec.json.Decoder[T], raw: Raw, name: str) -> T:
    try:
        return decoder.decode(raw)
    except msgspec.ValidationError as error:
        raise ProtocolError(
            Fault.INVALID_PARAMS, f"_meta.{name}: {explain(error, decoder.type)}"
        ) from None
