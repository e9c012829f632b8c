# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# A bit of everything, see rounds.c.
use strict;
use warnings;

my $chunk = 1000;
$| = 1;

sub spin {
	my $nr = shift;
	while ($nr) {
		$nr -= 1;
	}
}

sub seventy { spin(7 * $chunk); }

sub twenty { spin(2 * $chunk); }

sub ten { spin($chunk); }

sub nap { select(undef, undef, undef, 0.02); }

sub fetch {
	open(my $file, '<:raw', $_[0]) or die;
	while (sysread($file, my $bytes, 131072)) { }
	close($file);
}

sub store {
	open(my $file, '>:raw', $_[0]) or die;
	syswrite($file, 'x' x 4096);
	close($file);
}

sub tell { print "round\n"; }

sub round_of {
	seventy();
	twenty();
	ten();
	nap();
	fetch($ARGV[0]);
	store($ARGV[1]);
	main::tell();
}

round_of() while 1;
