"""`recalld tool`: init, test and list."""

import json
from pathlib import Path

from tests.support.processes import recalld


def configured(home: Path) -> Path:
    """A home whose tools are in the folder `tools`."""
    (home / "config.toml").write_text("[tools]\ndir = 'tools'\ntimeout = 1\n")
    (home / "tools").mkdir()
    return home / "tools"


def test_init_writes_a_tool_that_is_listed_and_leaves_files_alone(tmp_path: Path) -> None:
    folder = configured(tmp_path)
    made = recalld(tmp_path, "tool", "init", "find")
    assert (made.returncode, made.stdout) == (0, f"{folder}/find.lua\n")
    again = recalld(tmp_path, "tool", "init", "find")
    assert (again.returncode, "exists already" in again.stderr) == (64, True)
    assert recalld(tmp_path, "tool", "init", "a b").returncode == 64
    listed = recalld(tmp_path, "tool", "list", "--json")
    assert listed.returncode == 0, listed.stderr
    tools = {tool["name"]: tool["builtin"] for tool in json.loads(listed.stdout)["tools"]}
    assert (tools["find"], tools["search"]) == (False, True)


def test_list_reports_a_script_that_cannot_be_used(tmp_path: Path) -> None:
    folder = configured(tmp_path)
    (folder / "bad.lua").write_text("x = = 1")
    (folder / "get.lua").write_text("tool = {} function tool.execute() end")
    listed = recalld(tmp_path, "tool", "list")
    assert listed.returncode == 1
    assert f"{folder}/bad.lua: bad.lua:1: unexpected symbol near '='" in listed.stderr
    assert f"{folder}/get.lua: the name get belongs to a built-in tool" in listed.stderr


def test_test_prints_result_time_and_memory(tmp_path: Path) -> None:
    folder = configured(tmp_path)
    path = folder / "add.lua"
    path.write_text(
        "tool = { parameters = { { name = 'a', type = 'integer', required = true },"
        " { name = 'word' } } }\n"
        "function tool.execute(params) log.info('adding') return { sum = params.a + 1,"
        " word = params.word } end"
    )
    done = recalld(tmp_path, "tool", "test", str(path), "--param", "a=2", "--param", "word=x=y")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"sum": 3, "word": "x=y"}
    assert "info: adding\n" in done.stderr
    assert " ms, " in done.stderr
    assert " KiB of Lua memory" in done.stderr
    found = json.loads(
        recalld(tmp_path, "tool", "test", str(path), "--param", "a=2", "--json").stdout
    )
    assert found["result"] == {"sum": 3}
    assert found["seconds"] > 0
    assert found["memory_bytes"] > 10_000


def test_test_fails_in_the_words_that_a_client_gets(tmp_path: Path) -> None:
    path = configured(tmp_path) / "bad.lua"
    path.write_text(
        "tool = { parameters = { { name = 'n', required = true } } }\n"
        "function tool.execute(params, context)\n"
        "  if params.n == 'sleep' then sleep(60) end\n"
        "  if params.n == 'search' then local rows = context.search('x') end\n"
        "  error('no luck') end"
    )
    for param, reason in (
        ((), "n: required field is missing"),
        (("--param", "n=fail"), "bad.lua:5: no luck"),
        (("--param", "n=sleep"), "bad.lua: timed out after 1 seconds"),
        (("--param", "n=search"), "search: no daemon is listening"),
    ):
        done = recalld(tmp_path, "tool", "test", str(path), *param)
        assert (done.returncode, reason in done.stderr) == (1, True), done.stderr
    assert recalld(tmp_path, "tool", "test", str(path), "--param", "n").returncode == 64
    missing = recalld(tmp_path, "tool", "test", str(tmp_path / "none.lua"))
    assert (missing.returncode, "No such file" in missing.stderr) == (1, True)
