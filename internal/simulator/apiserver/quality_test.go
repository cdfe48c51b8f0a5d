// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestQualityOfPods(t *testing.T) {
	t.Parallel()
	list := func(cpu, memory string) corev1.ResourceList {
		l := corev1.ResourceList{}
		if cpu != "" {
			l[corev1.ResourceCPU] = resource.MustParse(cpu)
		}
		if memory != "" {
			l[corev1.ResourceMemory] = resource.MustParse(memory)
		}
		return l
	}
	tests := map[string]struct {
		requests, limits corev1.ResourceList
		want             corev1.PodQOSClass
	}{
		"asks for nothing":             {want: corev1.PodQOSBestEffort},
		"a zero is nothing":            {requests: list("0", ""), want: corev1.PodQOSBestEffort},
		"requests alone":               {requests: list("1", "1Gi"), want: corev1.PodQOSBurstable},
		"one limit":                    {limits: list("1", ""), want: corev1.PodQOSBurstable},
		"limits become requests":       {limits: list("1", "1Gi"), want: corev1.PodQOSGuaranteed},
		"requests that are the limits": {requests: list("1", "1Gi"), limits: list("1", "1Gi"), want: corev1.PodQOSGuaranteed},
		"requests below the limits":    {requests: list("500m", "1Gi"), limits: list("1", "1Gi"), want: corev1.PodQOSBurstable},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := &corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}}}
			spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: test.requests, Limits: test.limits}
			if got := qualityOf(spec); got != test.want {
				t.Errorf("class %s, want %s", got, test.want)
			}
		})
	}
}
