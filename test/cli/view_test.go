// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/testing/patience"
)

// TestTree prints a set with its revisions, pods and claims.
func TestTree(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.newSet(t, "db", func(set *v1beta1.RollSet) {
		set.Spec.PodIdentity = v1beta1.OrdinalIdentity
		set.Spec.Replicas = new(int32(2))
		set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{
			ObjectMeta: metav1.ObjectMeta{Name: "data"},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
			},
		}}
	})
	tree := u.run(t, "get", "db")
	contains(t, tree, "rollset/db  Complete  2 desired, 2 updated, 2 ready, 2 available, 2 total", "└─ revision 1 db-", " (current, proven)", "nginx:1.28",
		"✔ db-0", "✔ db-1", "claim data-db-0", "1Gi", "available")
	if strings.Contains(tree, "\x1b") {
		t.Errorf("there are colors, though the output is no terminal:\n%q", tree)
	}
	contains(t, u.run(t, "get"), "NAME", "db", "Complete")
	contains(t, u.run(t, "get", "-o", "wide"), "nginx:1.28", "MESSAGE")
	contains(t, u.run(t, "get", "db", "-o", "yaml"), "kind: RollSet", "podIdentity: Ordinal")
	contains(t, u.run(t, "get", "-o", "name"), "rollset.apps.rollset.dev/db")
	anywhere := &user{kubeconfig: u.kubeconfig, dir: u.dir} // the completed word must come last
	contains(t, anywhere.run(t, "__complete", "--namespace="+u.namespace, "status", "d"), "db\n")
}

// TestWatch prints a line for each change if there is no terminal, and exits when interrupted.
func TestWatch(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.newSet(t, "web", nil)
	command := u.command(t.Context(), "get", "web", "-w")
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	command.Stderr = &stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 1000)
	go func() {
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			lines <- scanner.Text()
		}
		close(lines)
	}()
	await := func(text string) {
		t.Helper()
		deadline := time.After(patience.Long())
		for {
			select {
			case line, ok := <-lines:
				if !ok {
					t.Fatalf("ended before %q\n%s", text, stderr.String())
				}
				if strings.Contains(line, text) {
					return
				}
			case <-deadline:
				t.Fatalf("no line with %q", text)
			}
		}
	}
	await("rollset/web Complete")
	u.run(t, "set", "image", "web", "app=nginx:1.29")
	await("pod/web-")
	await("gone")
	await("rollset/web Complete")
	if err := command.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = command.Wait()
	if code := command.ProcessState.ExitCode(); code != 130 || stderr.String() != "interrupted\n" {
		t.Errorf("interrupted, it ends with exit code %d and says %q", code, stderr.String())
	}
}

// TestOnTerminals draws a set on terminals of several kinds, which the program script provides.
func TestOnTerminals(t *testing.T) {
	t.Parallel()
	script, err := exec.LookPath("script")
	if err != nil {
		t.Fatal("the program script of util-linux is needed to have a terminal:", err)
	}
	u := newUser(t)
	u.newSet(t, "web", nil)
	for name, test := range map[string]struct {
		term, size string
		want       []string
		never      []string
	}{
		"a wide one":        {"xterm-256color", "cols 120 rows 30", []string{"rollset/web", "✔", "100%", "\x1b[?1049h"}, nil},
		"one of 24 lines":   {"xterm-256color", "cols 80 rows 24", []string{"rollset/web", "✔", "\x1b[?1049h"}, nil},
		"one of 15 lines":   {"xterm-256color", "cols 80 rows 15", []string{"rollset/web", "✔", "\x1b[?1049h"}, nil},
		"one of 20 columns": {"xterm-256color", "cols 20 rows 10", []string{"rollset/web", "…"}, []string{"restarts"}},
		"a dumb one":        {"dumb", "cols 80 rows 24", []string{"rollset/web Complete"}, []string{"\x1b["}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			typescript := filepath.Join(t.TempDir(), "typescript")
			watch := "stty " + test.size + " && exec " + shared.plugin + " get web -w --namespace=" + u.namespace
			command := exec.CommandContext(t.Context(), script, "--quiet", "--return", "--flush", "--command", watch, typescript)
			command.Env = append(os.Environ(), "KUBECONFIG="+u.kubeconfig, "TERM="+test.term)
			keys, err := command.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := command.Start(); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the picture", func() error {
				seen, err := os.ReadFile(typescript)
				if err != nil {
					return err
				}
				for _, text := range test.want {
					if !strings.Contains(string(seen), text) {
						return &missing{text, string(seen)}
					}
				}
				return nil
			})
			if _, err := keys.Write([]byte{3}); err != nil { // Ctrl-C
				t.Fatal(err)
			}
			_ = command.Wait()
			if code := command.ProcessState.ExitCode(); code != 130 {
				t.Errorf("Ctrl-C ends it with exit code %d", code)
			}
			seen, _ := os.ReadFile(typescript)
			for _, text := range test.never {
				if strings.Contains(string(seen), text) {
					t.Errorf("there is %q in\n%q", text, seen)
				}
			}
		})
	}
}

type missing struct{ text, in string }

func (m *missing) Error() string { return "no " + m.text + " in\n" + m.in }

// TestRights runs the plugin with the roles of users. Users who lack a right are told which.
func TestRights(t *testing.T) {
	t.Parallel()
	admin := newUser(t)
	admin.newSet(t, "web", nil)
	editor, viewer, outsider := *admin, *admin, *admin
	for _, who := range []struct {
		user  *user
		name  string
		roles []string
	}{{&editor, "editor", []string{"edit", "rollset-editor"}}, {&viewer, "viewer", []string{"view", "rollset-viewer"}}, {&outsider, "outsider", nil}} {
		var err error
		name := who.name + "-" + admin.namespace
		if who.user.kubeconfig, err = shared.KubeconfigFor(name); err != nil {
			t.Fatal(err)
		}
		for _, role := range who.roles {
			bind(t, admin.namespace, name, role)
		}
	}
	eventually(t, "the roles", func() error {
		if r := editor.try(t, "", "get", "web"); r.code != 0 || r.err != "" {
			return &missing{"success", r.err}
		}
		return nil
	})
	contains(t, editor.run(t, "get", "web"), "✔")
	contains(t, editor.run(t, "restart", "web", "--wait", longest()), "restarted")
	contains(t, editor.run(t, "undo", "web"), "rolled back")
	editor.run(t, "status", "web", longest()) // a pod that the rollout replaces may go at any moment
	contains(t, editor.run(t, "delete-pod", editor.pods(t, "web")[0].Name), "marked")
	contains(t, viewer.run(t, "status", "web", longest()), "3")
	contains(t, viewer.run(t, "history", "web"), "nginx:1.28")
	contains(t, viewer.run(t, "plan", "web"), "web: nothing", "admission: one pod of the template could not be sent as a dry run")
	viewer.fails(t, 1, []string{"pause", "web"}, `cannot patch resource "rollsets"`, "rollset-editor-role")
	outsider.fails(t, 1, []string{"get", "web"}, `cannot get resource "rollsets"`, admin.namespace, "rollset-viewer-role")
}

// bind gives a user a cluster role in a namespace. The roles of this project are created from the shipped manifests.
func bind(t *testing.T, namespace, name, role string) {
	t.Helper()
	if strings.HasPrefix(role, "rollset-") {
		verbs := []string{"get", "list", "watch"}
		if role == "rollset-editor" {
			verbs = append(verbs, "create", "delete", "patch", "update")
		}
		own := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: role}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{v1beta1.GroupVersion.Group}, Resources: []string{"rollsets"}, Verbs: verbs},
		}}
		if err := shared.Create(t.Context(), own); err != nil {
			t.Fatal(err)
		}
	}
	kind := "ClusterRole"
	if strings.HasPrefix(role, "rollset-") {
		kind = "Role"
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + "-" + role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	}
	if err := shared.Create(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
}

// TestBadInput runs the plugin with unusable input: it prints one line, returns an exit code, and changes nothing.
func TestBadInput(t *testing.T) {
	t.Parallel()
	u := newUser(t).here()
	set := u.newSet(t, "web", nil)
	two := filepath.Join(u.dir, "two.yaml")
	text := "apiVersion: apps.rollset.dev/v1beta1\nkind: RollSet\nmetadata: {name: web}\n---\napiVersion: apps.rollset.dev/v1beta1\nkind: RollSet\nmetadata: {name: db}\n"
	if err := os.WriteFile(two, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		args []string
		want []string
	}{
		"a set that is not there":     {[]string{"get", "nosuch"}, []string{`rollsets.apps.rollset.dev "nosuch" not found`}},
		"another kind":                {[]string{"restart", "deployment/web"}, []string{"deployment/web is no RollSet"}},
		"no set":                      {[]string{"pause"}, []string{"which RollSet?"}},
		"two sets":                    {[]string{"pause", "a", "b"}, []string{"2 RollSets are given"}},
		"a file with two sets":        {[]string{"restart", "-f", two}, []string{"2 RollSets are given (web, db"}},
		"a file that is not there":    {[]string{"restart", "-f", "nosuch.yaml"}, []string{"nosuch.yaml"}},
		"no workload":                 {[]string{"adopt"}, []string{"which workload? Give KIND/NAME"}},
		"two workloads":               {[]string{"adopt", "sts/a", "sts/b", "sts/c"}, []string{"3 arguments are given (sts/a sts/b sts/c)"}},
		"no set to release":           {[]string{"release"}, []string{"which RollSet? Give its NAME"}},
		"no gate":                     {[]string{"gate", "web"}, []string{"which gate?"}},
		"no pods":                     {[]string{"delete-pod"}, []string{"which pods?"}},
		"a partition like a flag":     {[]string{"set", "partition", "web", "-1"}, []string{"PARTITION is a number from 0 on"}},
		"no image":                    {[]string{"set", "image", "web"}, []string{"CONTAINER=IMAGE"}},
		"a container that is not":     {[]string{"set", "image", "web", "nosuch=a"}, []string{`there is no container "nosuch"; the containers are app`}},
		"an empty image":              {[]string{"set", "image", "web", "app="}, []string{`"app=" is not CONTAINER=IMAGE`}},
		"no partition":                {[]string{"set", "partition", "web", "some"}, []string{`"some" is no partition`}},
		"a partition below 0":         {[]string{"set", "partition", "web", "101%"}, []string{`"101%" is no partition`}},
		"a revision that is not":      {[]string{"undo", "web", "--to-revision=9"}, []string{"no revision 9; it has 1"}},
		"nothing to go back to":       {[]string{"undo", "web"}, []string{"no earlier revision"}},
		"a range that is none":        {[]string{"diff", "web", "--revision=a..b"}, []string{`--revision is a number, or two such as 3..5, not "a"`}},
		"a flag that is not":          {[]string{"get", "--nosuch"}, []string{"unknown flag: --nosuch"}},
		"a command that is not":       {[]string{"nosuch"}, []string{`unknown command "nosuch"`}},
		"a dry run that is none":      {[]string{"pause", "web", "--dry-run=client"}, []string{"--dry-run is none or server"}},
		"a server that is not there":  {[]string{"get", "web", "--server=https://127.0.0.1:1"}, []string{"the API server does not answer", "connection refused"}},
		"a pod of someone else":       {[]string{"delete-pod", "nosuch"}, []string{"nothing was done"}},
		"a context that is not there": {[]string{"get", "--context=nosuch"}, []string{"nosuch"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u.fails(t, 1, test.args, test.want...)
		})
	}
	t.Cleanup(func() {
		now := &v1beta1.RollSet{}
		if err := shared.Get(context.WithoutCancel(t.Context()), client.ObjectKeyFromObject(set), now); err == nil && now.Generation != set.Generation {
			t.Errorf("the set was changed")
		}
	})
}

// TestNothingThere looks at a namespace without sets.
func TestNothingThere(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	contains(t, u.run(t, "get", "-o", "json"), `"items": []`)
	contains(t, u.run(t, "why", "-o", "json"), "[]")
	for _, verb := range []string{"get", "why"} {
		if r := u.try(t, "", verb); r.code != 0 || r.out != "" || r.err != "No RollSets in namespace "+u.namespace+"\n" {
			t.Errorf("%s: %+v", verb, r)
		}
	}
}

// TestWhy explains what a set waits for: each cause once, with the pods and with what ends it, in lines that fit.
func TestWhy(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.newSet(t, "web", nil)
	contains(t, u.run(t, "why", "web"), "rollset/web", "nothing waits")
	u.run(t, "pause", "web")
	u.run(t, "set", "image", "web", "app=nginx:1.29")
	why := u.eventuallyWhy(t, "pause: 3 pods (", "the rollout is paused", "lifted by: kubectl rollset resume web")
	for _, pod := range u.pods(t, "web") {
		contains(t, why, pod.Name)
	}
	contains(t, u.run(t, "why", "web", "-o", "json"), `"kind": "pause"`, `"liftedBy": "kubectl rollset resume web"`)
	u.run(t, "resume", "web", "--wait", longest())

	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: u.namespace, Name: "few"}}
	quota.Spec.Hard = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("3")}
	if err := shared.Create(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the quota to be in force", func() error {
		if err := shared.Get(t.Context(), client.ObjectKeyFromObject(quota), quota); err != nil {
			return err
		}
		if len(quota.Status.Hard) == 0 {
			return &missing{"the quota", "its status"}
		}
		return nil
	})
	set := u.get(t, "web")
	before := client.MergeFrom(set.DeepCopy())
	set.Spec.Replicas = new(int32(5))
	if err := shared.Patch(t.Context(), set, before); err != nil {
		t.Fatal(err)
	}
	why = u.eventuallyWhy(t, "quota: ", "exceeded quota: few", "kubectl describe resourcequota few -n "+u.namespace)
	if strings.Contains(strings.Join(strings.Fields(why), " "), "a template that the API server accepts") {
		t.Errorf("a quota is taken for a refusal of the template:\n%s", why)
	}
}

// eventuallyWhy waits until why says some texts, whatever the breaks of its lines, which fit on a terminal.
func (u *user) eventuallyWhy(t *testing.T, texts ...string) (why string) {
	t.Helper()
	eventually(t, "why to explain", func() error {
		why = u.here().run(t, "why")
		for _, text := range texts {
			if !strings.Contains(strings.Join(strings.Fields(why), " "), text) {
				return &missing{text, why}
			}
		}
		return nil
	})
	for line := range strings.Lines(why) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	return why
}
