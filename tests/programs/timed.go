// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Calls of goroutines that change their threads and outgrow their stacks, and how long they took. Prints
// for each function: its calls, and microseconds. "open": then stays in a call.
package main

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

const goroutines = 8

var moved, grown atomic.Int64

//go:noinline
func sleep(micros int) int {
	tid := syscall.Gettid()
	time.Sleep(time.Duration(micros) * time.Microsecond)
	if syscall.Gettid() != tid {
		moved.Add(1)
	}
	return micros
}

//go:noinline
func deep(n int) int {
	var room [64]int
	if n == 0 {
		return 1
	}
	room[n%64] = n
	return deep(n-1) + room[(n+1)%64]
}

// As a number, which does not move with the stack.
//
//go:noinline
func addressOf(local *int) uintptr { return uintptr(unsafe.Pointer(local)) }

// Its stack moves within the call: a local variable has another address then.
//
//go:noinline
func grow(n int) int {
	var local int
	before := addressOf(&local)
	time.Sleep(time.Millisecond)
	sum := deep(n)
	if addressOf(&local) != before {
		grown.Add(1)
	}
	return sum
}

// Three calls of one function, each within the other.
//
//go:noinline
func nested(n int) int {
	time.Sleep(300 * time.Microsecond)
	if n == 0 {
		return 0
	}
	return nested(n-1) + 1
}

//go:noinline
func panics(n int) int {
	if n%2 == 0 {
		panic(n)
	}
	time.Sleep(2 * time.Millisecond) // long beside the probes, which the program's own figure has
	return n
}

//go:noinline
func never() {
	panic("it has no return")
}

func recovered(call func()) {
	defer func() { _ = recover() }()
	call()
}

// Calls @call in several goroutines at once, and prints how long all calls took that returned.
func measure(name string, calls int, call func(i int)) {
	var micros, nr atomic.Int64
	var group sync.WaitGroup
	for g := 0; g < goroutines; g++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for i := 0; i < calls; i++ {
				recovered(func() {
					begin := time.Now()
					call(i)
					micros.Add(time.Since(begin).Microseconds())
					nr.Add(1)
				})
				runtime.Gosched()
			}
		}()
	}
	group.Wait()
	fmt.Println(name, nr.Load(), micros.Load())
}

func main() {
	runtime.GOMAXPROCS(4)
	measure("sleep", 50, func(i int) { sleep(2500 + i) })
	measure("nested", 20, func(i int) { nested(2) })
	measure("panics", 40, func(i int) { panics(i) })
	for i := 0; i < 5; i++ {
		measure("grow", 1, func(int) { grow(20000) })
	}
	recovered(never)
	fmt.Println("moved", moved.Load(), grown.Load())
	if len(os.Args) > 1 {
		sleep(60_000_000)
	}
}
