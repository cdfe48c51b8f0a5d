// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package browser checks the pictures of plans in a headless browser: at three sizes, light and dark, with few pods and with
// many. A script in the page measures whether everything is readable.
package browser

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/forecast"
	"rollset.dev/rollset/internal/testing/patience"
)

var (
	program = flag.String("browser", "", "the program of a browser of the Chromium family; make test-browser finds it")
	shots   = flag.String("screenshots", "", "a folder for pictures of what the browser shows; empty for none")
)

//go:embed measure.js
var measure string

// window is the size of a window, and the minimum size of letters in it.
type window struct {
	name          string
	width, height int
	smallest      float64
}

// edit is a set before and after a change.
type edit struct{ before, after *v1beta1.RollSet }

// newEdit returns an edit that gives a set of some pods a new image.
func newEdit(pods int, change func(spec *v1beta1.RollSetSpec)) edit {
	labels := map[string]string{"app": "web"}
	before := &v1beta1.RollSet{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop"}}
	before.Spec.Replicas = new(int32(pods))
	before.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	before.Spec.Template.Labels = labels
	before.Spec.Template.Spec.Containers = []corev1.Container{{
		Name: "app", Image: "registry.example.com/shop/web:1.0", ReadinessProbe: &corev1.Probe{
			ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt(80)}},
		},
	}}
	before.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = new(intstr.FromString("10%"))
	change(&before.Spec)
	after := before.DeepCopy()
	after.Spec.Template.Spec.Containers[0].Image = "registry.example.com/shop/web:2.0"
	return edit{before, after}
}

func edits() map[string]edit {
	return map[string]edit{
		"12-pods":  newEdit(12, func(s *v1beta1.RollSetSpec) { s.UpdateStrategy.RollingUpdate.MaxSurge = new(intstr.FromInt(1)) }),
		"500-pods": newEdit(500, func(s *v1beta1.RollSetSpec) { s.MinReadySeconds = 20 }),
		"in-place": newEdit(9, func(s *v1beta1.RollSetSpec) {
			s.PodIdentity = v1beta1.OrdinalIdentity
			s.UpdateStrategy.RollingUpdate.PodUpdatePolicy = v1beta1.InPlaceIfPossiblePod
		}),
		"partition": newEdit(40, func(s *v1beta1.RollSetSpec) {
			s.UpdateStrategy.RollingUpdate.Partition = new(intstr.FromString("50%"))
		}),
	}
}

// TestPictures checks the page and the bare picture of each plan.
func TestPictures(t *testing.T) {
	if *program == "" {
		t.Fatal("which browser? Give -args -browser=/usr/bin/chromium, or run make test-browser")
	}
	windows := []window{{"phone", 390, 844, 7.5}, {"laptop", 1024, 768, 8}, {"desk", 1920, 1080, 9}}
	for name, edit := range edits() {
		in, err := forecast.Offline(t.Context(), edit.before, edit.after, time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC))
		if err != nil {
			t.Fatal(err)
		}
		f, err := forecast.Run(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		var page, picture bytes.Buffer
		if err := f.HTML(&page); err != nil {
			t.Fatal(err)
		}
		if err := f.SVG(&picture); err != nil {
			t.Fatal(err)
		}
		bare := "<!doctype html><html><head><meta name=\"color-scheme\" content=\"light dark\"><title></title></head><body style=\"margin:0\">" +
			picture.String() + "</body></html>"
		for _, size := range windows {
			for _, dark := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s on a %s, dark %v", name, size.name, dark), func(t *testing.T) {
					look(t, fmt.Sprintf("%s-%s-%v", name, size.name, dark), page.String(), size, dark)
					if size.width >= 960 { // in smaller windows, a page scrolls the picture
						look(t, fmt.Sprintf("%s-%s-%v-bare", name, size.name, dark), bare, size, dark)
					}
				})
			}
		}
	}
}

// look shows a page to the browser, and fails if its measures are wrong.
func look(t *testing.T, name, page string, size window, dark bool) {
	t.Helper()
	script := fmt.Sprintf("<script>const DARK = %v, SMALLEST = %g;\n%s</script></body>", dark, size.smallest, measure)
	folder := t.TempDir()
	file := filepath.Join(folder, "page.html")
	if err := os.WriteFile(file, []byte(strings.Replace(page, "</body>", script, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	dom := browse(t, folder, file, size, dark, "--dump-dom")
	title := regexp.MustCompile(`<title>measured: ([^<]*)</title>`).FindStringSubmatch(dom)
	if title == nil {
		t.Fatalf("the page was not measured:\n%.2000s", dom)
	}
	if title[1] != "" {
		t.Error(name + ": " + html.UnescapeString(title[1]))
	}
	if *shots != "" {
		browse(t, folder, file, size, dark, "--screenshot="+filepath.Join(*shots, name+".png"))
	}
}

// browse runs the browser once, and returns its output.
func browse(t *testing.T, folder, file string, size window, dark bool, task string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience.Long())
	defer cancel()
	scheme := 1 // of blink::mojom::PreferredColorScheme
	if dark {
		scheme = 0
	}
	var stdout, stderr bytes.Buffer
	for try := range 3 {
		command := exec.CommandContext(ctx, *program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
			"--no-first-run", "--disable-background-networking", "--user-data-dir="+filepath.Join(folder, fmt.Sprint("profile-", try)),
			fmt.Sprintf("--window-size=%d,%d", size.width, size.height), fmt.Sprintf("--blink-settings=preferredColorScheme=%d", scheme),
			task, "file://"+file)
		stdout.Reset()
		command.Stdout, command.Stderr = &stdout, &stderr
		err := command.Run()
		if err == nil {
			return stdout.String()
		}
		// A browser that a signal ends, such as a segmentation fault while it starts, has measured nothing.
		exit := new(exec.ExitError)
		if !errors.As(err, &exit) || exit.ExitCode() != -1 || ctx.Err() != nil {
			t.Fatalf("%v\n%s", err, stderr.String())
		}
		t.Logf("the browser crashed: %v", err)
	}
	t.Fatalf("the browser crashed three times:\n%s", stderr.String())
	return ""
}
