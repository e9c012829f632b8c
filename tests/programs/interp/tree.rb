# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Calls that are known, for tests/live/interp_ruby.py: tree.rb MODE. "@name" in a comment marks lines that
# a frame of that name may be at. Runs with Ruby 2.5 and later.
$stdout.sync = true

def forever
  while true # @forever
    yield # @forever
  end
end

module App
  module Mixed
    def mixed
      super # @mixed_super
    end
  end

  class Base
    def mixed
      work # @mixed
    end

    def work(rounds = 20_000) # @work
      i = 0 # @work
      while i < rounds # @work
        i += 1 # @work
      end # @work
    end # @work
  end

  class Work < Base
    include Mixed

    def a(n = 10_000) # @a
      i = 0 # @a
      while i < 7 * n # @a
        i += 1 # @a
      end # @a
    end # @a

    def b(n = 10_000) # @b
      i = 0 # @b
      while i < 2 * n # @b
        i += 1 # @b
      end # @b
    end # @b

    def c(n = 10_000) # @c
      i = 0 # @c
      while i < 1 * n # @c
        i += 1 # @c
      end # @c
    end # @c

    def deep(n)
      return work if n.zero? # @deepest
      deep(n - 1) # @deep
    end

    def mixed
      super # @mixed_own
    end

    def rescued
      raise 'x'
    rescue RuntimeError
      work # @rescued
    end

    def evaluated
      eval('work', binding, 'inner.rb', 7) # @evaluated
    end

    def method_missing(name, *args)
      name == :nothing ? work : super # @missing
    end

    define_method(:dynamic) { work } # @dynamic
  end

  OBJECT = Work.new

  SPENT = [0, 0, 0] # us in a, b, c
  ROUNDS = [0, 0] # how many there were; when it said what they took

  def self.clock_us
    Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :microsecond) # @clock
  end

  # 70, 20 and 10 parts of one piece of work. Rounds differ in length, and it says what they took.
  def self.split
    n = 5000 + ROUNDS[0] * 7919 % 10_000
    ROUNDS[0] += 1
    start = clock_us # @split_clock
    OBJECT.a(n) # @split_a
    after_a = clock_us # @split_clock
    OBJECT.b(n) # @split_b
    after_b = clock_us # @split_clock
    OBJECT.c(n) # @split_c
    after_c = clock_us # @split_clock
    SPENT[0] += after_a - start
    SPENT[1] += after_b - after_a
    SPENT[2] += after_c - after_b
    return if after_c - ROUNDS[1] < 50_000
    ROUNDS[1] = after_c
    puts "spent App::Work#a #{SPENT[0]} App::Work#b #{SPENT[1]} App::Work#c #{SPENT[2]}" # @split_says
  end

  def self.blocks
    [1].each do |x| # @blocks
      { x => 2 }.each_pair do |k, v| # @blocks_1
        1.times { OBJECT.work } # @blocks_2
      end
    end
  end

  def self.sorts
    [3, 1].sort { |x, y| OBJECT.work; x <=> y } # @sorts
  end

  def self.replaced
    'ab'.gsub(/[ab]/) { |x| OBJECT.work; x } # @replaced
  end

  def self.fibers
    fiber = Fiber.new do
      OBJECT.deep(2) # @fiber
      Fiber.yield 1
      OBJECT.work # @fiber_again
    end
    fiber.resume
    fiber.resume
  end

  def self.enumerator
    each = Enumerator.new do |y|
      OBJECT.work # @enumerator
      y << 1
    end
    each.next
  end

  def self.nap
    sleep 0.002 # @nap
  end

  def self.reading(pipe)
    [1].map { pipe.read(1) } # @reading
  end

  # What Ruby says of itself, and then a wait in the same place.
  def self.trace
    [1].each do
      caller_locations(0).each { |at| puts "#{at.label} #{at.lineno}" }; puts 'end'; STDIN.gets # @trace
    end
  end
end

object = App::OBJECT
def object.alone
  work # @alone
end
nameless = Class.new(App::Base) do
  def within
    work # @within
  end
end.new

puts 'ready' unless ARGV[0] == 'threads'
case ARGV[0]
when 'split' then forever { App.split } # @main
when 'all'
  forever do # @main
    object.deep(40) # @main
    App.blocks # @main
    App.sorts # @main
    App.replaced # @main
    object.mixed # @main
    object.rescued # @main
    object.evaluated # @main
    object.nothing # @main
    object.dynamic # @main
    object.alone # @main
    nameless.within # @main
    App.fibers # @main
    App.enumerator # @main
  end
when 'nap' then forever { App.nap } # @main
when 'reading'
  pipe, writer = IO.pipe
  Thread.new { forever { writer.write('x'); sleep 0.002 } }.name = "w#{ARGV[1]}"
  forever { App.reading(pipe) } # @main
when 'threads' # as many as can be told apart, while the main thread sleeps
  %w[a b c].each do |which|
    Thread.new { forever { App::OBJECT.send(which) } }.name = "t#{which}#{ARGV[1]}" # @thread
  end
  sleep 0.001 until Thread.list.all? { |thread| thread.status }
  puts 'ready'
  sleep
when 'trace' then App.trace # @main
end
