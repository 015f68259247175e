"""The tools of the reference server."""

from __future__ import annotations

import contextvars
import hashlib
import hmac
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from conformance import json_schema
from conformance.broken import fixtures, tasks
from conformance.broken.errors import RpcError
from conformance.revisions import LEVELS, B, C, D

if TYPE_CHECKING:
    from conformance.broken.reference import Call

Tool = Callable[["Call", dict[str, Any]], None]
SECRET = b"reference"


def text(call: Call, words: str, **more: Any) -> None:
    call.answer({"result": {"content": [{"type": "text", "text": words}], **more}})


def call_tool(call: Call) -> None:
    """Check the call and run its tool; slow tools run in their own thread."""
    name = call.params.get("name")
    if not isinstance(name, str):
        raise RpcError(-32602, "name is not a string")
    arguments = call.params.get("arguments", {})
    if not isinstance(arguments, dict):
        raise RpcError(-32602, "arguments is not an object")
    if call.connection.quirk("loose_names"):
        name = name.lower()
    if name not in fixtures.SCHEMAS:
        raise RpcError(-32602, "no such tool")
    wrong = json_schema.check_value(arguments, fixtures.SCHEMAS[name])
    if wrong is not None and not call.connection.quirk("loose_arguments"):
        if call.revision < D:
            raise RpcError(-32602, f"arguments: {wrong}")
        text(call, f"arguments: {wrong}", isError=True)
        return
    if name in tasks.LASTING:
        work, required = tasks.LASTING[name]
        tasks.begin(call, work, arguments, required=required)
        return
    tool = TOOLS[name]
    if name in PATIENT and not call.connection.quirk("one_at_a_time"):
        # The thread inherits the context of the call, which selects the HTTP stream it writes to.
        run = contextvars.copy_context().run
        threading.Thread(target=run, args=(_run, tool, call, arguments), daemon=True).start()
    else:
        tool(call, arguments)


def _run(tool: Tool, call: Call, arguments: dict[str, Any]) -> None:
    try:
        tool(call, arguments)
    except RpcError as error:
        call.answer({"error": error.as_error()})


def echo(call: Call, arguments: dict[str, Any]) -> None:
    text(call, arguments.get("text", ""))


def _progress(call: Call, value: float, total: float) -> None:
    token = call.params.get("_meta", {}).get("progressToken")
    quirk = call.connection.quirk
    if token is None and not quirk("progress_for_all"):
        return
    params: dict[str, Any] = {"progressToken": token, "progress": value, "total": total}
    if call.revision >= B:
        params["message"] = f"{value:g} of {total:g}"
    if not call.cancelled.is_set() or quirk("progress_after_cancel"):
        call.connection.notify("notifications/progress", params)


def slow(call: Call, arguments: dict[str, Any]) -> None:
    server = call.connection.server
    with server.lock:
        server.tally["started"] += 1
    steps = max(1, arguments.get("steps", 1))
    for step in range(steps):
        wait = arguments["seconds"] / steps
        if call.connection.quirk("never_stops") or call.connection.quirk("progress_after_cancel"):
            time.sleep(wait)
        elif call.cancelled.wait(wait):
            with server.lock:
                server.tally["cancelled"] += 1
            return
        if "steps" in arguments:
            _progress(call, step + 1, steps)
    with server.lock:
        server.tally["finished"] += 1
    text(call, "waited")


def fail(call: Call, arguments: dict[str, Any]) -> None:
    text(call, arguments.get("message", "it failed"), isError=True)


def crash(call: Call, arguments: dict[str, Any]) -> None:
    raise RpcError(-32603, "internal error")


def print_text(call: Call, arguments: dict[str, Any]) -> None:
    # On stdio, stdout carries the protocol, so a correct server prints to stderr.
    stream = sys.stdout if call.connection.quirk("prints") else sys.stderr
    print(arguments["text"], file=stream, flush=True)
    words = f"import sys; print({arguments['text']!r}, file=sys.stderr)"
    subprocess.run([sys.executable, "-c", words], check=False, stderr=subprocess.DEVNULL)
    text(call, arguments["text"])


def big(call: Call, arguments: dict[str, Any]) -> None:
    text(call, "b" * arguments["bytes"])


def tally(call: Call, arguments: dict[str, Any]) -> None:
    text(call, json.dumps(call.connection.server.tally))


def structured(call: Call, arguments: dict[str, Any]) -> None:
    value = {"n": arguments["n"], "double": 2 * arguments["n"]}
    more = {"structuredContent": value} if call.revision >= C else {}
    text(call, json.dumps(value), **more)


def nonfinite(call: Call, arguments: dict[str, Any]) -> None:
    text(call, "the number is too large to tell", isError=True)


def fixed(name: str) -> Tool:
    def tool(call: Call, arguments: dict[str, Any]) -> None:
        call.answer({"result": {"content": fixtures.content(name, call.revision)}})

    return tool


def logging(call: Call, arguments: dict[str, Any]) -> None:
    connection = call.connection
    wanted = call.log_level
    if connection.quirk("remembers_level") and wanted is not None:
        connection.log_level = f"remembered {wanted}"
    elif connection.quirk("remembers_level") and " " in connection.log_level:
        wanted = connection.log_level.split()[1]
    if connection.quirk("logs_late"):
        text(call, "logged")
    for level in ("debug", "info", "warning"):
        heard = wanted is not None and LEVELS.index(level) >= LEVELS.index(wanted)
        if heard or connection.quirk("logs_always"):
            params = {"level": level, "logger": "reference", "data": f"said at {level}"}
            connection.notify("notifications/message", params)
    text(call, "logged")


def progress(call: Call, arguments: dict[str, Any]) -> None:
    for value in (0, 50, 100):
        _progress(call, value, 100)
        call.cancelled.wait(0.02)
    text(call, "progressed")


def reconnection(call: Call, arguments: dict[str, Any]) -> None:
    call.connection.detach()
    call.cancelled.wait(0.1)
    text(call, "you came back")


def mirrored(call: Call, arguments: dict[str, Any]) -> None:
    text(call, f"region {arguments.get('region')}, count {arguments.get('count')}")


def _ask(capability: str, method: str, params: dict[str, Any]) -> Tool:
    def tool(call: Call, arguments: dict[str, Any]) -> None:
        quirk = call.connection.quirk
        if call.modern:
            text(call, "ask me in another way", isError=True)
        elif call.revision < C and capability == "elicitation":
            text(call, "elicitation came later", isError=True)
        elif capability not in call.capabilities and not quirk("asks_anybody"):
            text(call, f"the client has no {capability}", isError=True)
        elif quirk("never_asks"):
            text(call, "never mind")
        else:
            answer = call.connection.ask(method, params, call)
            text(call, f"the client said {json.dumps(answer)}")

    return tool


SAMPLING = {
    "messages": [{"role": "user", "content": {"type": "text", "text": "say something"}}],
    "maxTokens": 100,
}
FORM = {
    "message": "who are you?",
    "requestedSchema": {
        "type": "object",
        "properties": {"name": {"type": "string"}},
        "required": ["name"],
    },
}


def missing_capability(call: Call, arguments: dict[str, Any]) -> None:
    server = call.connection.server
    known = call.capabilities
    if server.quirk("remembers_capabilities"):
        server.remembered = known = {**(server.remembered or {}), **known}
    if call.modern and "sampling" not in known:
        raise RpcError(-32021, "sampling is needed", {"requiredCapabilities": {"sampling": {}}})
    text(call, "all is there")


def changes(what: str) -> Tool:
    def tool(call: Call, arguments: dict[str, Any]) -> None:
        call.connection.server.changed(what)
        text(call, f"{what} changed")

    return tool


# -- input_required results -----------------------------------------------------------------------


def _sign(words: str) -> str:
    return hmac.new(SECRET, words.encode(), hashlib.sha256).hexdigest()


def asks(name: str, requests: dict[str, Any], *, state: bool = False) -> Tool:
    """A tool that requires input before it completes."""

    def tool(call: Call, arguments: dict[str, Any]) -> None:
        if not call.modern:
            text(call, "nothing to ask in this revision")
            return
        given = call.params.get("inputResponses", {})
        if not isinstance(given, dict):
            raise RpcError(-32602, "inputResponses is not an object")
        able = {
            key: request
            for key, request in requests.items()
            if _needs(request) in call.capabilities or call.connection.quirk("asks_anybody")
        }
        if not able:
            needed: dict[str, Any] = {_needs(request): {} for request in requests.values()}
            raise RpcError(-32021, "the client cannot answer", {"requiredCapabilities": needed})
        signature = _sign(name)
        told = call.params.get("requestState")
        forged = told is not None and not hmac.compare_digest(str(told), signature)
        if forged and not call.connection.quirk("believes_state"):
            raise RpcError(-32602, "requestState was tampered with")
        if set(able) <= set(given) and (told is not None or not state):
            text(call, "state-ok, thank you")
            return
        result: dict[str, Any] = {"resultType": "input_required", "inputRequests": able}
        if state:
            result["requestState"] = signature
        call.answer({"result": result})

    return tool


def _needs(request: dict[str, Any]) -> str:
    return "elicitation" if request["method"].startswith("elicitation") else "sampling"


ELICIT = {"method": "elicitation/create", "params": {"mode": "form", **FORM}}
SAMPLE = {"method": "sampling/createMessage", "params": SAMPLING}

TOOLS: dict[str, Tool] = {
    "echo": echo,
    "slow": slow,
    "fail": fail,
    "crash": crash,
    "print": print_text,
    "big": big,
    "tally": tally,
    "structured": structured,
    "nonfinite": nonfinite,
    "test_error_handling": fail,
    "test_tool_with_logging": logging,
    "test_logging_tool": logging,
    "test_tool_with_progress": progress,
    "test_sampling": _ask("sampling", "sampling/createMessage", SAMPLING),
    "test_elicitation": _ask("elicitation", "elicitation/create", FORM),
    "test_missing_capability": missing_capability,
    "test_trigger_tool_change": changes("tools"),
    "test_trigger_prompt_change": changes("prompts"),
    "test_input_required_result_elicitation": asks("elicitation", {"who": ELICIT}),
    "test_input_required_result_request_state": asks("state", {"who": ELICIT}, state=True),
    "test_input_required_result_tampered_state": asks("signed", {"who": ELICIT}, state=True),
    "test_input_required_result_capabilities": asks("both", {"who": ELICIT, "say": SAMPLE}),
    "json_schema_2020_12_tool": echo,
    "test_mirrored_arguments": mirrored,
    "test_reconnection": reconnection,
    **{
        name: fixed(name)
        for name in (
            "test_simple_text",
            "test_image_content",
            "test_audio_content",
            "test_embedded_resource",
            "test_multiple_content_types",
        )
    },
}
PATIENT = {
    "slow",
    "print",
    "test_tool_with_progress",
    "test_sampling",
    "test_elicitation",
    "test_reconnection",
}
