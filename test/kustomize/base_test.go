// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"fmt"
	"strings"
)

// podTemplate is one that has everything that a transformer changes.
const podTemplate = `
metadata:
  labels: {app: web}
spec:
  serviceAccountName: web
  priorityClassName: high
  imagePullSecrets:
  - name: pull
  affinity:
    podAntiAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
      - topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels: {app: web}
  topologySpreadConstraints:
  - topologyKey: topology.kubernetes.io/zone
    maxSkew: 1
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {app: web}
  initContainers:
  - name: init
    image: busybox:1
    envFrom:
    - configMapRef: {name: config}
    - secretRef: {name: secret}
  containers:
  - name: web
    image: nginx:1
    env:
    - {name: A, value: a}
    - name: B
      valueFrom:
        configMapKeyRef: {name: config, key: b}
    - name: C
      valueFrom:
        secretKeyRef: {name: secret, key: c}
    ports:
    - {name: quic, containerPort: 443, protocol: UDP}
    - {name: https, containerPort: 443, protocol: TCP}
    volumeMounts:
    - {name: config, mountPath: /config}
  - name: sidecar
    image: envoy:1
  volumes:
  - name: config
    configMap: {name: config}
  - name: secret
    secret: {secretName: secret}
  - name: both
    projected:
      sources:
      - configMap: {name: config}
      - secret: {name: secret}
  - name: shared
    persistentVolumeClaim: {claimName: shared}
`

// workload has a pod template and, but for a Deployment, claims and the name of a Service.
const workload = `
---
apiVersion: %[1]s
kind: %[2]s
metadata:
  name: web
spec:
  selector:
    matchLabels: {app: web}
%[3]s
  template:%[4]s
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: %[5]s}
spec:
  scaleTargetRef: {apiVersion: %[1]s, kind: %[2]s, name: web}
  maxReplicas: 5
`

const claims = `
  serviceName: web
  volumeClaimTemplates:
  - metadata: {name: data}
    spec:
      storageClassName: fast
      accessModes: [ReadWriteOnce]
      resources: {requests: {storage: 1Gi}}
`

// beside has the objects that the workloads refer to.
const beside = `
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  clusterIP: None
  selector: {app: web}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: web}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: shared}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 1
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: fast}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec:
  selector:
    matchLabels: {app: web}
`

// base returns a Deployment, a StatefulSet and a RollSet with one pod template, and what they refer to.
func base() string {
	indented := strings.ReplaceAll(podTemplate, "\n", "\n    ")
	var b strings.Builder
	b.WriteString(beside)
	for _, w := range []struct{ api, kind, claims string }{
		{api: "apps/v1", kind: "Deployment"},
		{api: "apps/v1", kind: "StatefulSet", claims: claims},
		{api: "apps.rollset.dev/v1beta1", kind: "RollSet", claims: claims},
	} {
		fmt.Fprintf(&b, workload, w.api, w.kind, w.claims, indented, strings.ToLower(w.kind))
	}
	return b.String()
}
