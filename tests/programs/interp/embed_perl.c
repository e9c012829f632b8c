// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* embed_perl LIBPERL: a perl inside of a program, which calls Perl again and again when the
 * program's own main part has ended. By dlopen(3), so that it needs no headers of Perl. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

#define SUB(type, name, ...) type (*name)(__VA_ARGS__) = (type(*)(__VA_ARGS__))dlsym(lib, #name)

static char program[] =
	"sub main::unit { my $s = 0; $s += $_ & 3 for 1 .. 20000 } "
	"sub main::called { eval { unit() }; my @x = sort { unit(); $a <=> $b } 2, 1 } 1";

__attribute__((noinline)) static void call_perl(void *perl,
						void *(*eval)(void *, const char *, int))
{
	eval(perl, "main::called()", 0);
	__asm__ volatile("");
}

int main(int argc, char **argv, char **env)
{
	char *args[] = { "", "-e", program, NULL };
	void *lib = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) : NULL, *perl;

	if (!lib)
		return 77;

	SUB(void, Perl_sys_init3, int *, char ***, char ***);
	SUB(void *, perl_alloc, void);
	SUB(void, perl_construct, void *);
	SUB(int, perl_parse, void *, void *, int, char **, char **);
	SUB(int, perl_run, void *);
	SUB(void *, Perl_eval_pv, void *, const char *, int);

	if (!Perl_sys_init3 || !perl_alloc || !perl_construct || !perl_parse || !perl_run ||
	    !Perl_eval_pv)
		return 77;
	Perl_sys_init3(&argc, &argv, &env);
	perl = perl_alloc();
	perl_construct(perl);
	if (perl_parse(perl, NULL, 3, args, NULL) || perl_run(perl))
		return 1;
	puts("told");
	fflush(stdout);
	for (;;)
		call_perl(perl, Perl_eval_pv);
}
