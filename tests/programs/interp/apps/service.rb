# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# A service of WEBrick; prints its port.
require 'webrick'
server = WEBrick::HTTPServer.new(Port: 0, BindAddress: '127.0.0.1', AccessLog: [],
                                 Logger: WEBrick::Log.new(File::NULL))
def render(rows)
  rows.map { |row| "<li>#{row.to_s.rjust(9)}</li>" }.join
end
server.mount_proc('/') { |_, response| response.body = render((1..3000).to_a) }
puts server.listeners[0].addr[1]
$stdout.flush
server.start
