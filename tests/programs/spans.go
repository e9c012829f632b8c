// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Serves requests of three kinds in goroutines that change their threads, and measures them itself:
// "spans NR MICROS [MODE]". Of ten calls of handle() six are fast, three middle and one slow. Says for each
// kind: calls, and those that took at least MICROS; then, how many calls ended on another thread. Modes:
// "label" sets a label "request" during each call, another value each time; "panic" leaves each fast call by
// a panic. What has to be long for a goroutine to be seen in is so in slow calls only.
package main

import (
	"context"
	"fmt"
	"os"
	"runtime/pprof"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const goroutines = 4

var (
	sink, moved atomic.Int64
	nr, nrSlow  [3]atomic.Int64
	micros      int
	mode        string
)

//go:noinline
func burn(took time.Duration) {
	for end := time.Now().Add(took); time.Now().Before(end); {
		for i := 0; i < 1000; i++ {
			sink.Add(1)
		}
	}
}

//go:noinline
func serveFast() { burn(500 * time.Microsecond) }

//go:noinline
func serveMiddle() {
	burn(2 * time.Millisecond)
	time.Sleep(2 * time.Millisecond)
}

//go:noinline
func serveSlow() {
	burn(25 * time.Millisecond)
	time.Sleep(30 * time.Millisecond)
	burn(25 * time.Millisecond)
}

var serve = [3]func(){serveFast, serveMiddle, serveSlow}

//go:noinline
func handle(kind int) {
	serve[kind]()
	if mode == "panic" && kind == 0 {
		panic("left")
	}
	sink.Add(1)
}

// What the goroutine does between requests.
//
//go:noinline
func between() {
	burn(500 * time.Microsecond)
	time.Sleep(500 * time.Microsecond)
}

func measured(kind int) {
	began, tid := time.Now(), syscall.Gettid()
	defer func() {
		recover()
		nr[kind].Add(1)
		if time.Since(began) >= time.Duration(micros)*time.Microsecond {
			nrSlow[kind].Add(1)
		}
		if syscall.Gettid() != tid {
			moved.Add(1)
		}
	}()
	handle(kind)
}

func request(i int) {
	kind := 0
	if i%10 == 9 {
		kind = 2
	} else if i%10 >= 6 {
		kind = 1
	}
	if mode != "label" {
		measured(kind)
		return
	}
	labels := pprof.Labels("tenant", "acme", "request", fmt.Sprintf("r%d", i))
	pprof.Do(context.Background(), labels, func(context.Context) { measured(kind) })
}

func main() {
	var all sync.WaitGroup
	total, _ := strconv.Atoi(os.Args[1])
	micros, _ = strconv.Atoi(os.Args[2])
	if len(os.Args) > 3 {
		mode = os.Args[3]
	}
	for g := 0; g < goroutines; g++ {
		all.Add(1)
		go func(g int) {
			defer all.Done()
			for i := g * total / goroutines; i < (g+1)*total/goroutines; i++ {
				request(i)
				between()
			}
		}(g)
	}
	all.Wait()
	for kind := range nr {
		fmt.Println(nr[kind].Load(), nrSlow[kind].Load())
	}
	fmt.Println(moved.Load())
}
