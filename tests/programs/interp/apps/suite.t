# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# A test script for prove.
use strict;
use warnings;
use Test::More;

sub count_words {
	my %count;
	$count{$_}++ for map { lc } split /\W+/, shift;
	return \%count;
}

my $text = join ' ', map { "word$_ and Word$_" } 1 .. 2000;
is(count_words($text)->{"word$_"}, 2, "word $_") for 1 .. 300;
done_testing();
