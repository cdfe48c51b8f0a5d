// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package fidelity

import (
	corev1 "k8s.io/api/core/v1"
)

// Frames that steps wait for. Names of images are in full, as runtimes report them.
const (
	web  = "docker.io/library/web:"
	side = "docker.io/library/sidecar:"
	gone = "gone"
)

func running(name, image string) string { return name + "{" + image + " " }

// created returns the first step. By default it waits until the pod is ready.
func created(until ...string) Step {
	if len(until) == 0 {
		until = []string{"Running", " ready"}
	}
	return Step{Say: "create", Until: until}
}

// edited changes the spec, and waits until a container runs the image and all is well again.
func edited(say string, change func(*corev1.Pod), until ...string) Step {
	return Step{Say: say, Edit: change, Until: until}
}

// soon is edited without a moment before it.
func soon(say string, change func(*corev1.Pod), until ...string) Step {
	return Step{Say: say, Edit: change, Until: until, Soon: true}
}

func deleted() Step { return Step{Say: "delete", Delete: true, Until: []string{gone}} }

func resized(say, cpu, memory string) Step {
	return Step{Say: say, Resize: size(cpu, memory), Until: []string{"has " + cpu + "/" + memory + ".." + cpu + "/" + memory}}
}

// runs returns what a step waits for that gives the container app another image.
func runs(image string) []string { return []string{running("app", image), "running ready"} }

// Scripts returns all of them.
func Scripts() []Script {
	groups := [][]Script{plain(), troubled(), probedOnes(), manyContainers(), resizes(), gates(), ends(), kubelets()}
	var all []Script
	for _, g := range groups {
		all = append(all, g...)
	}
	return all
}

type shape = []func(*corev1.Pod)

func plain() []Script {
	return []Script{
		{Name: "create", Steps: []Step{created()}},
		{Name: "image", Steps: []Step{created(), edited("web:2", of("web:2"), runs(web+"2")...)}},
		{Name: "image-and-back", Steps: []Step{
			created(), edited("web:2", of("web:2"), runs(web+"2")...), edited("web:1", of("web:1"), runs(web+"1")...),
		}},
		{Name: "tag-of-the-same-content", Steps: []Step{created(), edited("web:1-again", of("web:1-again"), "#1 running ready")}},
		{Name: "name-in-full", Steps: []Step{created(), edited("docker.io/library/web:1", of("docker.io/library/web:1"), "#1 running ready")}},
		{Name: "registry-with-port", Shape: shape{of("localhost:5999/app:v1")}, Steps: []Step{
			created(), edited("app:v2", of("localhost:5999/app:v2"), runs("localhost:5999/app:v2")...),
		}},
		{Name: "mirror", Steps: []Step{created(), edited("a mirrored image", of("registry.example/web:mirror"), "#1 running ready")}},
		{Name: "annotation", Steps: []Step{created(), edited("annotate", annotated), edited("web:2", of("web:2"), runs(web+"2")...)}},
		{Name: "delete", Steps: []Step{created(), deleted()}},
		{Name: "delete-after-image", Steps: []Step{created(), edited("web:2", of("web:2"), runs(web+"2")...), deleted()}},
		{Name: "overtaken", Steps: []Step{created(), edited("web:2", of("web:2"), "2/2"), soon("web:3", of("web:3"), runs(web+"3")...)}},
	}
}

func troubled() []Script {
	return []Script{
		{Name: "create-missing", Shape: shape{of("web:missing")}, Steps: []Step{created(HeldBack)}},
		{Name: "create-missing-corrected", Shape: shape{of("web:missing")}, Steps: []Step{
			created(HeldBack), edited("web:2", of("web:2"), runs(web+"2")...),
		}},
		{Name: "create-missing-deleted", Shape: shape{of("web:missing")}, Steps: []Step{created(HeldBack), deleted()}},
		{Name: "create-missing-port", Shape: shape{of("localhost:5999/app:missing")}, Steps: []Step{created(HeldBack)}},
		{Name: "create-invalid-name", Shape: shape{of("Web:1")}, Steps: []Step{created("InvalidImageName")}},
		{Name: "create-invalid-name-corrected", Shape: shape{of("Web:1")}, Steps: []Step{
			created("InvalidImageName"), edited("web:2", of("web:2"), runs(web+"2")...),
		}},
		{Name: "to-missing", Steps: []Step{created(), edited("web:missing", of("web:missing"), HeldBack)}},
		{Name: "to-missing-corrected", Steps: []Step{
			created(), edited("web:missing", of("web:missing"), HeldBack), edited("web:3", of("web:3"), runs(web+"3")...),
		}},
		{Name: "to-missing-and-back", Steps: []Step{
			created(), edited("web:missing", of("web:missing"), HeldBack), edited("web:1", of("web:1"), "#1 running ready"),
		}},
		{Name: "to-missing-deleted", Steps: []Step{created(), edited("web:missing", of("web:missing"), HeldBack), deleted()}},
		{Name: "create-crashing", Shape: shape{of("web:crash")}, Steps: []Step{created("#1 Error(1)")}},
		{Name: "create-crashing-corrected", Shape: shape{of("web:crash")}, Steps: []Step{
			created("#1 Error(1)"), soon("web:2", of("web:2"), runs(web+"2")...),
		}},
		{Name: "create-crashing-deleted", Shape: shape{of("web:crash")}, Steps: []Step{created("#1 Error(1)"), {Say: "delete", Delete: true, Soon: true, Until: []string{gone}}}},
		{Name: "to-crashing", Steps: []Step{created(), edited("web:crash", of("web:crash"), "#2 Error(1)")}},
		{Name: "to-crashing-corrected", Steps: []Step{
			created(), edited("web:crash", of("web:crash"), "#2 Error(1)"), soon("web:3", of("web:3"), runs(web+"3")...),
		}},
		{Name: "crashing-to-missing-corrected", Shape: shape{of("web:crash")}, Steps: []Step{
			created("#1 Error(1)"), soon("web:missing", of("web:missing"), "2/2"), soon("web:2", of("web:2"), runs(web+"2")...),
		}},
	}
}

func probedOnes() []Script {
	return []Script{
		{Name: "probed-create", Shape: shape{probed}, Steps: []Step{created()}},
		{Name: "probed-image", Shape: shape{probed}, Steps: []Step{created(), edited("web:2", of("web:2"), runs(web+"2")...)}},
		{Name: "probed-delete", Shape: shape{probed}, Steps: []Step{created(), deleted()}},
		{Name: "probed-slow", Shape: shape{probed, of("web:slow")}, Steps: []Step{created()}},
		{Name: "probed-to-broken-corrected", Shape: shape{probed}, Steps: []Step{
			created(), edited("web:broken", of("web:broken"), running("app", web+"broken"), "running started"), edited("web:2", of("web:2"), runs(web+"2")...),
		}},
		{Name: "probed-to-missing-corrected", Shape: shape{probed}, Steps: []Step{
			created(), edited("web:missing", of("web:missing"), HeldBack), edited("web:3", of("web:3"), runs(web+"3")...),
		}},
		{Name: "probed-to-crashing", Shape: shape{probed}, Steps: []Step{created(), edited("web:crash", of("web:crash"), "#2 Error(1)")}},
	}
}

func manyContainers() []Script {
	twice := both(of("web:2"), sidecarOf("sidecar:2"))
	return []Script{
		{Name: "sidecar-create", Shape: shape{withSidecar}, Steps: []Step{created("Running", "app{"+web+"1", "running ready started} app")}},
		{Name: "sidecar-image", Shape: shape{withSidecar}, Steps: []Step{
			created("app{"+web, " running ready"), edited("sidecar:2", sidecarOf("sidecar:2"), running("sidecar", side+"2"), "#1 running ready"),
		}},
		{Name: "sidecar-app-image", Shape: shape{withSidecar}, Steps: []Step{created("app{"+web, "running ready"), edited("web:2", of("web:2"), runs(web+"2")...)}},
		{Name: "sidecar-both-images", Shape: shape{withSidecar}, Steps: []Step{
			created("app{"+web, "running ready"), edited("web:2 and sidecar:2", twice, running("app", web+"2"), running("sidecar", side+"2")),
		}},
		{Name: "sidecar-delete", Shape: shape{withSidecar}, Steps: []Step{created("app{"+web, "running ready"), deleted()}},
		{Name: "init-create", Shape: shape{withInit}, Steps: []Step{created("app{"+web, "running ready")}},
		{Name: "init-image", Shape: shape{withInit}, Steps: []Step{
			created("app{"+web, "running ready"), edited("another init image", sidecarOf("web:2"), "2/2"), edited("web:2", of("web:2"), runs(web+"2")...),
		}},
		{Name: "two-create", Shape: shape{withHelper}, Steps: []Step{created()}},
		{Name: "two-both-images", Shape: shape{withHelper}, Steps: []Step{
			created(), edited("web:2 and sidecar:2", both(of("web:2"), helperOf("sidecar:2")), running("app", web+"2"), running("aide", side+"2")),
		}},
	}
}

func resizes() []Script {
	const keep, restart = corev1.NotRequired, corev1.RestartContainer
	return []Script{
		{Name: "sized-create", Shape: shape{sized(keep)}, Steps: []Step{created()}},
		{Name: "resize-cpu", Shape: shape{sized(keep)}, Steps: []Step{created(), resized("more cpu", "200m", "32Mi")}},
		{Name: "resize-memory", Shape: shape{sized(keep)}, Steps: []Step{created(), resized("more memory", "100m", "40Mi")}},
		{Name: "resize-restarting", Shape: shape{sized(restart)}, Steps: []Step{created(), resized("more memory", "100m", "40Mi")}},
		{Name: "resize-and-back", Shape: shape{sized(keep)}, Steps: []Step{
			created(), resized("more cpu", "200m", "32Mi"), resized("less cpu", "100m", "32Mi"),
		}},
		{Name: "resize-then-image", Shape: shape{sized(keep)}, Steps: []Step{
			created(), resized("more cpu", "200m", "32Mi"), edited("web:2", of("web:2"), runs(web+"2")...),
		}},
	}
}

func gates() []Script {
	turn := func(status corev1.ConditionStatus, until ...string) Step {
		return Step{Say: "gate " + string(status), Status: turned(status), Until: until}
	}
	return []Script{
		{Name: "gated-create", Shape: shape{gated}, Steps: []Step{created("noReady(ReadinessGatesNotReady)", "running ready")}},
		{Name: "gated-turned", Shape: shape{gated}, Steps: []Step{
			created("noReady(ReadinessGatesNotReady)", "running ready"), turn(corev1.ConditionTrue, "1/1 Running app"),
			turn(corev1.ConditionFalse, "noReady(ReadinessGatesNotReady)"),
		}},
		{Name: "gated-image", Shape: shape{gated}, Steps: []Step{
			created("noReady(ReadinessGatesNotReady)", "running ready"), turn(corev1.ConditionTrue, "1/1 Running app"),
			turn(corev1.ConditionFalse, "noReady(ReadinessGatesNotReady)"), edited("web:2", of("web:2"), runs(web+"2")...),
			turn(corev1.ConditionTrue, "2/2 Running app"),
		}},
	}
}

func ends() []Script {
	return []Script{
		{Name: "never-succeeds", Shape: shape{restarting(corev1.RestartPolicyNever), of("web:exit")}, Steps: []Step{created(" Succeeded ")}},
		{Name: "never-fails", Shape: shape{restarting(corev1.RestartPolicyNever), of("web:crash")}, Steps: []Step{created(" Failed ")}},
		{Name: "on-failure-succeeds", Shape: shape{restarting(corev1.RestartPolicyOnFailure), of("web:exit")}, Steps: []Step{created(" Succeeded "), deleted()}},
		{Name: "always-exits", Shape: shape{of("web:exit")}, Steps: []Step{created("#1 Completed(0)")}},
	}
}

func kubelets() []Script {
	kill, start := Step{Say: "kill the kubelet", KillKubelet: true}, Step{Say: "start the kubelet", StartKubelet: true}
	startedUntil := func(until ...string) Step { s := start; s.Until = until; return s }
	return []Script{
		{Name: "kubelet-restarted", Shape: shape{probed}, Steps: []Step{
			created(), kill, start, edited("web:2", of("web:2"), runs(web+"2")...),
		}},
		{Name: "kubelet-dead-while-image-changes", Shape: shape{probed}, Steps: []Step{
			created(), kill, edited("web:2", of("web:2")), startedUntil(runs(web + "2")...),
		}},
		{Name: "kubelet-dead-while-deleted", Steps: []Step{
			created(), kill, {Say: "delete", Delete: true}, startedUntil(gone),
		}},
	}
}
