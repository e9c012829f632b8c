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

// In a goroutine of its own, whose stack has to grow for it.
func deep(n int) int {
	var room [512]int
	if n == 0 {
		return 1
	}
	room[n] = n
	return deep(n-1) + room[n+1]
}

func round(words chan<- string) {
	fib(16)
	grown := make(chan int)
	go func() { grown <- deep(50) }()
	<-grown
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
