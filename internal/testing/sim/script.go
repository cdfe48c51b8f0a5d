// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/simulator/kubelet"
)

// Step is one line of a script.
type Step struct {
	// Line is the line as it was written.
	Line string

	command command
	args    []string
}

// Script lists what users, nodes and managers do in a scenario, line by line. The lines before the first one that lets time
// pass describe the set, which is then created.
type Script []Step

// command is one command of the script language.
type command struct {
	name string
	// args is the minimum number of arguments.
	args int
	do   func(ctx context.Context, w *World, args []string) error
}

// ParseScript reads a script: one command a line, "#" begins a comment.
func ParseScript(text string) (Script, error) {
	known := make(map[string]command)
	for _, c := range commands() {
		known[c.name] = c
	}
	var script Script
	for n, raw := range strings.Split(text, "\n") {
		words, _, _ := strings.Cut(raw, "#")
		fields := strings.Fields(words)
		if len(fields) == 0 {
			continue
		}
		c, ok := known[fields[0]]
		if !ok || len(fields)-1 < c.args {
			return nil, fmt.Errorf("line %d: %q is no command", n+1, raw)
		}
		script = append(script, Step{Line: strings.Join(fields, " "), command: c, args: fields[1:]})
	}
	return script, nil
}

// Play runs a script.
func (w *World) Play(ctx context.Context, script Script) error {
	for _, step := range script {
		w.acted = w.Now()
		w.neighbors.act()
		if err := step.command.do(ctx, w, step.args); err != nil {
			return fmt.Errorf("%s: %w", step.Line, err)
		}
		if w.checker.Violation != nil {
			return fmt.Errorf("%s: %w", step.Line, w.checker.Violation)
		}
		if err := errors.Join(w.CheckService(w.kubelets.run), w.checker.CheckPlaces(w.acted)); err != nil {
			return fmt.Errorf("%s: %w", step.Line, err)
		}
	}
	return nil
}

// CutPauses returns the script with its pauses cut short by chance, so that a change meets an unfinished earlier one. The
// last pause stays.
func (s Script) CutPauses(w *World) Script {
	run := command{name: "run", do: run}
	cut := make(Script, len(s))
	for i, step := range s {
		cut[i] = step
		if step.command.name == "settle" && i < len(s)-1 && w.Chance.IntN(3) > 0 {
			d := time.Duration(w.Chance.IntN(4000)) * time.Millisecond
			cut[i] = Step{Line: "run " + d.String(), command: run, args: []string{d.String()}}
		}
	}
	return cut
}

// commands returns the script language. A new command is a new line here.
func commands() []command {
	return append(slices.Concat(specCommands(), ordinalCommands(), orderCommands(), tellCommands(), inPlaceCommands(), hookCommands(), mistakeCommands(), nodeCommands(), stepCommands(), zoneCommands(), drainCommands(), claimCommands(), driverCommands(), refusalCommands(), rewriteCommands(), neighborCommands(), budgetCommands(), forgeCommands()),
		command{"settle", 0, func(ctx context.Context, w *World, _ []string) error { return settle(ctx, w) }},
		command{"run", 1, run},
		command{"restart", 0, restart},
		command{"managers", 1, managers},
		// Managers do not reach the API server for a while: "outage 12s". The first write is carried out, and its answer is lost.
		forTime("outage", "outage of", func(w *World, d time.Duration) { w.network.outage, w.network.cut = w.Now().Add(d), true }),
		command{"resync", 0, func(_ context.Context, w *World, _ []string) error { w.Resync(); return nil }},
		command{"quota", 1, quota},
		command{"deny", 0, denyPods},
		command{"deny-image", 1, denyImage},
		command{"allow", 0, func(_ context.Context, w *World, _ []string) error { w.Store.Admission = nil; return nil }},
		nodesCommand("cordon", true),
		nodesCommand("uncordon", false),
		command{"delete", 1, eachPod("delete", deletePod)},
		command{"kill", 1, eachPod("force-delete", killPod)},
		command{"fail", 1, noteEach("fail", kubelet.EvictAnnotation, "true")},
		command{"reject", 1, eachPod("the node rejects", rejectPod)},
		command{"lose", 1, eachPod("lose the node of", func(w *World, pod *corev1.Pod) error { return w.kubelets.lose(pod) })},
		command{"blip", 1, eachPod("unready for a moment", blipPod)},
		command{"hand-image", 2, handImage},
		command{"specify", 1, labelEach("label for deletion", v1beta1.SpecifiedDeleteLabel, "true")},
		command{"unspecify", 1, labelEach("label not for deletion", v1beta1.SpecifiedDeleteLabel, "false")},
		command{"relabel", 1, labelEach("relabel", "app", "other")},
		command{"label-back", 1, labelEach("label back", "app", SetName)},
		command{"expensive", 1, noteEach("make expensive", "controller.kubernetes.io/pod-deletion-cost", "100")},
		command{"finalize", 1, editEach("put a finalizer on", func(p *corev1.Pod) { p.Finalizers = append(p.Finalizers, "example.com/keep") })},
		command{"unfinalize", 1, editEach("take the finalizer off", func(p *corev1.Pod) { p.Finalizers = nil })},
		command{"let-schedule", 1, editEach("open the scheduling gates of", func(p *corev1.Pod) { p.Spec.SchedulingGates = nil })},
		command{"orphan", 1, orphan},
		command{"stranger", 1, stranger},
		command{"claim", 2, claimOf},
		command{"claim-to", 2, claimTo},
		command{"delete-claim", 1, deleteClaim},
		command{"delete-set", 1, deleteSet},
	)
}

// nodesCommand returns a command that cordons all nodes or none.
func nodesCommand(name string, cordoned bool) command {
	return command{name, 0, func(_ context.Context, w *World, _ []string) error {
		w.note(name)
		w.scheduler.changeNodes(cordoned)
		return nil
	}}
}

func settle(ctx context.Context, w *World) error {
	w.createSet()
	if err := w.Settle(ctx); err != nil {
		return err
	}
	return errors.Join(judge{w}.checkHooks(waitsAtAll), judge{w}.checkNamed())
}

func run(ctx context.Context, w *World, args []string) error {
	d, err := time.ParseDuration(args[0])
	if err != nil {
		return err
	}
	w.createSet()
	return w.Run(ctx, d)
}

func restart(ctx context.Context, w *World, _ []string) error {
	for _, m := range w.Managers {
		w.Restart(ctx, m, w.Store.Version())
	}
	return nil
}

func managers(ctx context.Context, w *World, args []string) error {
	n, err := strconv.Atoi(args[0])
	for len(w.Managers) < n {
		w.AddManager(ctx)
	}
	return err
}

// quota limits the number of pods, or with "cpu=" the CPU that they request; "none" removes all limits.
func quota(_ context.Context, w *World, args []string) error {
	w.note("quota " + args[0])
	w.Store.MaxPods, w.Store.MaxCPU = -1, nil
	if args[0] == "none" {
		return nil
	}
	if cpu, ok := strings.CutPrefix(args[0], "cpu="); ok {
		limit, err := resource.ParseQuantity(cpu)
		w.Store.MaxCPU = &limit
		return err
	}
	n, err := strconv.Atoi(args[0])
	w.Store.MaxPods = n
	return err
}
