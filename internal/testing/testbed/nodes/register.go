// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"rollset.dev/rollset/internal/model/podstate"
	"rollset.dev/rollset/internal/testing/patience"
)

const (
	// leaseSeconds is the duration of a node's lease, and beatEvery the interval of its heartbeat, as a kubelet has
	// them.
	leaseSeconds = 40
	beatEvery    = 10 * time.Second
	// registerTimeout bounds the wait for the namespace of the leases, which a fresh API server makes in its own time.
	registerTimeout = 20 * time.Second
)

// capacity returns the capacity of each node. The API server itself refuses resizes beyond it.
func capacity() corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("1000"),
		corev1.ResourceMemory:           resource.MustParse("4Ti"),
		corev1.ResourceEphemeralStorage: resource.MustParse("100Ti"),
		corev1.ResourcePods:             resource.MustParse("10000"),
	}
}

// register makes every node and its first lease.
func (f *Fleet) register(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience.For(registerTimeout))
	defer cancel()
	for _, name := range f.names {
		if err := f.registerNode(ctx, name); err != nil {
			return err
		}
		for {
			err := f.renew(ctx, name)
			if err == nil {
				break
			}
			if !sleep(ctx, retryDelay) {
				return fmt.Errorf("renew lease of node %s: %w", name, err)
			}
		}
	}
	return nil
}

// registerNode registers a node, and replaces the node of an earlier fleet. It removes the taint that admission gives
// to new nodes, because nothing on this node takes time to become ready.
func (f *Fleet) registerNode(ctx context.Context, name string) error {
	api := f.client.CoreV1().Nodes()
	_, err := api.Create(ctx, f.node(name), metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create node %s: %w", name, err)
	}
	if _, err := api.Patch(ctx, name, types.MergePatchType, []byte(`{"spec":{"taints":null}}`), metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("remove taints of node %s: %w", name, err)
	}
	return nil
}

func (f *Fleet) node(name string) *corev1.Node {
	now := metav1.NewTime(time.Now())
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
			corev1.LabelTopologyZone: f.zoneOf(name),
		}},
		Status: corev1.NodeStatus{
			Capacity:    capacity(),
			Allocatable: f.options.Model.Allocatable,
			Addresses:   []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: name}},
			NodeInfo:    corev1.NodeSystemInfo{KubeletVersion: f.version, OperatingSystem: "linux", Architecture: "amd64"},
			// What a kubelet of this version declares, as far as admission asks for it.
			DeclaredFeatures: []string{"InPlacePodVerticalScalingInitContainers"},
		},
	}
	for t, status := range map[corev1.NodeConditionType]corev1.ConditionStatus{
		corev1.NodeReady: corev1.ConditionTrue, corev1.NodeMemoryPressure: corev1.ConditionFalse,
		corev1.NodeDiskPressure: corev1.ConditionFalse, corev1.NodePIDPressure: corev1.ConditionFalse,
	} {
		node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{
			Type: t, Status: status, Reason: "SimulatedNode", LastHeartbeatTime: now, LastTransitionTime: now,
		})
	}
	return node
}

// zoneOf returns the zone of a node. The nodes are in the zones a, b and c in turn.
func (f *Fleet) zoneOf(name string) string {
	zones := [...]string{"a", "b", "c"}
	return zones[max(0, slices.Index(f.names, name))%len(zones)]
}

// beat renews the leases of all nodes that are not silent, and reports those Ready that came back.
func (f *Fleet) beat(ctx context.Context) {
	for sleep(ctx, beatEvery) {
		for _, name := range f.names {
			if f.isSilent(name) {
				continue
			}
			if err := f.renew(ctx, name); err != nil && ctx.Err() == nil {
				f.log.Error(err, "heartbeat failed", "node", name)
			}
			if err := f.reportReady(ctx, name); err != nil && ctx.Err() == nil {
				f.log.Error(err, "status of node not written", "node", name)
			}
		}
	}
}

func (f *Fleet) renew(ctx context.Context, name string) error {
	api := f.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	now := metav1.NewMicroTime(time.Now())
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: corev1.NamespaceNodeLease},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new(name), LeaseDurationSeconds: new(int32(leaseSeconds)), RenewTime: &now,
		},
	}
	body, err := json.Marshal(lease)
	if err != nil {
		return fmt.Errorf("encode lease %s: %w", name, err)
	}
	_, err = api.Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		_, err = api.Create(ctx, lease, metav1.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("write lease %s: %w", name, err)
	}
	return nil
}

// reportReady undoes the status that the node lifecycle controller writes for a silent node.
func (f *Fleet) reportReady(ctx context.Context, name string) error {
	node, err := f.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{ResourceVersion: "0"})
	if err != nil {
		return fmt.Errorf("get node %s: %w", name, err)
	}
	if podstate.NodeReady(node) {
		return nil
	}
	node = node.DeepCopy()
	node.Status = f.node(name).Status
	if _, err := f.client.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("update status of node %s: %w", name, err)
	}
	return nil
}

// sleep waits, and reports whether the context is still good.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
