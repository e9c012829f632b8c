# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# A bit of everything that an interpreter does, until it is killed.
def fib(n)
  n < 2 ? n : fib(n - 1) + fib(n - 2)
end

loop do
  fib(12)
  words = (1..100).to_h { |i| [i.to_s, format('%d-%.3f', i, i / 3.0)] }
  words.sort_by { |_, v| v }.map(&:first).join(' ').gsub(/(\d+) (\d+)/) { $2 + $1 }
  (3**200) % 7919
  [3, 1, 2].cycle.first(100).each_slice(3).map(&:sum)
end
