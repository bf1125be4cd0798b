#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# A level in a third language without an SDK: second(relu(first(x))) in plain Perl, the whole of docs/protocol.md included.
use strict; use warnings;
use JSON::PP; use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC CLOCK_PROCESS_CPUTIME_ID);

my $born = now();
open(my $answers, '>&', \*STDOUT) or die $!; open(STDOUT, '>&', \*STDERR) or die $!;    # rule 2
binmode $answers; $answers->autoflush(1);
my $json = JSON::PP->new->canonical;
my ($bundle, %weights, @ring, $x, $y, $first_ns, %retained);
my @ops = qw(hello load weights inputs prove warm_up measure result memory unload bye);

sub now { int(1e9 * clock_gettime($_[0] // CLOCK_MONOTONIC)) }
sub refuse { die {code => $_[0], what => $_[1], hint => $_[2] // ''} }
sub is_count { defined $_[0] && !ref $_[0] && $_[0] =~ /^\d+\z/ }

sub read_tensors {                                                        # safetensors: length, JSON header, raw tensors
    open(my $file, '<:raw', $_[0]) or refuse('failed', "$_[0]: $!"); local $/; my $bytes = <$file>;
    my $length = unpack 'Q<', $bytes; my $header = $json->decode(substr $bytes, 8, $length); my %tensors;
    for my $name (grep { $_ ne '__metadata__' } keys %$header) {
        my ($from, $to) = @{$header->{$name}{data_offsets}};
        $tensors{$name} = [unpack 'f<*', substr $bytes, 8 + $length + $from, $to - $from];
    }
    return \%tensors;
}
sub write_outputs { my ($path, %results) = @_; my ($header, $body) = ({}, '');
    for (sort keys %results) { my $at = length $body; $body .= pack 'f<*', @{$results{$_}};
        $header->{$_} = {dtype => 'F32', shape => [@{$results{$_}} / 4, 4], data_offsets => [$at, length $body]} }
    my $text = $json->encode($header); open(my $file, '>:raw', $path) or refuse('failed', "$path: $!");
    print $file pack('Q<', length $text), $text, $body; close $file or refuse('failed', "$path: $!");
}
sub load_weights { my ($set) = @_; my $new = read_tensors("$bundle/weights/$set.safetensors");
    my $names = join ' ', sort keys %$new;
    refuse('unsupported', "only the network of examples/tiny_mlp.py, not one with the weights " . substr $names, 0, 80) if $names ne 'first.bias first.weight second.bias second.weight';
    %weights = %$new;
}
sub linear { my ($in, $w, $b) = @_; my $width = @$w / @$b; my @out;
    for (my $row = 0; $row < @$in; $row += $width) {
        for my $o (0 .. $#$b) { my $sum = $b->[$o]; $sum += $in->[$row + $_] * $w->[$o * $width + $_] for 0 .. $width - 1; push @out, $sum } }
    return \@out;
}
sub run { my $inner = linear($x, @weights{'first.weight', 'first.bias'}); $_ = $_ > 0 ? $_ : 0 for @$inner; $y = linear($inner, @weights{'second.weight', 'second.bias'}) }
sub iterate { my $t0 = now(); $x = $ring[$_[0]]; my $t1 = now(); run(); my $t2 = now(); my $result = [@$y]; my $t3 = now(); $first_ns //= $t3 - $t0; return ($t3 - $t0, $t2 - $t1, $result) }
sub indices { refuse('bad_request', 'send load and inputs first') if !@ring;
    my $list = $_[0]{indices}; refuse('bad_request', 'indices: a list of ring indices') if ref $list ne 'ARRAY' || grep { !is_count($_) || $_ >= @ring } @$list; return @$list }

my %do = (
    hello => sub { {api => 2, level => 'perl', language => 'perl', versions => {perl => "$^V"}, build => {type => 'release', flags => ''}, devices => ['cpu'],
                    modes => ['infer'], precisions => ['fp32'], ops => \@ops, library_ns => 0} },
    load => sub { my $case = $_[0]{case}; refuse('bad_request', 'load needs case, bundle and weights') if ref $case ne 'HASH' || grep { !defined $_[0]{$_} || ref $_[0]{$_} } qw(bundle weights);
        refuse('unsupported', "no variant $_[0]{variant}, this level has none") if ($_[0]{variant} // 'default') ne 'default';
        for (['mode', 'infer'], ['precision', 'fp32'], ['device', 'cpu'], ['threads', 1]) { refuse('unsupported', "no $_->[0] " . ($case->{$_->[0]} // 'null') . ", only $_->[1]") if ($case->{$_->[0]} // '') ne $_->[1] }
        my $start = now(); $bundle = $_[0]{bundle}; if (!eval { load_weights($_[0]{weights}); 1 }) { undef $bundle; die $@ } undef $first_ns;
        my $parameters = 0; $parameters += @$_ for values %weights;
        {phases => {build_ns => 0, weights_ns => now() - $start}, parameters => $parameters, artefact_bytes => -s $0, deterministic => JSON::PP::true, settings => {threads => 1,
         precision => 'fp32', layout => 'contiguous', inference_mode => JSON::PP::true, autotune => JSON::PP::false, freezing => JSON::PP::false, graph => 'none'}} },
    weights => sub { refuse('bad_request', 'send load first') if !$bundle; load_weights($_[0]{weights}); {} },
    inputs => sub { refuse('bad_request', 'send load first') if !$bundle; my $new = read_tensors($_[0]{path}); my %at = map { (split('/'))[0] => $new->{$_} } keys %$new; @ring = @at{0 .. keys(%at) - 1}; {count => scalar @ring} },
    prove => sub { my @i = indices($_[0]); write_outputs($_[0]{out}, map { ("$_/output" => (iterate($_))[2]) } @i); {outputs => ['output']} },
    warm_up => sub { indices({indices => [0]}); my ($n, $min) = @{$_[0]}{qw(iterations min_ns)}; my $start = now(); my @wall;
        while (@wall < $n || now() - $start < $min) { push @wall, (iterate(@wall % @ring))[0] } {iterations => scalar @wall, first_ns => $first_ns, wall_ns => \@wall} },
    measure => sub { my ($r) = @_; my @i = indices($r); my %stay = map { $_ => 1 } @{$r->{retain} // []}; %retained = ();
        refuse('bad_request', 'iterations, indices and retain do not fit') if @i != $r->{iterations} || grep { !is_count($_) || $_ >= @i } keys %stay;
        iterate($i[0]) for 1 .. $r->{head}; my ($start, $cpu) = (now(), now(CLOCK_PROCESS_CPUTIME_ID)); my (@wall, @latency);
        for my $n (0 .. $#i) { my ($wall, $latency, $result) = iterate($i[$n]); push @wall, $wall; push @latency, $latency; $retained{$n} = [$i[$n], $result] if $stay{$n} }
        $cpu = now(CLOCK_PROCESS_CPUTIME_ID) - $cpu;
        {wall_ns => \@wall, latency_ns => \@latency, cpu_ns => $cpu, start_ns => $start, runq_ns => undef} },
    result => sub { my $one = $retained{$_[0]{iteration} // ''} or refuse('bad_request', 'iteration: not one that measure retained'); write_outputs($_[0]{out}, "$one->[0]/output" => $one->[1]); {} },
    memory => sub { {device_peak_bytes => undef} }, unload => sub { undef $bundle; @ring = (); %weights = (); {} }, bye => sub { {} });

while (my $line = <STDIN>) {
    my $request = eval { $json->decode($line) }; my $answer;
    if (ref $request ne 'HASH') { $answer = {id => undef, ok => JSON::PP::false, code => 'bad_request', what => 'a request is a JSON object'} }
    else { my $op = $request->{op} // ''; my $known = !ref $op && $do{$op};
        my $done = eval { refuse('bad_request', 'a request has an integer id') if !is_count($request->{id}); refuse('unsupported', "no operation $op") if !$known; $known->($request) };
        my $why = ref $@ eq 'HASH' ? $@ : {code => 'bad_request', what => "$@"};
        $answer = {id => is_count($request->{id}) ? 0 + $request->{id} : undef, ($done ? (ok => JSON::PP::true, %$done) : (ok => JSON::PP::false, hint => '', %$why))} }
    print $answers $json->encode($answer), "\n"; exit 0 if $answer->{ok} && ($request->{op} // '') eq 'bye';
}
