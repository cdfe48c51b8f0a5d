// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"rollset.dev/rollset/api/v1beta1"
)

// sample decodes documents of a file of config/gates. None may have an unknown field.
func sample(t *testing.T, name string, into ...any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(shared.root, "config", "gates", name))
	if err != nil {
		t.Fatal(err)
	}
	documents := strings.Split(string(text), "\n---\n")
	if len(documents) != len(into) {
		t.Fatalf("%s has %d documents, want %d", name, len(documents), len(into))
	}
	for i, document := range documents {
		if err := yaml.UnmarshalStrict([]byte(document), into[i]); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
}

// account is the service account of the samples, in the namespace of a test, and a folder with the content of their image.
type account struct {
	*user

	judge user
	bin   string
}

// newAccount grants the service account what the samples grant it, and nothing else.
func newAccount(t *testing.T) *account {
	t.Helper()
	u := newUser(t)
	role, serviceAccount, binding := &rbacv1.ClusterRole{}, &corev1.ServiceAccount{}, &rbacv1.RoleBinding{}
	text, err := os.ReadFile(filepath.Join(shared.root, "config", "rbac", "rollset_gate-writer_role.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, role); err != nil {
		t.Fatal(err)
	}
	role.Name = "rollset-" + role.Name // its name in the installation
	sample(t, "access.yaml", serviceAccount, binding)
	serviceAccount.Namespace, binding.Namespace, binding.Subjects[0].Namespace = u.namespace, u.namespace, u.namespace
	if err := errors.Join(client.IgnoreAlreadyExists(shared.Create(t.Context(), role)),
		shared.Create(t.Context(), serviceAccount), shared.Create(t.Context(), binding)); err != nil {
		t.Fatal(err)
	}
	if binding.RoleRef.Name != role.Name {
		t.Fatalf("the samples bind %s, and the installation has %s", binding.RoleRef.Name, role.Name)
	}
	a := &account{user: u, judge: *u, bin: t.TempDir()}
	if a.judge.kubeconfig, err = shared.KubeconfigFor(fmt.Sprintf("system:serviceaccount:%s:%s", u.namespace, serviceAccount.Name)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Symlink(shared.plugin, filepath.Join(a.bin, "kubectl-rollset")),
		os.WriteFile(filepath.Join(u.dir, "smoke-test.sh"), []byte("#!/bin/sh\necho all is well\n"), 0o700)); err != nil {
		t.Fatal(err)
	}
	u.newSet(t, "shop", func(set *v1beta1.RollSet) {
		set.Spec.UpdateStrategy.RollingUpdate.Steps = []v1beta1.RolloutStep{
			{Updated: intstr.FromInt32(1), Gates: []v1beta1.StepGate{{ConditionType: "Smoke"}}},
			{Updated: intstr.FromInt32(2), Gates: []v1beta1.StepGate{{ConditionType: "ErrorRate"}}},
		}
	})
	return a
}

// play runs a command line as a user, with only the plugin and kubectl in the PATH, and returns its output.
func (a *account) play(t *testing.T, u *user, environment []string, command ...string) string {
	t.Helper()
	path, err := exec.LookPath(filepath.Join(a.bin, command[0]))
	if err != nil {
		if path, err = exec.LookPath(command[0]); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.CommandContext(t.Context(), path, command[1:]...)
	c.Dir = u.dir
	c.Env = append(os.Environ(), append(environment, "KUBECONFIG="+u.kubeconfig, "HOME="+u.dir,
		"PATH="+strings.Join([]string{a.bin, shared.BinDir, os.Getenv("PATH")}, string(os.PathListSeparator)))...)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, out)
	}
	return string(out)
}

// inNamespace makes a namespace the current one of a user, as a pod's is.
func (a *account) inNamespace(t *testing.T, u *user) {
	t.Helper()
	copied := filepath.Join(t.TempDir(), "kubeconfig")
	text, err := os.ReadFile(u.kubeconfig)
	if err := errors.Join(err, os.WriteFile(copied, text, 0o600)); err != nil {
		t.Fatal(err)
	}
	u.kubeconfig = copied
	a.play(t, u, nil, "kubectl", "config", "set-context", "--current", "--namespace="+u.namespace)
}

// commandOf returns the command of the only container of a pod that the API server admits, and its environment.
func commandOf(pod *corev1.PodSpec) (environment, command []string) {
	for _, e := range pod.Containers[0].Env {
		environment = append(environment, e.Name+"="+e.Value)
	}
	return environment, pod.Containers[0].Command
}

// TestGateSamples lets a real API server admit the Job and the CronJob of config/gates. It runs their commands and those of
// the pipeline, each with its own rights: step by step they let a rollout through.
func TestGateSamples(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	a.inNamespace(t, &a.judge)
	a.inNamespace(t, a.user)
	job, cronJob := &batchv1.Job{}, &batchv1.CronJob{}
	sample(t, "job.yaml", job)
	sample(t, "cronjob.yaml", cronJob)
	job.Namespace, cronJob.Namespace = a.namespace, a.namespace
	if err := errors.Join(shared.Create(t.Context(), job, client.DryRunAll), shared.Create(t.Context(), cronJob, client.DryRunAll)); err != nil {
		t.Fatal(err)
	}
	var answer strings.Builder
	prometheus := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer.WriteString(r.FormValue("query"))
		_, _ = fmt.Fprint(w, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"0"]}]}}`)
	}))
	defer prometheus.Close()
	environment, cron := commandOf(&cronJob.Spec.JobTemplate.Spec.Template.Spec)
	environment = append(environment, "PROMETHEUS="+prometheus.URL, "WINDOW=1s")

	contains(t, a.play(t, &a.judge, environment, cron...), "waiting: no step is at work", "no step of rollset shop waited for gate ErrorRate")
	a.run(t, "set", "image", "shop", "app=nginx:1.29")
	_, once := commandOf(&job.Spec.Template.Spec)
	contains(t, a.play(t, &a.judge, nil, once...), "gate Smoke of rollset shop is True: ./smoke-test.sh ended with exit code 0: all is well")
	contains(t, a.play(t, &a.judge, environment, cron...), "gate ErrorRate of rollset shop is True", "< 0.01: good in")
	contains(t, a.run(t, "status", "shop", longest()), "3 of 3 pods updated")
	contains(t, answer.String(), `code=~"5.."`)

	t.Run("pipeline", func(t *testing.T) { pipeline(t, a) })
}

// pipeline runs the steps of the workflow one after the other.
func pipeline(t *testing.T, a *account) {
	var workflow struct {
		Jobs map[string]struct {
			Steps []struct{ Uses, Run, If string }
		}
	}
	text, err := os.ReadFile(filepath.Join(shared.root, "config", "gates", "github", "deploy.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &workflow); err != nil {
		t.Fatal(err)
	}
	set := a.get(t, "shop")
	set.APIVersion, set.Kind = v1beta1.GroupVersion.String(), "RollSet"
	set.ResourceVersion, set.ManagedFields, set.Status = "", nil, v1beta1.RollSetStatus{}
	set.Spec.Template.Spec.Containers[0].Image = "nginx:1.30"
	set.Spec.UpdateStrategy.RollingUpdate.Steps[1].Gates = nil
	manifest, err := yaml.Marshal(set)
	if err := errors.Join(err, os.WriteFile(filepath.Join(a.dir, "shop.yaml"), manifest, 0o600)); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, step := range workflow.Jobs["deploy"].Steps {
		if step.Run != "" && step.If == "" {
			out.WriteString(a.play(t, a.user, nil, "bash", "-e", "-o", "pipefail", "-c", step.Run))
		}
	}
	contains(t, out.String(), "rollset.apps.rollset.dev/shop configured", "gate Smoke of rollset shop is True", "3 of 3 pods updated")
}
