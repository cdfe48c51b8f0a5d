// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Command release builds the files of a release: the manager for each platform, an OCI image of it, and documents about
// their content and origin. It needs Go and git, and no container engine. The same commit gives the same bytes, on any
// machine and in any folder.
//
//	release image -root ../.. -out ../../dist -version v1.2.3   binaries, the image and its digest
//	release plugin -root ../.. -out ../../dist -downloads URL   archives of the kubectl plugin, and its manifest for krew
//	release chart -root ../.. -out ../../dist -version v1.2.3 -to <registry>/<name>   the Helm chart, with the image that lies there
//	release folder -out ../../dist -name bundle                 the folder of that name there, packed and as an image
//	release documents -out ../../dist                           the rest, of what lies there
//	release push -out ../../dist -name image -to <registry>/<name>:<tag>   an image, as it lies there
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("say image, plugin, chart, folder, documents or push")
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	root := flags.String("root", ".", "The folder of the project.")
	out := flags.String("out", "dist", "The folder to write to.")
	version := flags.String("version", "", "The version that the commit must be tagged with. Empty: whatever it is.")
	downloads := flags.String("downloads", "", "The URL below which the files of the release can be downloaded.")
	to := flags.String("to", "", "Where to push the image: <registry>/<name>:<tag>. For a chart: where it will be, without the tag.")
	name := flags.String("name", imageName, "What to push, or to make an image of: image, bundle or catalog.")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	switch args[0] {
	case "image":
		return writeImage(ctx, *root, *out, *version)
	case "plugin":
		return writePlugin(ctx, *root, *out, *version, *downloads)
	case "chart":
		return writeChart(*root, *out, *version, *to)
	case "folder":
		return writeFolder(filepath.Join(*out, *name), *out, *name)
	case "documents":
		return writeDocuments(*out)
	case "push":
		return pushImage(ctx, *out, *name, *to)
	default:
		return fmt.Errorf("unknown command %q: say image, plugin, chart, folder, documents or push", args[0])
	}
}
