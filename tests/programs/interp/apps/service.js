// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// A service of Node.js; prints its port.
const render = (rows) => rows.map((row) => `<li>${JSON.stringify({ row })}</li>`).join('');
const server = require('http').createServer((request, response) =>
	response.end(render(Array.from({ length: 3000 }, (_, i) => i))));
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
