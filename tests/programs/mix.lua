-- SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
-- A bit of everything that an interpreter does, until it is killed. Nothing of C calls back into
-- Lua: what LuaJIT's assembler says on its callers is wrong in the epilogue of such calls.
local function fib(n) return n < 2 and n or fib(n - 1) + fib(n - 2) end

while true do
	fib(12)
	local words = {}
	for i = 1, 100 do words[i] = string.format('%d-%.3f', i, i / 3) end
	table.sort(words)
	local text = table.concat(words, ' ')
	text:gsub('(%d+)-(%d)', '%2%1')
	local co = coroutine.wrap(function() for i = 1, 10 do coroutine.yield(i) end end)
	for _ = 1, 10 do co() end
	pcall(error, 'x')
end
