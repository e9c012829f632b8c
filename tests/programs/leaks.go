// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

// leaks NR [PIECE]: as leaks.c. Pieces are slices of PIECE bytes. With leaks_profile.go beside it, a line of input that is
// not empty is the file to write Go's heap profile to.
package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
)

var piece = 1000
var profile func(path string)
var kept [][]byte
var account [8]int

func count(of, size int) {
	account[2*of] += size
	account[2*of+1]++
}

//go:noinline
func keep(of, nr int) {
	size := piece * (1 + nr%3)
	kept = append(kept, make([]byte, size))
	count(of, size)
}

//go:noinline
func layer_1(of, nr int) { keep(of, nr) }

//go:noinline
func layer_2(of, nr int) { layer_1(of, nr) }

//go:noinline
func much(nr int) { layer_2(0, nr) }

//go:noinline
func some(nr int) { layer_2(1, nr) }

//go:noinline
func little(nr int) { layer_2(2, nr) }

//go:noinline
func churn() int {
	var pieces [10][]byte
	for i := range pieces {
		pieces[i] = make([]byte, 2*piece)
		count(3, 2*piece)
	}
	return len(pieces[9])
}

func work(nr int) {
	for i := 0; i < nr; i++ {
		for k := 0; k < 10; k++ {
			if k < 6 {
				much(i)
			} else if k < 9 {
				some(i)
			} else {
				little(i)
			}
			churn()
		}
	}
}

func main() {
	nr, _ := strconv.Atoi(os.Args[1])
	if len(os.Args) > 2 {
		piece, _ = strconv.Atoi(os.Args[2])
	}
	fmt.Println("ready")
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		if in.Text() != "" {
			profile(in.Text())
		} else {
			work(nr)
		}
		for _, number := range account {
			fmt.Print(number, " ")
		}
		fmt.Println()
	}
}
