// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

// A bit of everything that the language does, until it is killed.
package main

import (
	"crypto/sha256"
	"fmt"
	"sort"
	"strings"
	"time"
)

func fib(n int) int {
	if n < 2 {
		return n
	}
	return fib(n-1) + fib(n-2)
}

func round(words chan<- string) {
	fib(16)
	list := make([]string, 100)
	for i := range list {
		list[i] = fmt.Sprintf("%d-%.3f", i, float64(i)/3)
	}
	sort.Slice(list, func(i, j int) bool { return list[i] < list[j] })
	sum := sha256.Sum256([]byte(strings.Join(list, " ")))
	words <- fmt.Sprint(sum, time.Now())
}

func main() {
	words := make(chan string)
	go func() {
		for {
			round(words)
		}
	}()
	for range words {
	}
}
