// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

// Go's own heap profile for leaks.go: RATE is the number of bytes for each sample, 512 KiB by default.
package main

import (
	"os"
	"runtime"
	"runtime/pprof"
	"strconv"
)

func init() {
	if rate, err := strconv.Atoi(os.Getenv("RATE")); err == nil {
		runtime.MemProfileRate = rate
	}
	profile = func(path string) {
		file, err := os.Create(path)
		if err == nil {
			err = pprof.WriteHeapProfile(file)
		}
		if err != nil {
			panic(err)
		}
		file.Close()
	}
}
