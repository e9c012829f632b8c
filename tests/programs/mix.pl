# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# A bit of everything that an interpreter does, until it is killed.
use strict;
use warnings;

sub fib { my $n = shift; return $n < 2 ? $n : fib($n - 1) + fib($n - 2) }

while (1) {
	fib(12);
	my %words = map { $_ => sprintf('%d-%.3f', $_, $_ / 3) } 1 .. 100;
	my @sorted = sort { $words{$a} cmp $words{$b} } keys %words;
	my $text = join ' ', map { "$_=$words{$_}" } @sorted;
	$text =~ s/(\d+)=(\w+)/$2 . length($1)/ge;
	my $packed = unpack 'H*', pack 'N*', 1 .. 100;
}
