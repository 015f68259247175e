-- Builds the environment of a script and calls it. Runs in a fresh Lua state before the script.
--
-- The script gets a table of its own as its globals. It never sees a Python object: every function
-- of the host is wrapped in a Lua function, because the metatable of a Python object would give
-- access to the interpreter. A host function returns (true, value) or (false, message) and never
-- raises, so that no Python exception becomes a Lua error object.

local host = ...

local error, ipairs, pairs, pcall, rawget, select, tostring, type =
  error, ipairs, pairs, pcall, rawget, select, tostring, type
local load, setmetatable, getmetatable, xpcall = load, setmetatable, getmetatable, xpcall
local format, concat, traceback = string.format, table.concat, debug.traceback
local getinfo = debug.getinfo

-- Marks tables that are JSON arrays even if they are empty.
local array = { __name = "array" }

local function new_array()
  return setmetatable({}, array)
end

local function is_array(value)
  return getmetatable(value) == array
end

local function call(name)
  local ask = host[name]
  return function(...)
    local ok, value = ask(select("#", ...), ...)
    if not ok then
      error(value, 2)
    end
    return value
  end
end

local function copy(library, leave_out)
  local found = {}
  for name, value in pairs(library) do
    if not (leave_out and leave_out[name]) then
      found[name] = value
    end
  end
  return found
end

local function line_of(...)
  local parts = {}
  for position = 1, select("#", ...) do
    parts[position] = tostring((select(position, ...)))
  end
  return concat(parts, "\t")
end

local log = {}
for _, level in ipairs({ "debug", "info", "warn", "error" }) do
  local note = call("note_" .. level)
  log[level] = function(...)
    note(line_of(...))
  end
end

local json = {
  parse = call("json_parse"),
  encode = call("json_encode"),
  array = function(value)
    return setmetatable(value or {}, array)
  end,
}
json.decode = json.parse

local http = { get = call("http_get"), post = call("http_post"), put = call("http_put") }
local fs = { read = call("fs_read"), list = call("fs_list") }
local env = { get = call("env_get") }

local environment = {
  _VERSION = _VERSION,
  assert = assert,
  collectgarbage = function(option)
    if option ~= nil and option ~= "count" and option ~= "collect" then
      error("collectgarbage: only 'count' and 'collect' are available", 2)
    end
    return collectgarbage(option)
  end,
  error = error,
  getmetatable = function(value)
    if type(value) == "userdata" then
      return nil
    end
    return getmetatable(value)
  end,
  ipairs = ipairs,
  next = next,
  pairs = pairs,
  pcall = pcall,
  print = log.info,
  rawequal = rawequal,
  rawget = rawget,
  rawlen = rawlen,
  rawset = rawset,
  select = select,
  -- A finaliser would run after the script has ended.
  setmetatable = function(value, metatable)
    if type(metatable) == "table" and rawget(metatable, "__gc") ~= nil then
      error("setmetatable: __gc is not available", 2)
    end
    return setmetatable(value, metatable)
  end,
  tonumber = tonumber,
  tostring = tostring,
  type = type,
  xpcall = xpcall,
  coroutine = copy(coroutine),
  math = copy(math),
  string = copy(string, { dump = true }),
  table = copy(table),
  utf8 = copy(utf8),
  os = { clock = os.clock, date = os.date, difftime = os.difftime, time = os.time },
  base64 = { encode = call("base64_encode"), decode = call("base64_decode") },
  crypto = { sha256 = call("sha256"), hmac_sha256 = call("hmac_sha256") },
  env = env,
  fs = fs,
  http = http,
  json = json,
  log = log,
  sleep = call("sleep"),
}
environment._G = environment
-- Text only: crafted bytecode can break the interpreter.
environment.load = function(chunk, name, _, globals)
  return load(chunk, name, "t", globals == nil and environment or globals)
end
-- Methods of strings look here; without it they would reach the library with `dump`.
getmetatable("").__index = environment.string

local context = {
  search = call("search"),
  get = call("get"),
  sources = call("sources"),
  env = env,
  fs = fs,
  http = http,
  json = json,
  log = log,
}

-- The message of an error, with the place if the error is a table.
local function describe(problem)
  if type(problem) == "string" then
    return problem
  end
  if type(problem) == "table" then
    local metatable = getmetatable(problem)
    local has_text = type(metatable) == "table" and rawget(metatable, "__tostring") ~= nil
    local message = rawget(problem, "message")
    if type(message) == "string" then
      return message
    end
    if has_text then
      local ok, text = pcall(tostring, problem)
      if ok and type(text) == "string" then
        return text
      end
    end
    return "error object is a table without a message"
  end
  if type(problem) == "userdata" then
    return "not enough memory"
  end
  return format("error object is a %s value: %s", type(problem), tostring(problem))
end

local place
local function handler(problem)
  -- The line is lost when the error is not a string; find the innermost function of the script.
  for level = 2, 12 do
    local info = getinfo(level, "Sl")
    if not info then
      break
    end
    if info.what ~= "C" and info.source ~= "=prelude" then
      place = format("%s:%d", info.short_src, info.currentline)
      break
    end
  end
  return problem
end

local function protected(work)
  place = nil
  local ok, value = xpcall(work, handler)
  if ok then
    return true, value
  end
  local message = describe(value)
  if type(value) ~= "string" and place then
    message = place .. ": " .. message
  end
  return false, message
end

-- Loads the script and returns (true, its result), or (false, message).
local function run(source, name, global, wanted, config, arguments)
  context.config = config
  return protected(function()
    local chunk, problem = load(source, "@" .. name, "t", environment)
    if not chunk then
      error(problem, 0)
    end
    local returned = chunk()
    local found = rawget(environment, global)
    if found == nil and type(returned) == "table" then
      found = returned
    end
    if type(found) ~= "table" then
      error(format("%s: the script sets no global table %q", name, global), 0)
    end
    if wanted == "" then
      return found
    end
    local work = found[wanted]
    if type(work) ~= "function" then
      error(format("%s: %s.%s is not a function", name, global, wanted), 0)
    end
    if global == "agent" then
      return work(arguments[1], config, context)
    elseif global == "connector" then
      return work(config, context)
    end
    return work(arguments[1], context)
  end)
end

return run, new_array, is_array
