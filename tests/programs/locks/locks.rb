# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Threads that wait for a lock and measure how long, others for an item.
# locks.rb SECONDS: writes to stderr, as JSON, nanoseconds by the function that waited.
$lock, $items, $spent, $over = Mutex.new, Queue.new, Hash.new(0), false

def now = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)

def lock_work
  since = now
  $lock.lock
  $spent['lock_work'] += now - since
  sleep 0.008
  $lock.unlock
end

def take_work
  $items.pop
end

threads = 3.times.map { Thread.new { until $over; lock_work; sleep 0.002; end } }
# Again and again: a wait that begins before the sampler knows the interpreter has no frames of Ruby.
Thread.new { loop { take_work } }
Thread.new { loop { sleep 0.05; $items << 1 } }
sleep ARGV[0].to_f
$over = true
threads.each(&:join)
STDERR.puts "{\"lock_work\": #{$spent['lock_work']}}"
