# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# A bit of everything, see rounds.c.
CHUNK = 1500
$stdout.sync = true

def spin(nr)
  while nr > 0
    nr -= 1
  end
end

def seventy
  spin(7 * CHUNK)
end

def twenty
  spin(2 * CHUNK)
end

def ten
  spin(CHUNK)
end

def nap
  sleep(0.02)
end

def fetch(path)
  File.open(path, 'rb') { |file| file.sysread(131_072) }
end

def store(path)
  File.open(path, 'wb') { |file| file.syswrite('x' * 4096) }
end

def tell
  $stdout.write("round\n")
end

def round_of
  seventy
  twenty
  ten
  nap
  fetch(ARGV[0])
  store(ARGV[1])
  tell
end

round_of while true
