// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/api"
	prometheus "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"rollset.dev/rollset/api/v1beta1"
)

var prometheusFlag = flag.String("prometheus", "", "the program of Prometheus; make test-prometheus builds it")

// app is a program with a metric: the share of its failing requests.
type app struct {
	server *httptest.Server
	errors atomic.Uint64
}

func newApp(t *testing.T) *app {
	t.Helper()
	a := &app{}
	a.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = fmt.Fprintf(w, "# TYPE app_errors_ratio gauge\napp_errors_ratio{app=\"web\"} %g\n", math.Float64frombits(a.errors.Load()))
	}))
	t.Cleanup(a.server.Close)
	return a
}

// fail makes the app answer a share of its requests with an error.
func (a *app) fail(share float64) { a.errors.Store(math.Float64bits(share)) }

// startPrometheus starts a Prometheus that scrapes the app and the manager, with the shipped alerts. It returns its URL and
// a function that kills it.
func startPrometheus(t *testing.T, a *app) (url string, kill func()) {
	t.Helper()
	dir := t.TempDir()
	rules := struct{ Spec map[string]any }{}
	text, err := os.ReadFile(filepath.Join(shared.root, "config", "prometheus", "rules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &rules); err != nil {
		t.Fatal(err)
	}
	scrape := func(job, url string) map[string]any {
		host, _, _ := strings.Cut(strings.TrimPrefix(url, "http://"), "/")
		// The labels of a set are its own, not those of the target.
		return map[string]any{"job_name": job, "honor_labels": true, "static_configs": []any{map[string]any{"targets": []string{host}}}}
	}
	for name, content := range map[string]any{
		"rules.yml": rules.Spec,
		"prometheus.yml": map[string]any{
			"global":         map[string]any{"scrape_interval": "200ms", "scrape_timeout": "200ms", "evaluation_interval": "1s"},
			"rule_files":     []string{"rules.yml"},
			"scrape_configs": []any{scrape("app", a.server.URL), scrape("rollset", shared.manager.Metrics)},
		},
	} {
		text, err := yaml.Marshal(content)
		if err := errors.Join(err, os.WriteFile(filepath.Join(dir, name), text, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	command := exec.CommandContext(ctx, *prometheusFlag, "--config.file="+filepath.Join(dir, "prometheus.yml"),
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address, "--log.level=warn")
	output := &strings.Builder{}
	command.Stdout, command.Stderr = output, output
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	kill = func() {
		cancel()
		_ = command.Wait() // it was killed
	}
	t.Cleanup(func() {
		kill()
		if t.Failed() {
			t.Logf("Prometheus:\n%s", output)
		}
	})
	return "http://" + address, kill
}

// TestGateByPrometheus judges steps by metrics of an app and of the manager, in a real Prometheus.
func TestGateByPrometheus(t *testing.T) {
	if *prometheusFlag == "" {
		t.Fatal("-prometheus names no program; `make test-prometheus` builds one and runs this test")
	}
	t.Parallel()
	a := newApp(t)
	url, kill := startPrometheus(t, a)
	u := newUser(t)
	gate := []v1beta1.StepGate{{ConditionType: "Errors"}}
	u.newSet(t, "web", func(set *v1beta1.RollSet) {
		set.Spec.UpdateStrategy.RollingUpdate.Steps = []v1beta1.RolloutStep{
			{Updated: intstr.FromInt32(1), Gates: gate}, {Updated: intstr.FromInt32(2), Gates: gate},
		}
	})
	judge := newJudge(t, u)
	ask := func(query string) []string {
		return []string{"gate", "web", "Errors", "--prometheus=" + url, "--query=" + query, "--for=2s", "--interval=200ms", longest()}
	}
	expectRules(t, url)
	awaitSample(t, url, "app_errors_ratio")

	u.run(t, "set", "image", "web", "app=nginx:1.29")
	inPhase(t, u, 1, v1beta1.RolloutGated)
	ofSet := fmt.Sprintf(`{namespace=%q,rollset="web"}`, u.namespace)
	contains(t, judge.run(t, ask(`max_over_time(app_errors_ratio{app="web"}[1s]) < 0.01`)...),
		"judging step 1 of 2", "gate Errors of rollset web is True: max_over_time(app_errors_ratio", "good in")

	inPhase(t, u, 2, v1beta1.RolloutGated)
	fails := time.AfterFunc(time.Second, func() { a.fail(0.03) }) // in the middle of the window
	defer fails.Stop()
	judge.fails(t, 1, ask(`app_errors_ratio{app="web"} < bool 0.01`), "gate Errors of rollset web is False: ", `{app="web"`, "is 0")
	inPhase(t, u, 2, v1beta1.RolloutFailed)
	judge.fails(t, 1, ask("app_errors_ratio["), "step 2 was not judged, and gate Errors is as it was", "parse error")
	judge.fails(t, 1, ask("app_errors_ratio[1m]"), "step 2 was not judged", "the query returns a matrix")
	judge.fails(t, 1, ask("no_such_metric > 0"), "is False: no_such_metric > 0: it returns nothing")
	awaitSample(t, url, "rollset_rollout_step"+ofSet+" == 2 and on () rollset_rollout_steps"+ofSet+" == 2")
	contains(t, judge.run(t, ask(`rollset_rollout_step{phase="Failed",`+ofSet[1:]+" == 2")...), "gate Errors of rollset web is True")
	contains(t, u.run(t, "status", "web", longest()), "3 of 3 pods updated")
	awaitSample(t, url, "absent(rollset_rollout_step"+ofSet+") and absent(rollset_rollout_since_timestamp_seconds"+ofSet+")")

	u.run(t, "set", "image", "web", "app=nginx:1.30")
	inPhase(t, u, 1, v1beta1.RolloutGated)
	kill()
	judge.fails(t, 1, ask("vector(1)"), "step 1 was not judged, and gate Errors is as it was: ask Prometheus at "+url)
	if c := meta.FindStatusCondition(u.get(t, "web").Status.Conditions, "Errors"); c == nil || c.Reason != "StepStarted" {
		t.Errorf("without an answer the gate is %+v", c)
	}
}

// expectRules waits until Prometheus has evaluated all alerts. None may have an error.
func expectRules(t *testing.T, url string) {
	t.Helper()
	server := clientOf(t, url)
	eventually(t, "Prometheus to evaluate its rules", func() error {
		found, err := server.Rules(t.Context(), nil)
		if err != nil {
			return err
		}
		rules := 0
		for _, group := range found.Groups {
			for _, rule := range group.Rules {
				alert, ok := rule.(prometheus.AlertingRule)
				if !ok || alert.Health != prometheus.RuleHealthGood {
					return fmt.Errorf("a rule is not well: %+v", rule)
				}
				rules++
			}
		}
		if rules < 8 {
			return fmt.Errorf("there are %d rules", rules)
		}
		return nil
	})
}

// awaitSample waits until a query returns something.
func awaitSample(t *testing.T, url, query string) {
	t.Helper()
	server := clientOf(t, url)
	eventually(t, query, func() error {
		value, _, err := server.Query(t.Context(), query, time.Now())
		if err != nil {
			return err
		}
		if v, ok := value.(model.Vector); !ok || len(v) == 0 {
			return errors.New("it returns nothing")
		}
		return nil
	})
}

func clientOf(t *testing.T, url string) prometheus.API {
	t.Helper()
	c, err := api.NewClient(api.Config{Address: url})
	if err != nil {
		t.Fatal(err)
	}
	return prometheus.NewAPI(c)
}
