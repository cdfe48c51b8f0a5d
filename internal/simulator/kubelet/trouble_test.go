// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// A healthy container is killed before the pull is tried; the next image helps at once.
func TestRunningPodToMissingImage(t *testing.T) {
	f := newFilm(t, Recorded(), newPod("app:v1")).run(time.Minute)
	before := f.pod.Status.ContainerStatuses[0]
	f.image("app:missing").run(35*time.Second).expect(
		"+0s 2/2 Running Ready=True app=app:v1#0,ready",
		"+150ms 2/2 Running Ready=False app=app:v1#0,ErrImagePull<Completed(0)",
		"+1.15s 2/2 Running Ready=False app=app:v1#0,ImagePullBackOff<Completed(0)",
		"+11.15s 2/2 Running Ready=False app=app:v1#0,CrashLoopBackOff<Completed(0)",
		"+21.15s 2/2 Running Ready=False app=app:v1#0,ErrImagePull<Completed(0)",
		"+22.15s 2/2 Running Ready=False app=app:v1#0,ImagePullBackOff<Completed(0)",
		"+32.15s 2/2 Running Ready=False app=app:v1#0,CrashLoopBackOff<Completed(0)",
	)
	after := f.pod.Status.ContainerStatuses[0]
	if after.ImageID != before.ImageID || after.ContainerID != before.ContainerID {
		t.Errorf("imageID %q, containerID %q; want those of the container that was killed", after.ImageID, after.ContainerID)
	}
	f.image("app:v2").run(time.Minute).expect(
		"+0s 3/3 Running Ready=False app=app:v1#0,CrashLoopBackOff<Completed(0)",
		"+100ms 3/3 Running Ready=True app=app:v2#1,ready<Completed(0)",
	)
}

func TestNewPodWithMissingImage(t *testing.T) {
	f := newFilm(t, Recorded(), newPod("app:missing")).run(15*time.Second).expect(
		"+0s 1/1 Pending Ready=False app=app:missing#0,ContainerCreating",
		"+150ms 1/1 Pending Ready=False app=app:missing#0,ContainerCreating",
		"+250ms 1/1 Pending Ready=False app=app:missing#0,ErrImagePull",
		"+1.25s 1/1 Pending Ready=False app=app:missing#0,ImagePullBackOff",
		"+11.25s 1/1 Pending Ready=False app=app:missing#0,ErrImagePull",
		"+12.25s 1/1 Pending Ready=False app=app:missing#0,ImagePullBackOff",
	)
	f.image("app:v2").run(time.Minute).expect(
		"+0s 2/2 Pending Ready=False app=app:v2#0,ImagePullBackOff",
		"+100ms 2/2 Running Ready=True app=app:v2#0,ready",
	)
}

// Without a probe a crashing container is Ready for a moment at each restart. The first restart is immediate.
func TestCrashLoop(t *testing.T) {
	f := newFilm(t, Recorded(), newPod("app:crash")).run(35*time.Second).expect(
		"+0s 1/1 Pending Ready=False app=app:crash#0,ContainerCreating",
		"+150ms 1/1 Pending Ready=False app=app:crash#0,ContainerCreating",
		"+250ms 1/1 Running Ready=True app=app:crash#0,ready",
		"+750ms 1/1 Running Ready=False app=app:crash#0,Error(1)",
		"+850ms 1/1 Running Ready=True app=app:crash#1,ready<Error(1)",
		"+1.35s 1/1 Running Ready=False app=app:crash#1,Error(1)<Error(1)",
		"+2.35s 1/1 Running Ready=False app=app:crash#1,CrashLoopBackOff<Error(1)",
		"+11.35s 1/1 Running Ready=True app=app:crash#2,ready<Error(1)",
		"+11.85s 1/1 Running Ready=False app=app:crash#2,Error(1)<Error(1)",
		"+12.85s 1/1 Running Ready=False app=app:crash#2,CrashLoopBackOff<Error(1)",
		"+31.85s 1/1 Running Ready=True app=app:crash#3,ready<Error(1)",
		"+32.35s 1/1 Running Ready=False app=app:crash#3,Error(1)<Error(1)",
		"+33.35s 1/1 Running Ready=False app=app:crash#3,CrashLoopBackOff<Error(1)",
	)
	if got, want := f.pod.Status.ContainerStatuses[0].State.Waiting.Message,
		"back-off 40s restarting failed container=app pod=p_default(622fd5c4)"; got != want {
		t.Errorf("message = %q, want %q", got, want)
	}
	// Another image ends the back-off, and so do other resources; a missing image is found out late.
	f.image("app:v2").run(time.Minute).expect(
		"+0s 2/2 Running Ready=False app=app:crash#3,CrashLoopBackOff<Error(1)",
		"+100ms 2/2 Running Ready=True app=app:v2#4,ready<Error(1)",
	)
}

func TestCrashLoopToMissingImage(t *testing.T) {
	f := newFilm(t, Recorded(), newPod("app:crash", probed)).run(5 * time.Second)
	f.image("app:missing").run(11*time.Second).expect(
		"+0s 2/2 Running Ready=False app=app:crash#1,CrashLoopBackOff<Error(1)",
		"+10s 2/2 Running Ready=False app=app:crash#1,ErrImagePull<Error(1)",
		"+11s 2/2 Running Ready=False app=app:crash#1,ImagePullBackOff<Error(1)",
	)
}

func TestCrashBackOffIsBounded(t *testing.T) {
	f := newFilm(t, Recorded(), newPod("app:crash")).run(2 * time.Hour)
	// 10 s, 20 s … 160 s, and then 300 s each: two hours hold 5 short and 22 long waits.
	if got := f.pod.Status.ContainerStatuses[0].RestartCount; got < 25 || got > 30 {
		t.Errorf("restarts in two hours = %d, want about 28", got)
	}
}

// A pod that is not restarted comes to an end by itself.
func TestRestartPolicyNever(t *testing.T) {
	never := func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyNever }
	for image, want := range map[string]corev1.PodPhase{"app:crash": corev1.PodFailed, "app:exit": corev1.PodSucceeded} {
		f := newFilm(t, Recorded(), newPod(image, never)).run(time.Hour)
		if f.pod.Status.Phase != want || f.removed {
			t.Errorf("%s: phase %s, removed %v; want %s, and the object kept", image, f.pod.Status.Phase, f.removed, want)
		}
	}
}
