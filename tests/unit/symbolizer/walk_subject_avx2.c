// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Vectors of 32 bytes on the stack: the compiler aligns rsp, and finds its caller by r10 and
 * rbp. */
#include <immintrin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "walk_subject.h"

enum { N = 24 };

static float a[N][N], b[N][N], c[N][N];

static __attribute__((noinline)) void use(__m256 *v, size_t n)
{
	__asm__ volatile("" : : "r"(v), "r"(n) : "memory");
}

static __attribute__((noinline)) float kernel(size_t n, int depth)
{
	__m256 sums[4] __attribute__((aligned(64)));
	volatile char *extra = __builtin_alloca(n);
	size_t i, k, x;

	extra[0] = (char)n;
	memset(sums, 0, sizeof(sums));
	for (i = 0; i < N; i++)
		for (k = 0; k < N; k++)
			for (x = 0; x < N; x += 8) {
				__m256 row = _mm256_loadu_ps(&b[k][x]);

				row = _mm256_mul_ps(_mm256_set1_ps(a[i][k]), row);
				sums[x / 8] = _mm256_add_ps(sums[x / 8], row);
				_mm256_storeu_ps(&c[i][x], row);
			}
	use(sums, 4);
	return sums[0][0] + (depth ? kernel(n + 8, depth - 1) : 0.0f);
}

/* Without alloca(): rsp itself is put back. */
static __attribute__((noinline)) double fixed(const double *v, int x, int y)
{
	double local[16] __attribute__((aligned(32)));
	int i;

	for (i = 0; i < 16; i++)
		local[i] = v[i] * x + y;
	use((__m256 *)local, 4);
	return local[3] + local[7];
}

static int compare(const void *x, const void *y)
{
	double sum[16] = { 1 };

	return fixed(sum, 1, 2) < 1e9 ? *(const int *)x - *(const int *)y : 0;
}

int main(void)
{
	int numbers[] = { 5, 3, 8, 1, 9, 2, 7 };
	size_t i;

	if (!__builtin_cpu_supports("avx2")) {
		puts("skipped: no AVX2");
		return 77;
	}
	for (i = 0; i < N; i++)
		a[i][i] = b[i][N - 1 - i] = (float)i;
	subject_begin();
	for (i = 0; i < 3; i++)
		kernel(i * 40 + 1, (int)i);
	qsort(numbers, sizeof(numbers) / sizeof(numbers[0]), sizeof(numbers[0]), compare);
	subject_end();
	return 0;
}
