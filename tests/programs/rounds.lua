-- SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
-- A bit of everything, see rounds.c. Lua cannot sleep: it waits for somebody who can.
local chunk = tonumber(arg[3])

function spin(nr)
  while nr > 0 do
    nr = nr - 1
  end
end

function seventy()
  spin(7 * chunk)
end

function twenty()
  spin(2 * chunk)
end

function ten()
  spin(chunk)
end

function nap()
  local sleeper = io.popen('sleep 0.02')
  sleeper:read('*a')
  sleeper:close()
end

function fetch(path)
  local file = io.open(path, 'rb')
  local bytes = file:read('*a')
  file:close()
  return #bytes
end

function store(path)
  local file = io.open(path, 'wb')
  file:write(string.rep('x', 4096))
  file:close()
end

function tell()
  io.stdout:write('round\n')
  io.stdout:flush()
end

function round_of()
  seventy()
  twenty()
  ten()
  nap()
  fetch(arg[1])
  store(arg[2])
  tell()
end

while true do
  round_of()
end
