#!/usr/bin/env ruby
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# server.py once more, in Ruby: server.rb REGION LIBRARY
require 'fiddle'
require 'json'
require 'socket'

REGION, library = ARGV
SEARCH_SECONDS = { 'bike' => 0.02, 'scooter' => 0.03, 'car' => 0.04 }.freeze
DRIVERS = Mutex.new
COUNTING = Mutex.new
COUNTS = Hash.new(0.0)

# include/stackbpf-labels.h
module Labels
  def self.load(path)
    @set = Fiddle::Function.new(Fiddle.dlopen(path)['sb_label_set'], [Fiddle::TYPE_VOIDP, Fiddle::TYPE_VOIDP],
                                Fiddle::TYPE_INT)
  end

  def self.set(key, value)
    err = @set.call(key, value)
    raise SystemCallError.new(key, -err) unless err.zero?
  end

  # For the block.
  def self.with(labels)
    labels.each { |key, value| set(key.to_s, value) }
    yield
  ensure
    labels.each_key { |key| set(key.to_s, nil) }
  end
end
Labels.load(File.expand_path(library))

def thread_time
  Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)
end

def count(vehicle, function, seconds)
  COUNTING.synchronize { COUNTS["#{vehicle} #{function}"] += seconds }
end

def mutex_lock(seconds)
  DRIVERS.lock
  start = now = thread_time
  while now < start + seconds
    i = 0
    i += 1 while i < 10_000
    now = thread_time
  end
  DRIVERS.unlock
  count('car', 'mutex_lock', now - start)
end

def check_driver_availability(seconds)
  start = now = thread_time
  while now < start + seconds / 2
    i = 0
    i += 1 while i < 10_000
    now = thread_time
  end
  count('car', 'check_driver_availability', now - start)
  mutex_lock(seconds * 5) if REGION == 'eu-north'
end

def find_nearest_vehicle(vehicle, seconds)
  start = now = thread_time
  while now < start + seconds
    i = 0
    i += 1 while i < 10_000
    now = thread_time
  end
  count(vehicle, 'find_nearest_vehicle', now - start)
  check_driver_availability(seconds) if vehicle == 'car'
end

def order_bike
  find_nearest_vehicle('bike', SEARCH_SECONDS['bike'])
end

def order_scooter
  find_nearest_vehicle('scooter', SEARCH_SECONDS['scooter'])
end

def order_car
  find_nearest_vehicle('car', SEARCH_SECONDS['car'])
end

def order(vehicle)
  # What follows is done for this vehicle, in this region: samples of the thread say so.
  Labels.with(vehicle: vehicle, region: REGION) { send("order_#{vehicle}") }
end

def answer(client, status, text)
  client.write("HTTP/1.1 #{status}\r\nContent-Length: #{text.bytesize}\r\n\r\n#{text}")
end

def serve(client)
  while (line = client.gets)
    path = line.split[1].to_s.delete_prefix('/')
    nil until client.gets.to_s.strip.empty?
    if SEARCH_SECONDS.key?(path)
      order(path)
      answer(client, '200 OK', "one #{path}, #{REGION}\n")
    elsif path == 'count'
      answer(client, '200 OK', COUNTING.synchronize { JSON.generate(COUNTS) })
    else
      answer(client, '404 Not Found', "there are /bike, /scooter and /car\n")
    end
  end
rescue SystemCallError, IOError
  nil # the client has gone
ensure
  client.close
end

server = TCPServer.new('127.0.0.1', 0)
puts server.addr[1]
$stdout.flush
loop { Thread.new(server.accept) { |client| serve(client) } }
