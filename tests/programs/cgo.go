// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

// Go that calls C, which calls Go, until it is killed.
package main

/*
#include <math.h>

extern void back(int n);

static double burn(int n)
{
	double sum = 0;

	for (int i = 0; i < n; i++)
		sum += sin(i) * cos(i);
	return sum;
}

static void through(int n)
{
	back(n);
}
#cgo LDFLAGS: -lm
*/
import "C"

func fib(n int) int {
	if n < 2 {
		return n
	}
	return fib(n-1) + fib(n-2)
}

//export back
func back(n C.int) {
	fib(int(n))
}

func main() {
	for {
		C.burn(20000)
		C.through(20)
		fib(20)
	}
}
