// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package images writes the images of a real node: an archive in the format of the OCI, in which all images share one
// layer with one program. The same program gives the same bytes anywhere.
//
// Words in the tags mean what they mean to package kubelet: missing is not there, crash and exit end soon, slow takes a
// while to become ready, broken never does, x-again is another tag of the content of x, and what is tagged mirror is
// reported under a mirror's name.
package images

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strings"

	"rollset.dev/rollset/internal/testing/testbed/realnode/setup"
)

// image is one content, under one name or several.
type image struct {
	// names are in full, as runtimes keep them: docker.io/library/web:1 for web:1.
	names   []string
	command string
	env     []string
}

// catalog returns all that a node has.
func catalog() []image {
	const web, app, sidecar = "docker.io/library/web", "localhost:5999/app", "docker.io/library/sidecar"
	images := []image{
		{names: []string{setup.SandboxImage}, command: "pause"},
		serving(web, "1", "1-again"), serving(web, "2"), serving(web, "3"),
		serving(web, "slow").with("READY_DELAY=2s"), serving(web, "broken").with("READY_DELAY=1h"),
		{names: []string{web + ":crash"}, command: "crash"},
		{names: []string{web + ":exit"}, command: "exit"},
		serving(app, "v1", "v1-again"), serving(app, "v2"),
		serving(sidecar, "1").with("PORT=8081"), serving(sidecar, "2").with("PORT=8081"),
	}
	// A registry and its mirror: one content under two hosts. The runtime reports the host that sorts first.
	mirrored := serving("registry.example/web", "mirror")
	mirrored.names = append(mirrored.names, "mirror.example.com/web:mirror")
	return append(images, mirrored)
}

// serving returns an image of a server, under one tag or several.
func serving(repository string, tags ...string) image {
	i := image{command: "serve", env: []string{"PORT=8080", "REPOSITORY=" + repository, "VERSION=" + tags[0]}}
	for _, tag := range tags {
		i.names = append(i.names, repository+":"+tag)
	}
	return i
}

func (i image) with(env ...string) image {
	i.env = append(i.env, env...)
	return i
}

// object is a JSON object; its keys are written in their order.
type object = map[string]any

// Write writes the archive of all images to a file.
func Write(path string, guest []byte) error {
	a := newArchive(guest)
	if err := a.add(); err != nil {
		return fmt.Errorf("write images: %w", err)
	}
	if err := os.WriteFile(path, a.out.Bytes(), 0o600); err != nil {
		return fmt.Errorf("write images: %w", err)
	}
	return nil
}

// archive is the archive in the making.
type archive struct {
	out   bytes.Buffer
	tar   *tar.Writer
	layer []byte
	// blobs are the names of the files that the archive has.
	blobs map[string]bool
}

func newArchive(guest []byte) *archive {
	a := &archive{blobs: map[string]bool{}, layer: layer(guest)}
	a.tar = tar.NewWriter(&a.out)
	return a
}

// layer returns the file system of all images: the guest, and a folder for temporary files.
func layer(guest []byte) []byte {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	// Writing to memory fails only if the headers are wrong, which the digests' test would show.
	_ = w.WriteHeader(&tar.Header{Name: "tmp/", Typeflag: tar.TypeDir, Mode: 0o1777})
	_ = w.WriteHeader(&tar.Header{Name: "guest", Mode: 0o755, Size: int64(len(guest))})
	_, _ = w.Write(guest)
	_ = w.Close()
	return out.Bytes()
}

func (a *archive) add() error {
	var index []object
	for _, i := range catalog() {
		manifest, err := a.manifest(i)
		if err != nil {
			return err
		}
		if err := a.blob(manifest); err != nil {
			return err
		}
		for _, name := range i.allNames(digest(manifest)) {
			index = append(index, object{
				"mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": digest(manifest), "size": len(manifest),
				"annotations": object{"io.containerd.image.name": name},
			})
		}
	}
	raw, err := json.Marshal(object{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": index,
	})
	if err != nil {
		return err
	}
	if err := a.file("index.json", raw); err != nil {
		return err
	}
	if err := a.file("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)); err != nil {
		return err
	}
	return a.tar.Close()
}

// allNames returns the image's names, and for each repository the one by digest. An image that was pulled has that too, and
// a runtime that does not know it reports the digest of a configuration as the image's ID, as no real cluster does.
func (i image) allNames(digest string) []string {
	names := append([]string{}, i.names...)
	seen := map[string]bool{}
	for _, name := range i.names {
		if repository := name[:strings.LastIndex(name, ":")]; !seen[repository] {
			seen[repository] = true
			names = append(names, repository+"@"+digest)
		}
	}
	return names
}

// manifest writes the content of an image, and returns its manifest.
func (a *archive) manifest(i image) ([]byte, error) {
	config, err := json.Marshal(object{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": object{"Entrypoint": []string{"/guest"}, "Cmd": []string{i.command}, "Env": append([]string{"PATH=/"}, i.env...), "WorkingDir": "/"},
		"rootfs": object{"type": "layers", "diff_ids": []string{digest(a.layer)}},
	})
	if err != nil {
		return nil, err
	}
	for _, blob := range [][]byte{a.layer, config} {
		if err := a.blob(blob); err != nil {
			return nil, err
		}
	}
	return json.Marshal(object{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
		"config": object{"mediaType": "application/vnd.oci.image.config.v1+json", "digest": digest(config), "size": len(config)},
		"layers": []object{{"mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": digest(a.layer), "size": len(a.layer)}},
	})
}

func (a *archive) blob(content []byte) error {
	sum := sha256.Sum256(content)
	return a.file("blobs/sha256/"+hex.EncodeToString(sum[:]), content)
}

// file adds a file, unless the archive has it.
func (a *archive) file(name string, content []byte) error {
	if a.blobs[name] {
		return nil
	}
	a.blobs[name] = true
	if err := a.tar.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content))}); err != nil {
		return err
	}
	_, err := a.tar.Write(content)
	return err
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}
