-- SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
-- A known tree of calls for LuaJIT and all versions of Lua, which says by debug.traceback() how it came
-- to where it spends its time: 70 % in leaf, 20 % below the callback of table.sort(), 10 % by recursion.
-- Rounds differ in length; what they took is said by os.clock(), which is that of the CPU.
--	tree.lua spin|block
local mode = arg[1]
local is_telling = true
local scale = 1
local spent = { leaf = 0, compare = 0, down = 0 }
local Shape = {}
Shape.__index = Shape

local function tell(part)
  if is_telling then
    print(part, (debug.traceback("", 2):gsub("%s*\n%s*", ";")))
  end
end

local function burn(units)
  local x = 0
  for i = 1, units * 1000 * scale do
    x = x + (i % 7) * units
  end
  return x
end

function Shape:leaf(units)
  tell("leaf")
  return burn(units) + 0
end

local function compare(a, b)
  tell("compare")
  burn(a * 0 + 20)
  return a < b
end

local function down(n)
  if n > 0 then
    return down(n - 1) + 1
  end
  tell("down")
  return burn(300) + 0
end

function steps()
  local shape = setmetatable({}, Shape)
  local begin = os.clock()
  shape:leaf(2100)
  local after_leaf = os.clock()
  local nr = 0
  local list = { 1, 2 }
  while nr < 30 do
    table.sort(list, function(a, b) nr = nr + 1; compare(a, b); return a < b end)
  end
  local after_compare = os.clock()
  down(5)
  spent.leaf = spent.leaf + after_leaf - begin
  spent.compare = spent.compare + after_compare - after_leaf
  spent.down = spent.down + os.clock() - after_compare
  return nr
end

local function wait()
  tell("wait")
  io.read()
  return 1
end

local function guarded()
  local ok, err = pcall(mode == "block" and wait or steps)
  if not ok then error(err) end
  return ok
end

local co = coroutine.wrap(function()
  while true do
    guarded()
    coroutine.yield(1)
  end
end)

local nr_rounds, said = 0, 0
while true do
  co() if is_telling then print("main", debug.traceback("", 1):match(":%d+:")) end
  if is_telling then
    print("ready")
    io.stdout:flush()
  end
  is_telling = false
  nr_rounds = nr_rounds + 1
  scale = 0.5 + nr_rounds * 7919 % 1000 / 1000
  if mode == "spin" and os.clock() - said > 0.05 then
    said = os.clock()
    io.write(string.format("spent leaf %.0f compare %.0f down %.0f\n", spent.leaf * 1e6, spent.compare * 1e6,
      spent.down * 1e6))
    io.stdout:flush()
  end
end
