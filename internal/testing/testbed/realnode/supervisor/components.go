// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"

	"rollset.dev/rollset/internal/testing/testbed/realnode/setup"
)

// runtimeConfig is containerd's. Not being allowed to lower its own badness (oom_score_adj) is no reason not to start.
const runtimeConfig = `version = 3
root = %[1]q
state = "/run/containerd"

[grpc]
  address = %[2]q

[plugins."io.containerd.metadata.v1.bolt"]
  no_sync = true

[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = %[3]q

[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = true

  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = [%[4]q]
    conf_dir = %[5]q

  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"

    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
      BinaryName = %[6]q
      SystemdCgroup = false
`

const networkConfig = `{
  "cniVersion": "1.0.0",
  "name": "pods",
  "plugins": [{
    "type": "bridge", "bridge": "pods", "isGateway": true, "isDefaultGateway": true, "hairpinMode": true,
    "ipam": {"type": "host-local", "ranges": [[{"subnet": %q}]], "dataDir": "/run/pod-addresses"}
  }]
}
`

// kubeletConfig leaves the kubelet's defaults, except for what belongs to the machine and not to the node: it does not
// clean up images and disks, uses no swap, and serves on loopback only.
const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
containerRuntimeEndpoint: unix://%s
cgroupDriver: cgroupfs
failCgroupV1: false
failSwapOn: false
oomScoreAdj: 0
address: 127.0.0.1
healthzBindAddress: 127.0.0.1
readOnlyPort: 0
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
makeIPTablesUtilChains: false
resolvConf: ""
clusterDNS: [192.0.2.53]
kubeAPIQPS: 1000
kubeAPIBurst: 1000
eventRecordQPS: 0
serializeImagePulls: false
registryPullQPS: 0
nodeStatusUpdateFrequency: 5s
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
evictionHard: {memory.available: 50Mi, nodefs.available: 1%%, imagefs.available: 1%%, nodefs.inodesFree: 1%%, imagefs.inodesFree: 1%%}
maxPods: 250
`

func writeRuntimeConfig(node setup.Node) (string, error) {
	runc, err := linkRunc(node)
	if err != nil {
		return "", err
	}
	networks := filepath.Join(node.Dir, "networks")
	if err := os.MkdirAll(networks, 0o700); err != nil {
		return "", fmt.Errorf("make folder: %w", err)
	}
	if _, err := write(filepath.Join(networks, "10-pods.conflist"), fmt.Sprintf(networkConfig, podRange)); err != nil {
		return "", err
	}
	return write(filepath.Join(node.Dir, "containerd.toml"), fmt.Sprintf(runtimeConfig,
		filepath.Join(node.Dir, "containerd"), runtimeSocket, setup.SandboxImage, node.BinDir, networks, runc))
}

func write(path, content string) (string, error) {
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		return "", fmt.Errorf("write configuration: %w", err)
	}
	return path, nil
}
