// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Command bench measures RollSets on a local cluster that it starts, beside a minimal client and Kubernetes' own
// controllers, which do the same work. docs/benchmarks.md describes how to read its output.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctrllog.SetLogger(logr.Discard())
	if len(os.Args) == 3 && os.Args[1] == minimalCommand {
		exit(beMinimal(ctx, os.Args[2]))
	}
	o, err := parse(os.Args[1:])
	if err == nil {
		err = run(ctx, o)
	}
	if ctx.Err() != nil {
		err = nil // an interruption caused the failure
	}
	exit(err)
}

func exit(err error) {
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func say(text string) { fmt.Println("   " + text) }

// options select what to measure.
type options struct {
	works, by   []string
	pods        []int
	repetitions int
	// percent is the size of the trials.
	percent int
	dir     string
}

func parse(args []string) (o options, err error) {
	works, by, pods, repetitions := "", "", "100,1000,3000", 3
	if os.Getenv("BENCH") == "quick" {
		works = strings.Join([]string{workCreate, workNoop, workRecreate, workScaleIn, workMetadata, workInPlace}, ",")
		by = strings.Join([]string{nameMinimal, nameReplicaSet, nameStatefulSet, nameRollSet}, ",")
		pods, repetitions = "1000", 1
	}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.StringVar(&works, "work", works, "the works to do, separated by commas; empty: all of "+strings.Join(workNames(), ","))
	flags.StringVar(&by, "by", by, "the competitors, separated by commas; empty: all of "+strings.Join(competitorNames(), ","))
	flags.StringVar(&pods, "n", pods, "the numbers of pods, separated by commas")
	flags.IntVar(&o.repetitions, "repeat", repetitions, "how often to do everything")
	flags.IntVar(&o.percent, "percent", 100, "the size of the trials "+strings.Join(trialNames(), ", ")+", whose limits are for 100")
	flags.StringVar(&o.dir, "o", "bin", "the folder for bench.json and bench.txt")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.works, err = choose("work", works, workNames()); err != nil {
		return o, err
	}
	if o.by, err = choose("competitor", by, competitorNames()); err != nil {
		return o, err
	}
	for word := range strings.SplitSeq(pods, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 2*leftOver {
			return o, fmt.Errorf("-n: %q is no number of pods; at least %d are needed", word, 2*leftOver)
		}
		o.pods = append(o.pods, n)
	}
	return o, nil
}

// choose splits a list of names, which must all be known. An empty list means all.
func choose(what, list string, known []string) ([]string, error) {
	if list == "" {
		return known, nil
	}
	names := strings.Split(list, ",")
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("unknown %s %q; known are %s", what, name, strings.Join(known, ", "))
		}
	}
	return names, nil
}

func workNames() (names []string) {
	for _, s := range sequences() {
		for _, w := range s.works {
			names = append(names, w.name)
		}
	}
	return append(names, trialNames()...)
}

func trialNames() (names []string) {
	for _, t := range trials() {
		names = append(names, t.name)
	}
	return names
}

func competitorNames() (names []string) {
	for _, c := range competitors() {
		names = append(names, c.name)
	}
	return names
}

func run(ctx context.Context, o options) error {
	r := &results{}
	err := errors.Join(o.compete(ctx, r), o.try(ctx, r))
	if len(r.Samples)+len(r.Facts) == 0 {
		return err
	}
	r.judge()
	return errors.Join(err, r.print(os.Stdout), r.write(o.dir))
}

// compete lets all competitors do the works, on one cluster.
func (o options) compete(ctx context.Context, r *results) (err error) {
	if !slices.ContainsFunc(sequences(), func(s sequence) bool { return len(o.chosen(s)) > 0 }) {
		return nil
	}
	// The cluster outlives the signal: the call below stops it, and waits for it.
	bed, err := newBed(context.WithoutCancel(ctx))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bed.Stop()) }()
	return (&tournament{options: o, bed: bed, results: r}).play(ctx)
}
