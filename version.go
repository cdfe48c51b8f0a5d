// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
)

// version returns that of the module and of the commit it was built from, as the toolchain recorded them.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return describe(info)
}

func describe(info *debug.BuildInfo) string {
	vcs := map[string]string{}
	for _, s := range info.Settings {
		vcs[s.Key] = s.Value
	}
	text := fmt.Sprintf("%s (commit %s", cmp.Or(info.Main.Version, "unknown"), cmp.Or(vcs["vcs.revision"], "unknown"))
	if vcs["vcs.modified"] == "true" {
		text += " with changes"
	}
	if at := vcs["vcs.time"]; at != "" {
		text += ", of " + at
	}
	return fmt.Sprintf("%s, %s, %s/%s)", text, info.GoVersion, runtime.GOOS, runtime.GOARCH)
}
