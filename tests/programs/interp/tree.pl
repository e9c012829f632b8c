# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What tests/live/interp_perl.py looks at. tree.pl spin|wait|threads: each way to be called, again and
# again, with 70, 20 and 10 parts of the time. The first time, each says how it came there, by caller():
# "parts name:line;...", root first. Rounds of work differ in length; it says what they took by the clock of
# the CPU.
use strict;
use warnings;
use List::Util ();
use Time::HiRes qw(clock_gettime CLOCK_PROCESS_CPUTIME_ID);

my $mode = shift // 'spin';
my $is_told;
my $clock = CLOCK_PROCESS_CPUTIME_ID;
my ($scale, $nr_rounds, $said) = (1, 0, 0);
my %spent;
our $parts;

# How we came to the caller, root first: each frame with the line where it is.
sub tell_stack {
	my @frames;

	for (my $i = 1; my @call = caller($i); $i++) {
		unshift @frames, $call[3] . ':' . (caller($i - 1))[2];
	}
	my $depth = 0;
	$depth++ while caller($depth);
	unshift @frames, '{main}:' . (caller($depth - 1))[2];
	print "$parts ", join(';', @frames), "\n";
}

sub unit { $is_told or tell_stack(); if ($mode eq 'wait') { select undef, undef, undef, $_[0] / 1000 } else { my $t = clock_gettime($clock); my $s = 0; $s += $_ & 3 for 1 .. 2000 * $scale * $_[0]; $spent{$parts} += clock_gettime($clock) - $t } }

# 70 parts: deep down.
sub down {
	my ($n) = @_;
	return unit($parts) unless $n;
	down($n - 1);
}

# 20 parts: by what C calls.
sub Foo::less { unit($parts); $a <=> $b }
sub Foo::Tie::TIESCALAR { return bless [], shift }
sub Foo::Tie::FETCH { main::unit($parts); 1 }
sub Foo::End::DESTROY { main::unit($parts) }
{
	package Foo::Plus;
	use overload '+' => sub { main::unit($main::parts); 1 }, '""' => sub { 'x' };
}
sub in_regex { unit($parts) }

sub callbacks {
	my $none;

	$parts = 2;
	my @sorted = sort { Foo::less() } 2, 1;
	@sorted = sort Foo::less 2, 1;
	@sorted = sort { eval { unit($parts); 1 }; $a <=> $b } 2, 1;
	@sorted = sort { eval { $none = bless([], 'Foo::Plus') + 1 }; $a <=> $b } 2, 1;
	tie my $tied, 'Foo::Tie';
	$none = "$tied";
	$none = bless([], 'Foo::Plus') + 1;
	{ my $end = bless [], 'Foo::End'; }
	List::Util::first { unit($parts); 1 } 1, 2;
	'x' =~ /x(?{ in_regex() })/;
	$_ = 1 for map { unit($parts); 1 } 1;
	kill USR1 => $$ unless $mode eq 'threads';
}

# 10 parts: from code without a name.
my $closure = do { my $x = 1; sub { unit($parts + 0 * $x) } };

sub nameless {
	$parts = 10;
	$closure->();
}

$SIG{USR1} = sub { eval { unit($parts) } };

sub round {
	$parts = 70;
	down(5);
	callbacks();
	eval "nameless(); 1" or die $@;
	$scale = 0.5 + $nr_rounds++ * 7919 % 1000 / 1000;
}

sub rounds {
	while (1) {
		round();
		print "told\n" unless $is_told;
		$is_told = 1;
		next if $mode eq 'wait' or clock_gettime($clock) < $said + 0.05;
		$said = clock_gettime($clock);
		printf "spent main::down %.0f main::callbacks %.0f main::nameless %.0f\n",
			map { 1e6 * $spent{$_} } 70, 2, 10;
	}
}

$| = 1;
if ($mode eq 'threads') {
	require threads;
	print "told\n";
	threads->create(sub { $is_told = 1; round() while 1 })->join();
}
rounds();
