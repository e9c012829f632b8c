# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What an interpreter waits for, and reads and writes, until it is killed.
use strict;
use warnings;

sub deeper { my ($n, $do) = @_; return $n ? deeper($n - 1, $do) : $do->() }

sub files {
	open(my $file, '+>', undef) or die;
	print $file 'x' x 20000;
	seek($file, 0, 0);
	my @all = <$file>;
	open(my $lines, '<', '/etc/passwd') or die;
	my %users = map { split(/:/, $_, 2) } <$lines>;
}

sub pipes {
	pipe(my $in, my $out) or die;
	syswrite($out, 'x' x 100);
	sysread($in, my $text, 1000);
}

sub nap { select(undef, undef, undef, 0.001) }

sub child { my $text = `/bin/echo x`; }

while (1) {
	for (my $n = 0; $n < 40; $n += 5) {
		deeper($n, $_) for \&files, \&nap, \&pipes;
	}
	deeper(7, \&child);
}
