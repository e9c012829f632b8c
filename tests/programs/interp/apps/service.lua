-- SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
-- A page for nginx.
local function render(nr)
	local rows = {}
	for row = 1, nr do
		rows[row] = string.format("<li>%09d</li>", row)
	end
	table.sort(rows, function(a, b) return a > b end)
	return table.concat(rows)
end
ngx.say(render(3000))
