// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"fmt"
	"os"
	"path/filepath"
)

const (
	apiServerName         = "kube-apiserver"
	controllerManagerName = "kube-controller-manager"
	schedulerName         = "kube-scheduler"

	userControllerManager = "system:kube-controller-manager"
	userScheduler         = "system:kube-scheduler"
	groupMasters          = "system:masters"
	serviceRange          = "10.0.0.0/16"
)

// schedulerConfig lifts the scheduler's limit of 50 requests a second, which would pace everything that is measured.
const schedulerConfig = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection:
  kubeconfig: %s
  qps: 5000
  burst: 5000
leaderElection:
  leaderElect: false
`

const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- level: RequestResponse
  users: [%q]
  verbs: [create, update, patch, delete]
- level: Metadata
`

// controlPlane starts the components of a cluster.
type controlPlane struct{ *Cluster }

// writeComponentFiles writes the configuration files that the components' arguments name.
func (c controlPlane) writeComponentFiles() error {
	if err := os.MkdirAll(filepath.Join(c.dir, "logs"), 0o700); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	kubeconfig, err := c.KubeconfigFor(userScheduler)
	if err != nil {
		return err
	}
	for name, content := range map[string]string{
		"scheduler.yaml": fmt.Sprintf(schedulerConfig, kubeconfig),
		"audit.yaml":     fmt.Sprintf(auditPolicy, c.options.AuditWrites),
	} {
		if err := os.WriteFile(filepath.Join(c.dir, name), []byte(content), 0o600); err != nil {
			return fmt.Errorf("write configuration: %w", err)
		}
	}
	_, err = c.KubeconfigFor(userControllerManager)
	return err
}

// etcd does without fsync: the data need not outlive the machine, and timings are less noisy.
func (c controlPlane) etcd() command {
	client, peer := "http://"+hostPort(c.ports.etcd), "http://"+hostPort(c.ports.etcdPeer)
	return command{name: "etcd", args: []string{
		"--data-dir=" + filepath.Join(c.dir, "etcd"),
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=default=" + peer,
		"--unsafe-no-fsync", "--log-level=warn",
		"--snapshot-count=100000", "--quota-backend-bytes=8589934592",
	}}
}

func (c controlPlane) apiServer() command {
	args := []string{
		"--etcd-servers=http://" + hostPort(c.ports.etcd),
		"--bind-address=" + loopback, "--advertise-address=" + loopback,
		fmt.Sprintf("--secure-port=%d", c.ports.apiServer),
		"--endpoint-reconciler-type=none", // no network reaches it
		"--service-cluster-ip-range=" + serviceRange,
		"--authorization-mode=RBAC",
		"--client-ca-file=" + c.authority.certFile,
		"--tls-cert-file=" + c.authority.serverCertFile, "--tls-private-key-file=" + c.authority.serverKeyFile,
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + c.authority.serverKeyFile,
		"--service-account-signing-key-file=" + c.authority.serverKeyFile,
		"--allow-privileged",
		// As on some clusters, a client needs rights on a set to make it the blocking owner of a pod.
		"--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
	}
	if c.options.WithoutControllerManager {
		// The service accounts that this plugin gives to pods do not exist here.
		args = append(args, "--disable-admission-plugins=ServiceAccount")
	}
	if c.options.Audit {
		args = append(args,
			"--audit-policy-file="+filepath.Join(c.dir, "audit.yaml"), "--audit-log-path="+c.AuditLog,
			"--audit-log-maxsize=100000", // MiB: a rotated log would lose what its reader has not read yet
			"--audit-log-mode=blocking",  // a log that is read right after a request has that request in it
		)
	}
	return command{name: apiServerName, args: args}
}

// controllerManager returns the command of the cluster's own controller manager.
func (c controlPlane) controllerManager() command {
	args := append(c.controllerManagerArgs(), "--secure-port=0", "--kube-api-qps=1000", "--kube-api-burst=1000")
	if c.options.Controllers != "" {
		args = append(args, "--controllers="+c.options.Controllers)
	}
	return command{name: controllerManagerName, args: args}
}

// controllerManagerArgs give every controller its own service account, as clusters do, so that RBAC has an effect.
func (c controlPlane) controllerManagerArgs() []string {
	kubeconfig := c.kubeconfigPath(userControllerManager)
	return []string{
		"--kubeconfig=" + kubeconfig, "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
		"--use-service-account-credentials",
		"--service-account-private-key-file=" + c.authority.serverKeyFile, "--root-ca-file=" + c.authority.certFile,
		"--leader-elect=false",
	}
}

func (c controlPlane) scheduler() command {
	kubeconfig := c.kubeconfigPath(userScheduler)
	return command{name: schedulerName, args: []string{
		"--config=" + filepath.Join(c.dir, "scheduler.yaml"),
		"--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=" + loopback, fmt.Sprintf("--secure-port=%d", c.ports.scheduler),
		"--tls-cert-file=" + c.authority.serverCertFile, "--tls-private-key-file=" + c.authority.serverKeyFile,
	}}
}
