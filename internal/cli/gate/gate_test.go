// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/cli/session"
)

// answers returns a server that gives one answer after the other, and repeats the last one.
func answers(t *testing.T, bodies ...string) *httptest.Server {
	t.Helper()
	n := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		body := bodies[min(n, len(bodies)-1)]
		n++
		w.Header().Set("Content-Type", "application/json")
		if body == "" {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintf(w, `{"status":"success","data":%s}`, body)
	}))
	t.Cleanup(server.Close)
	return server
}

// impatient is a clock that never waits.
type impatient struct{ *clocktesting.FakeClock }

func newClock() impatient { return impatient{clocktesting.NewFakeClock(time.Unix(0, 0))} }

// After advances the time.
func (c impatient) After(d time.Duration) <-chan time.Time {
	c.Step(d)
	passed := make(chan time.Time, 1)
	passed <- c.Now()
	return passed
}

const (
	nothing = `{"resultType":"vector","result":[]}`
	good    = `{"resultType":"vector","result":[{"metric":{"app":"web"},"value":[1,"0.001"]}]}`
	zero    = `{"resultType":"vector","result":[{"metric":{"app":"web"},"value":[1,"1"]},{"metric":{"app":"db"},"value":[1,"0"]}]}`
	number  = `{"resultType":"scalar","result":[1,"1"]}`
	nan     = `{"resultType":"scalar","result":[1,"NaN"]}`
	matrix  = `{"resultType":"matrix","result":[]}`
)

func TestMeasure(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		query   string
		answers []string
		good    bool
		message string
		err     string
	}{
		"good all the time":              {"q", []string{good}, true, "q: good in", ""},
		"a number":                       {"q", []string{number}, true, "q: good in", ""},
		"nothing":                        {"q", []string{nothing}, false, "q: it returns nothing", ""},
		"one of two is 0":                {"q", []string{zero}, false, `q: {app="db"} is 0`, ""},
		"a comparison that 0 has passed": {"q < 1", []string{zero}, true, "q < 1: good in", ""},
		"a comparison that none has":     {"q < 1", []string{nothing}, false, "q < 1: it returns nothing", ""},
		"a comparison to 0 and 1":        {"q < bool 1", []string{zero}, false, `q < bool 1: {app="db"} is 0`, ""},
		"a comparison of no number":      {"q != 1", []string{nan}, false, "q != 1: {} is NaN", ""},
		"no number":                      {"q", []string{nan}, false, "q: {} is NaN", ""},
		"good at first":                  {"q", []string{good, good, nothing}, false, "q: it returns nothing", ""},
		"no answer at first":             {"q", []string{"", good}, true, "q: good in", ""},
		"no answer in the end":           {"q", []string{good, ""}, false, "", "ask Prometheus at"},
		"an answer of another shape":     {"q", []string{matrix}, false, "", "the query returns a matrix"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := answers(t, tt.answers...)
			m := measure{url: server.URL, query: tt.query, window: time.Minute, interval: 15 * time.Second}
			got, err := m.judge(t.Context(), newClock())
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Fatalf("error %v, want %q", err, tt.err)
			}
			if got.good != tt.good || !strings.Contains(got.message, tt.message) {
				t.Errorf("good %t: %s; want %t: %s", got.good, got.message, tt.good, tt.message)
			}
		})
	}
}

// TestNobodyAnswers asks a Prometheus that does not run. The message must not say that the API server is down.
func TestNobodyAnswers(t *testing.T) {
	t.Parallel()
	server := answers(t, good)
	server.Close()
	m := measure{url: server.URL, query: "q", interval: time.Second}
	_, err := m.judge(t.Context(), newClock())
	if err == nil || !strings.HasPrefix(session.Explain(err), "ask Prometheus at "+server.URL) {
		t.Errorf("error %v", err)
	}
}

func TestProgram(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		program []string
		good    bool
		message string
		err     string
	}{
		"good":         {[]string{"sh", "-c", "echo one; echo two"}, true, "sh ended with exit code 0: two", ""},
		"silent":       {[]string{"true"}, true, "true ended with exit code 0", ""},
		"bad":          {[]string{"sh", "-c", "echo 3% errors >&2; exit 7"}, false, "sh ended with exit code 7: 3% errors", ""},
		"prints a lot": {[]string{"sh", "-c", "yes | head -c 1000000; echo end"}, true, "sh ended with exit code 0: end", ""},
		"missing":      {[]string{"/no/such/program"}, false, "", "run /no/such/program"},
		"killed":       {[]string{"sh", "-c", "kill -9 $$"}, false, "", "signal: killed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := session.New(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &bytes.Buffer{}, ErrOut: &bytes.Buffer{}}, newClock())
			got, err := runProgram(t.Context(), s, tt.program)
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Fatalf("error %v, want %q", err, tt.err)
			}
			if got.good != tt.good || got.message != tt.message {
				t.Errorf("good %t: %s; want %t: %s", got.good, got.message, tt.good, tt.message)
			}
		})
	}
}

func TestWaits(t *testing.T) {
	t.Parallel()
	c := command{gate: "A"}
	steps := []v1beta1.RolloutStep{{Gates: []v1beta1.StepGate{{ConditionType: "A"}}}, {}}
	for name, tt := range map[string]struct {
		rollout *v1beta1.RolloutStatus
		want    string
	}{
		"no rollout":       {nil, "no step is at work"},
		"given up":         {&v1beta1.RolloutStatus{Step: 0, Steps: 2}, "no step is at work"},
		"all done":         {&v1beta1.RolloutStatus{Step: 3, Steps: 2}, "no step is at work"},
		"another step":     {&v1beta1.RolloutStatus{Step: 2, Steps: 2, Phase: v1beta1.RolloutPaused}, "step 2 of 2 has no gate A"},
		"still rolling":    {&v1beta1.RolloutStatus{Step: 1, Steps: 2, Phase: v1beta1.RolloutRolling}, "the pods of step 1 of 2 are not available yet"},
		"soaking":          {&v1beta1.RolloutStatus{Step: 1, Steps: 2, Phase: v1beta1.RolloutSoaking}, ""},
		"failed, and held": {&v1beta1.RolloutStatus{Step: 1, Steps: 2, Phase: v1beta1.RolloutFailed}, ""},
	} {
		set := &v1beta1.RollSet{}
		set.Spec.UpdateStrategy.RollingUpdate.Steps, set.Status.Rollout = steps, tt.rollout
		if got := c.waits(set); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
