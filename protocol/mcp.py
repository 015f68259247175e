"""MCP message bodies: typed params of requests and typed payloads of results.

Each Struct is the union of its form in the five revisions. `protocol.shape` removes the members
that the revision of an answer does not define. JSON names come from the Structs' rename rules.
"""

from typing import Any, Final, Literal

from msgspec import UNSET, Raw, Struct, UnsetType

Role = Literal["user", "assistant"]


class Payload(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Base of outgoing bodies: camelCase in JSON; unset members are absent."""


# --- content ---------------------------------------------------------------------------------


class Annotations(Payload, frozen=True, kw_only=True):
    audience: list[Role] | UnsetType = UNSET
    priority: float | UnsetType = UNSET
    last_modified: str | UnsetType = UNSET


class TextContent(Payload, frozen=True, kw_only=True, tag="text"):
    text: str
    annotations: Annotations | UnsetType = UNSET


class ImageContent(Payload, frozen=True, kw_only=True, tag="image"):
    """`data` is base64."""

    data: str
    mime_type: str
    annotations: Annotations | UnsetType = UNSET


class AudioContent(Payload, frozen=True, kw_only=True, tag="audio"):
    """`data` is base64."""

    data: str
    mime_type: str
    annotations: Annotations | UnsetType = UNSET


class ResourceLink(Payload, frozen=True, kw_only=True, tag="resource_link"):
    uri: str
    name: str
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    mime_type: str | UnsetType = UNSET
    size: int | UnsetType = UNSET


class TextResource(Payload, frozen=True, kw_only=True):
    uri: str
    text: str
    mime_type: str | UnsetType = UNSET


class BlobResource(Payload, frozen=True, kw_only=True):
    """`blob` is base64."""

    uri: str
    blob: str
    mime_type: str | UnsetType = UNSET


ResourceContents = TextResource | BlobResource


class EmbeddedResource(Payload, frozen=True, kw_only=True, tag="resource"):
    resource: ResourceContents
    annotations: Annotations | UnsetType = UNSET


Content = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource


# --- tools -----------------------------------------------------------------------------------


class ToolAnnotations(Payload, frozen=True, kw_only=True):
    title: str | UnsetType = UNSET
    read_only_hint: bool | UnsetType = UNSET
    destructive_hint: bool | UnsetType = UNSET
    idempotent_hint: bool | UnsetType = UNSET
    open_world_hint: bool | UnsetType = UNSET


class Tool(Payload, frozen=True, kw_only=True):
    name: str
    title: str | UnsetType = UNSET
    description: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | UnsetType = UNSET
    annotations: ToolAnnotations | UnsetType = UNSET


class CallToolResult(Payload, frozen=True, kw_only=True):
    """The result of a tool. `structured_content` is a Struct or mapping, always a JSON object."""

    content: list[Content]
    structured_content: Any = UNSET
    is_error: bool = False


class InputRequired(Payload, frozen=True, kw_only=True):
    """A modern request for client input: the client repeats the call with the answers."""

    input_requests: dict[str, Any] | UnsetType = UNSET
    request_state: str | UnsetType = UNSET


def text_result(text: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=text)])


def error_result(text: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=text)], is_error=True)


# --- resources, prompts ----------------------------------------------------------------------


class Resource(Payload, frozen=True, kw_only=True):
    uri: str
    name: str
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    mime_type: str | UnsetType = UNSET
    size: int | UnsetType = UNSET


class ResourceTemplate(Payload, frozen=True, kw_only=True):
    uri_template: str
    name: str
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    mime_type: str | UnsetType = UNSET


class PromptArgument(Payload, frozen=True, kw_only=True):
    name: str
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    required: bool | UnsetType = UNSET


class Prompt(Payload, frozen=True, kw_only=True):
    name: str
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    arguments: list[PromptArgument] | UnsetType = UNSET


class PromptMessage(Payload, frozen=True, kw_only=True):
    role: Role
    content: Content


class GetPromptResult(Payload, frozen=True, kw_only=True):
    messages: list[PromptMessage]
    description: str | UnsetType = UNSET


class ReadResourceResult(Payload, frozen=True, kw_only=True):
    contents: list[ResourceContents]


class CompletionValues(Payload, frozen=True, kw_only=True):
    values: list[str]
    total: int | UnsetType = UNSET
    has_more: bool | UnsetType = UNSET


class CompleteResult(Payload, frozen=True, kw_only=True):
    completion: CompletionValues


# --- initialize, server/discover -------------------------------------------------------------


class ServerInfo(Payload, frozen=True, kw_only=True):
    name: str
    version: str
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    website_url: str | UnsetType = UNSET


class InitializeResult(Payload, frozen=True, kw_only=True):
    protocol_version: str
    capabilities: dict[str, Any]
    server_info: Any
    instructions: str | UnsetType = UNSET


class DiscoverResult(Payload, frozen=True, kw_only=True):
    supported_versions: list[str]
    capabilities: dict[str, Any]
    instructions: str | UnsetType = UNSET


# --- notifications ---------------------------------------------------------------------------


class ProgressParams(Payload, frozen=True, kw_only=True):
    progress_token: Raw
    progress: float
    total: float | UnsetType = UNSET
    message: str | UnsetType = UNSET


class MessageParams(Payload, frozen=True, kw_only=True):
    level: str
    data: Any
    logger: str | UnsetType = UNSET


# --- params of requests ----------------------------------------------------------------------

NO_ARGUMENTS: Final = Raw(b"{}")


class Params(Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of incoming params; unknown members are ignored, because peers may add some."""


class CallToolParams(Params, frozen=True, kw_only=True, gc=False):
    name: str
    arguments: Raw = NO_ARGUMENTS
    input_responses: Raw = Raw(b"")
    request_state: Raw = Raw(b"")


class ListParams(Params, frozen=True, kw_only=True):
    cursor: str | UnsetType = UNSET


class UriParams(Params, frozen=True, kw_only=True):
    uri: str


class GetPromptParams(Params, frozen=True, kw_only=True):
    name: str
    arguments: dict[str, str] = {}
    input_responses: Raw = Raw(b"")
    request_state: Raw = Raw(b"")


class PromptReference(Params, frozen=True, kw_only=True, tag="ref/prompt"):
    name: str


class ResourceReference(Params, frozen=True, kw_only=True, tag="ref/resource"):
    uri: str


class CompletedArgument(Params, frozen=True, kw_only=True):
    name: str
    value: str


class CompletionContext(Params, frozen=True, kw_only=True):
    arguments: dict[str, str] = {}


class CompleteParams(Params, frozen=True, kw_only=True):
    ref: PromptReference | ResourceReference
    argument: CompletedArgument
    context: CompletionContext = CompletionContext()


LogLevel = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]


class SetLevelParams(Params, frozen=True, kw_only=True):
    level: LogLevel


class SubscriptionFilter(Payload, frozen=True, kw_only=True):
    """The changes that a `subscriptions/listen` asks for, and that its acknowledgement grants."""

    tools_list_changed: bool = False
    prompts_list_changed: bool = False
    resources_list_changed: bool = False
    resource_subscriptions: list[str] = []
    task_ids: list[str] = []


class TaskParams(Params, frozen=True, kw_only=True):
    task_id: str


class UpdateTaskParams(Params, frozen=True, kw_only=True):
    task_id: str
    input_responses: dict[str, Any]


class ListenParams(Params, frozen=True, kw_only=True):
    notifications: SubscriptionFilter
