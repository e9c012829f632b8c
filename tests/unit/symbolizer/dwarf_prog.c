// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What dwarf_matrix.py compiles in many ways (as C and as C++) and asks about. A comment "@x:" says
 * that this line is where the frame x of a probe's chain is, "probe(x)" makes the symbol probe_x.
 * dwarf_prog2.c is the other half: with LTO, its function ends up inside of ours.
 */
#define probe(x) __asm__ volatile(".globl probe_" #x "\nprobe_" #x ": nop")

#ifdef __cplusplus
#define EXTERN extern "C"
#else
#define EXTERN
#endif

EXTERN int other_half(int a);

#ifdef __cplusplus
namespace
{
namespace deep
{
#endif
static inline __attribute__((always_inline)) int inner(int a)
{
	probe(inner); /* @inner.0: */
	return a + 1;
}
#ifdef __cplusplus
}
using deep::inner;
}

class shape
{
      public:
#endif
	static inline __attribute__((always_inline)) int middle(int a)
	{
		int sum = a;
		{
			int more = inner(sum); /* @inner.1: */
			sum += more;
		}
		return sum;
	}
#ifdef __cplusplus
};
#define middle shape::middle
#endif

/*
 * Nobody calls it: with --gc-sections its addresses count from 0. It is so long that they, and its
 * lines, are then those of other functions.
 */
#define gap(size) __asm__ volatile(".skip " #size)

EXTERN int dropped(int a)
{
	gap(0x1000);
	gap(0x20);
	gap(0x20);
	gap(0x20);
	gap(0x20);
	gap(0x20);
	gap(0x20);
	gap(0x20);
	gap(0x20);
	gap(0x20);
	gap(0x20);
	gap(0x20);
	gap(0x20);
	gap(0x20);
	gap(0x20);
	return a;
}

EXTERN __attribute__((noinline)) int outer(int a)
{
	return middle(a) * 2; /* @inner.2: */
}

EXTERN __attribute__((cold, noinline)) int rarely(int a)
{
	probe(rarely); /* @rarely.0: */
	return a * 3;
}

EXTERN __attribute__((noinline)) int caller(int a)
{
	a = other_half(a); /* @other.1: */
	return a + 1;
}

#ifdef __cplusplus
static __attribute__((noinline)) int local(int a)
{
	auto lambda = [&](int b) __attribute__((noinline))
	{
		probe(lambda); /* @lambda.0: */
		return a + b;
	};

	return lambda(a) * lambda(2);
}
#endif

int main(int argc, char **argv)
{
	(void)argv;
#ifdef __cplusplus
	argc += local(argc);
#endif
	return outer(argc) + rarely(argc) + caller(argc) == 12345;
}
