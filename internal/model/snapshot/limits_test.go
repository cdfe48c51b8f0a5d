// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/snapshot"
)

// spec returns a spec with limits as in a manifest. Empty ones are not set.
func spec(replicas int32, partition, unavailable, surge string) *v1beta1.RollSetSpec {
	set := func(v string) *intstr.IntOrString {
		if v == "" {
			return nil
		}
		return new(intstr.Parse(v))
	}
	s := &v1beta1.RollSetSpec{Replicas: &replicas}
	rolling := &s.UpdateStrategy.RollingUpdate
	rolling.Partition, rolling.MaxUnavailable, rolling.MaxSurge = set(partition), set(unavailable), set(surge)
	return s
}

// scaled returns a spec with a scaleStrategy.
func scaled(s *v1beta1.RollSetSpec) *v1beta1.RollSetSpec {
	s.ScaleStrategy = &v1beta1.ScaleStrategy{}
	return s
}

// onDelete returns a spec of the strategy OnDelete.
func onDelete(s *v1beta1.RollSetSpec) *v1beta1.RollSetSpec {
	s.UpdateStrategy.Type = v1beta1.OnDeleteStrategy
	return s
}

func TestResolveLimits(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		spec *v1beta1.RollSetSpec
		want snapshot.Limits
	}{
		"defaults":                            {spec(10, "", "", ""), snapshot.Limits{Replicas: 10, MaxUnavailable: 2}},
		"surge rounds up":                     {spec(3, "", "0", "10%"), snapshot.Limits{Replicas: 3, MaxSurge: 1}},
		"unavailable rounds up without surge": {spec(3, "", "50%", "0"), snapshot.Limits{Replicas: 3, MaxUnavailable: 2}},
		"unavailable rounds down beside it":   {spec(3, "", "50%", "1"), snapshot.Limits{Replicas: 3, MaxUnavailable: 1, MaxSurge: 1}},
		"both come to nothing":                {spec(3, "", "0%", "0"), snapshot.Limits{Replicas: 3, MaxUnavailable: 1}},
		"partition rounds up":                 {spec(10, "11%", "1", ""), snapshot.Limits{Replicas: 10, Partition: 2, MaxUnavailable: 1}},
		"OnDelete takes neither":              {onDelete(spec(4, "2", "1", "1")), snapshot.Limits{Replicas: 4, MaxUnavailable: 1}},
		"1% of ten is one":                    {spec(10, "1%", "1", ""), snapshot.Limits{Replicas: 10, Partition: 1, MaxUnavailable: 1}},
		"99% leaves one to try":               {spec(2, "99%", "1", ""), snapshot.Limits{Replicas: 2, Partition: 1, MaxUnavailable: 1}},
		"1% leaves one behind":                {spec(2, "1%", "1", ""), snapshot.Limits{Replicas: 2, Partition: 1, MaxUnavailable: 1}},
		"1% of one":                           {spec(1, "1%", "1", ""), snapshot.Limits{Replicas: 1, Partition: 1, MaxUnavailable: 1}},
		"a scaleStrategy without a limit":     {scaled(spec(2, "", "1", "")), snapshot.Limits{Replicas: 2, MaxUnavailable: 1}},
		"partition beyond the set":            {spec(2, "7", "1", ""), snapshot.Limits{Replicas: 2, Partition: 2, MaxUnavailable: 1}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := snapshot.ResolveLimits(tt.spec)
			if err != nil {
				t.Fatal(err)
			}
			tt.want.ScaleMaxUnavailable = -1
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("limits (-want +got):\n%s", diff)
			}
		})
	}
}

func TestResolveLimitsRefuses(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"many": `"many" is neither a number nor a percentage such as "20%"`,
		"-1":   "-1 is negative",
	} {
		for name, spec := range map[string]*v1beta1.RollSetSpec{"partition": spec(3, value, "1", ""), "unavailable": spec(3, "", value, ""), "surge": spec(3, "", "1", value)} {
			if _, err := snapshot.ResolveLimits(spec); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s %s: error is %v", name, value, err)
			}
		}
	}
}

// FuzzResolveLimits looks for numbers and percentages that crash, or that allow no move or every one.
func FuzzResolveLimits(f *testing.F) {
	f.Add(int32(3), "50%", "25%", "0", "1")
	f.Add(int32(2147483647), "100%", "99999%", "2147483647", "0%")
	f.Add(int32(0), "%", "-1", "1.5%", " 10%")
	f.Fuzz(func(t *testing.T, replicas int32, partition, unavailable, surge, scale string) {
		s := spec(replicas, partition, unavailable, surge)
		s.ScaleStrategy = &v1beta1.ScaleStrategy{MaxUnavailable: new(intstr.Parse(scale))}
		l, err := snapshot.ResolveLimits(s)
		if err != nil {
			return
		}
		if l.Partition < 0 || l.Partition > l.Replicas || l.MaxSurge < 0 || l.MaxUnavailable+l.MaxSurge < 1 || l.ScaleMaxUnavailable < 1 {
			t.Fatalf("%+v", l)
		}
	})
}
