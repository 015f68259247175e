"""Lua tools: found, named, described, called and loaded again."""

from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from daemon.config.scripts import ScriptEntry
from daemon.lua.offering import Taken
from tests.support.scripts import executing, script_web, write
from tests.support.web import call

GREETING = """
tool = {
  name = "greet",
  description = "Greets a person",
  parameters = {
    { name = "who", required = true, description = "A name" },
    { name = "times", type = "integer", default = 1 },
    { name = "mood", enum = { "happy", "sad" } },
  },
}
function tool.execute(params, context)
  return { text = ("Hello " .. params.who .. " "):rep(params.times), mood = params.mood }
end
"""


async def test_a_script_is_listed_and_called_over_rest(tmp_path: Path) -> None:
    async with script_web(tmp_path, {"a": GREETING}) as server:
        listed = (await server.web.client.get("/tools/list")).json()["tools"]
        assert listed == [
            {
                "name": "greet",
                "description": "Greets a person",
                "builtin": False,
                "parameters": {
                    "type": "object",
                    "properties": {
                        "who": {"type": "string", "description": "A name"},
                        "times": {"type": "integer", "default": 1},
                        "mood": {"type": "string", "enum": ["happy", "sad"]},
                    },
                    "required": ["who"],
                    "additionalProperties": False,
                },
            }
        ]
        assert await server.call("greet", who="Ada", times=2, mood="sad") == (
            200,
            {"result": {"text": "Hello Ada Hello Ada ", "mood": "sad"}},
        )
        assert await server.call("greet", who="Ada") == (200, {"result": {"text": "Hello Ada "}})


@pytest.mark.parametrize("version", ["2024-11-05", "2025-06-18", "2025-11-25"])
async def test_a_script_is_listed_and_called_over_mcp(tmp_path: Path, version: str) -> None:
    async with script_web(tmp_path, {"a": GREETING}) as server:
        session = await server.web.open(version)
        answer = await server.web.post(call("greet", {"who": "Ada"}), session)
        result = answer.json()["result"]
        assert msgspec.json.decode(result["content"][0]["text"]) == {"text": "Hello Ada "}
        if version > "2025":
            assert result["structuredContent"] == {"result": {"text": "Hello Ada "}}
        refused = (await server.web.post(call("greet", {}), session)).json()
        assert "who: required field is missing" in str(refused)


async def test_a_failed_script_is_a_result_with_an_error_code_over_mcp(tmp_path: Path) -> None:
    scripts = {"bad": executing("error('no such day')"), "slow": executing("sleep(60)")}
    async with script_web(tmp_path, scripts) as server:
        for name, code in (("bad", "tool_error"), ("slow", "timeout")):
            answer = await server.web.modern("tools/call", {"name": name, "arguments": {}})
            result = answer.json()["result"]
            assert result["isError"] is True
            assert msgspec.json.decode(result["content"][0]["text"])["error"]["code"] == code


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "who: required field is missing"),
        ({"who": 1}, "who: expected string, got integer"),
        ({"who": None}, "who: expected string, got null"),
        ({"who": "x", "mood": "odd"}, "mood: 'odd' is not one of happy, sad"),
        ({"who": "x", "times": 1.5}, "times: expected integer, got number"),
        ({"who": "x", "wo": 1}, "wo: unknown field"),
    ],
)
async def test_wrong_arguments_are_refused_before_the_script_runs(
    tmp_path: Path, arguments: dict[str, Any], message: str
) -> None:
    async with script_web(tmp_path, {"a": GREETING}) as server:
        status, body = await server.call("greet", **arguments)
        assert (status, body["error"]["code"]) == (400, "bad_request")
        assert message in body["error"]["message"]


@pytest.mark.parametrize(
    ("body", "result"),
    [
        ("return nil", None),
        ("return 1", 1),
        ("return 1.5", 1.5),
        ("return 'text'", "text"),
        ("return {1, 2, nil, 4}", [1, 2, None, 4]),
        ("return {}", {}),
        ("return json.array()", []),
        ('return json.parse(\'{"a": [], "b": {}}\')', {"a": [], "b": {}}),
        ("return {a = {b = {1}}}", {"a": {"b": [1]}}),
        ("return {[1] = 'x', y = 'z'}", {"1": "x", "y": "z"}),
    ],
)
async def test_a_result_keeps_its_shape(tmp_path: Path, body: str, result: Any) -> None:
    async with script_web(tmp_path, {"a": executing(body)}) as server:
        assert await server.call("a") == (200, {"result": result})


async def test_a_script_cannot_take_the_name_of_a_built_in_tool(tmp_path: Path) -> None:
    named = "tool = {name = 'search'} function tool.execute() end"
    async with script_web(tmp_path, {"a": named}, Taken(tools=frozenset({"search"}))) as server:
        assert server.registry.specs() == []
        [problem] = server.offered.problems
        assert problem.reason == "the name search belongs to a built-in tool"


async def test_an_unusable_script_is_reported_and_the_others_are_offered(tmp_path: Path) -> None:
    scripts = {
        "good": executing("return 1"),
        "syntax": "tool = = 1",
        "empty": "",
        "endless": "while true do end",
        "name": "tool = {name = 'a b'}",
        "type": "tool = {parameters = {{name = 'x', type = 'date'}}}",
        "twice": "tool = {parameters = {{name = 'x'}, {name = 'x'}}}",
        "default": "tool = {parameters = {{name = 'x', type = 'integer', default = 'y'}}}",
    }
    async with script_web(tmp_path, scripts) as server:
        assert [spec.name for spec in server.registry.specs()] == ["good"]
        reasons = {Path(each.path).stem: each.reason for each in server.offered.problems}
        assert reasons == {
            "syntax": "syntax.lua:1: unexpected symbol near '='",
            "empty": 'empty.lua: the script sets no global table "tool"',
            "endless": "endless.lua: timed out after 0.5 seconds",
            "name": "name: must have 1 to 64 letters, digits, hyphens, underscores or dots",
            "type": "parameters.x: type 'date' is not one of string, integer, number, boolean,"
            " array, object",
            "twice": "parameters: x is declared twice",
            "default": "parameters.x: default: Expected `int`, got `str`",
        }


async def test_an_entry_gives_a_script_its_name_rights_and_configuration(tmp_path: Path) -> None:
    entry = ScriptEntry(
        name="ticket", path="other/x.lua", environment=("HOME",), config={"project": "OPS"}
    )
    body = executing("return {context.config.project, env.get('HOME') ~= nil, env.get('PATH')}")
    async with script_web(tmp_path, {"other/x": body}, tools=(entry,)) as server:
        assert await server.call("ticket") == (200, {"result": ["OPS", True]})


async def test_the_functions_of_a_script_use_the_rights_and_the_bank_of_the_caller(
    tmp_path: Path,
) -> None:
    body = """
      local rows = context.search("auth", { limit = 1 })
      local ok, problem = pcall(context.get, "2")
      return { rows = rows, body = context.get(rows[1].id).body, sources = context.sources(),
               problem = problem, wrong = select(2, pcall(context.search, "")) }
    """
    async with script_web(tmp_path, {"a": executing(body)}) as server:
        status, found = await server.call("a")
        assert status == 200, found
        assert found["result"] == {
            "rows": [{"id": "1", "title": "auth", "bank": "default"}],
            "body": "JWT tokens are signed",
            "sources": [{"name": "git", "doc_count": 1}],
            "problem": "get: document not found: 2",
            "wrong": "search: query: expected string of length >= 1",
        }


async def test_a_script_reads_files_in_its_own_folder_only(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    body = """
      local function try(path) return select(2, pcall(fs.read, path)) end
      return { inside = fs.read("data/x.txt"), up = try("../secret.txt"), link = try("link"),
               names = fs.list("data"), absolute = try("/etc/passwd"), none = try("none") }
    """
    scripts = {"a": executing(body), "data/x.txt": "text"}
    async with script_web(tmp_path, scripts) as server:
        (tmp_path / "tools" / "link").symlink_to(tmp_path / "secret.txt")
        status, found = await server.call("a")
        assert status == 200, found
        assert found["result"] == {
            "inside": "text",
            "names": [{"name": "x.txt", "is_dir": False}],
            "up": "fs.read: ../secret.txt: is outside the script's folder",
            "link": "fs.read: link: is outside the script's folder",
            "absolute": "fs.read: /etc/passwd: is outside the script's folder",
            "none": "fs.read: none: no such file",
        }


async def test_a_changed_script_is_loaded_again_and_clients_are_notified(tmp_path: Path) -> None:
    async with script_web(tmp_path, {"a": executing("return 1")}) as server:
        changed = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.offered.watch, changed.set)
            write(tmp_path / "tools", {"a": executing("return 22"), "b": executing("return 3")})
            with anyio.fail_after(10):
                await changed.wait()
            tasks.cancel_scope.cancel()
        assert await server.call("a") == (200, {"result": 22})
        assert await server.call("b") == (200, {"result": 3})
        (tmp_path / "tools" / "a.lua").unlink()
        await server.offered.load()
        assert (await server.call("a"))[0] == 404


async def test_nothing_of_a_call_reaches_the_next_one(tmp_path: Path) -> None:
    body = "counter = (counter or 0) + 1; string.rep = nil; return counter"
    async with script_web(tmp_path, {"a": executing(body)}) as server:
        for _ in range(3):
            assert await server.call("a") == (200, {"result": 1})
