// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	provenancev1 "github.com/in-toto/attestation/go/predicates/provenance/v1"
	intoto "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/encoding/protojson"
)

const version = "v1.2.3"

// project returns a small program in a git repository, tagged with a version.
func project(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for name, content := range map[string]string{
		"go.mod":  "module example.org/program\n\ngo 1.26.0\n",
		"main.go": "package main\n\nimport \"os\"\n\nfunc main() { os.Exit(len(os.Args) - 1) }\n",
		"LICENSE": "Apache License\n",

		"cmd/kubectl-rollset/main.go": "package main\n\nfunc main() { println(1) }\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	git(t, folder, "init", "-q")
	git(t, folder, "add", ".")
	git(t, folder, "commit", "-q", "-m", "Begin")
	git(t, folder, "tag", version)
	return folder
}

func git(t *testing.T, folder string, args ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "git", args...)
	command.Dir = folder
	command.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_AUTHOR_DATE=2026-01-02T03:04:05Z",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org", "GIT_COMMITTER_DATE=2026-01-02T03:04:05Z")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// tool returns the path of a program that the module file of a folder pins. Each search by the go command takes a second.
func tool(t *testing.T, folder, name string) string {
	t.Helper()
	find := exec.CommandContext(t.Context(), "go", "-C", folder, "tool", "-n", name)
	find.Stderr = os.Stderr // it tells what it downloads
	path, err := find.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(path))
}

// imaged builds the manager of a project, and the image of it, into a folder.
func imaged(t *testing.T, root string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "dist")
	if err := run(t.Context(), []string{"image", "-root", root, "-out", out, "-version", version}); err != nil {
		t.Fatal(err)
	}
	return out
}

// release releases a project into a folder.
func release(t *testing.T, root string) string {
	t.Helper()
	out := imaged(t, root)
	plugin := []string{"plugin", "-root", root, "-out", out, "-version", version, "-downloads", "https://example.org/" + version}
	if err := run(t.Context(), plugin); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(out, installerName), []byte("kind: List\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), []string{"documents", "-out", out}); err != nil {
		t.Fatal(err)
	}
	return out
}

// files returns all files below a folder, with their contents.
func files(t *testing.T, folder string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		all[strings.TrimPrefix(path, folder+"/")] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestRelease releases the same commit twice, from two folders into two others, and checks the results.
func TestRelease(t *testing.T) {
	t.Parallel()
	out := release(t, project(t))
	first, second := files(t, out), files(t, release(t, project(t)))
	if len(first) != len(second) {
		t.Errorf("the first release has %d files, the second %d", len(first), len(second))
	}
	for name, content := range first {
		if second[name] != content {
			t.Errorf("%s differs", name)
		}
	}
	t.Run("binaries", func(t *testing.T) { checkBinaries(t, out) })
	t.Run("image", func(t *testing.T) { checkImage(t, out) })
	t.Run("krew", func(t *testing.T) { checkKrew(t, out) })
	t.Run("provenance", func(t *testing.T) { checkProvenance(t, out) })
	t.Run("checksums", func(t *testing.T) { checkSums(t, out) })
}

func checkBinaries(t *testing.T, out string) {
	t.Helper()
	for arch, machine := range map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64} {
		file, err := elf.Open(binaryPath(out, arch))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = file.Close() })
		if file.Machine != machine {
			t.Errorf("%s: the binary is for %v", arch, file.Machine)
		}
		for _, part := range file.Progs {
			if part.Type == elf.PT_INTERP || part.Type == elf.PT_DYNAMIC {
				t.Errorf("%s: the binary is not static: %v", arch, part.Type)
			}
		}
		b, err := inspect(binaryPath(out, arch), arch)
		if err != nil || b.version() != version {
			t.Errorf("%s: version %q, %v", arch, b.version(), err)
		}
	}
}

func checkImage(t *testing.T, out string) {
	t.Helper()
	folder := t.TempDir()
	untar := exec.CommandContext(t.Context(), "tar", "-xf", archivePath(out, imageName), "-C", folder)
	if text, err := untar.CombinedOutput(); err != nil {
		t.Fatalf("tar: %v\n%s", err, text)
	}
	root, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(root); err != nil {
		t.Error(err)
	}
	top, err := root.IndexManifest()
	if err != nil || len(top.Manifests) != 1 || top.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != version {
		t.Fatalf("index.json: %+v, %v", top, err)
	}
	if digest := files(t, out)["image.digest"]; digest != top.Manifests[0].Digest.String()+"\n" {
		t.Errorf("the digest is %q, want that of the image, %s", digest, top.Manifests[0].Digest)
	}
	index, err := root.ImageIndex(top.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil || manifest.MediaType != types.OCIImageIndex || manifest.Annotations["org.opencontainers.image.version"] != version {
		t.Fatalf("the image: %+v, %v", manifest, err)
	}
	var platforms []string
	for _, m := range manifest.Manifests {
		platforms = append(platforms, m.Platform.String())
		if m.ArtifactType != "" {
			t.Errorf("%s is listed as an artifact of type %s", m.Platform, m.ArtifactType)
		}
		image, err := index.Image(m.Digest)
		if err != nil {
			t.Fatal(err)
		}
		checkPlatform(t, image, m.Platform.Architecture, out)
	}
	if diff := cmp.Diff([]string{"linux/amd64", "linux/arm64"}, platforms); diff != "" {
		t.Errorf("platforms (-want +got):\n%s", diff)
	}
}

// checkPlatform returns what is wrong with the image for one platform.
func checkPlatform(t *testing.T, image v1.Image, arch, out string) {
	t.Helper()
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.OS != "linux" || config.Architecture != arch || config.Created.UTC().Format("2006-01-02T15:04:05Z") != "2026-01-02T03:04:05Z" {
		t.Errorf("%s: config of %s/%s, created %v", arch, config.OS, config.Architecture, config.Created)
	}
	c := config.Config
	if c.User != "65532:65532" || !cmp.Equal(c.Entrypoint, []string{"/manager"}) || len(c.Cmd)+len(c.Env)+len(c.Volumes) > 0 {
		t.Errorf("%s: config %+v", arch, c)
	}
	const prefix = "org.opencontainers.image."
	for key, want := range map[string]string{
		"version": version, "licenses": "Apache-2.0", "created": "2026-01-02T03:04:05Z", "source": "https://example.org/program",
	} {
		if got := c.Labels[prefix+key]; got != want {
			t.Errorf("%s: label %s = %q, want %q", arch, key, got, want)
		}
	}
	if len(c.Labels[prefix+"revision"]) != 40 {
		t.Errorf("%s: label revision = %q", arch, c.Labels[prefix+"revision"])
	}
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%s: %d layers, %v", arch, len(layers), err)
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = content.Close() }()
	archive := tar.NewReader(content)
	header, err := archive.Next()
	if err != nil {
		t.Fatal(err)
	}
	if header.Name != "manager" || header.Mode != 0o755 || header.Uid != 0 || header.Gid != 0 {
		t.Errorf("%s: the layer has %+v", arch, header)
	}
	program, err := io.ReadAll(archive)
	if err != nil {
		t.Fatal(err)
	}
	if want, err := os.ReadFile(binaryPath(out, arch)); err != nil || !bytes.Equal(program, want) {
		t.Errorf("%s: the layer does not have the binary: %v", arch, err)
	}
	if header, err := archive.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("%s: the layer has more: %v, %v", arch, header, err)
	}
}

// TestMaterials uses this test's own binary, because it contains modules.
func TestMaterials(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b, err := inspect(self, "amd64")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"std": b.info.GoVersion}
	for _, module := range b.info.Deps {
		want[module.Path] = module.Version
	}
	if len(want) < 5 {
		t.Fatalf("this test has few modules: %v", want)
	}
	path := filepath.Join(t.TempDir(), "bill.json")
	if err := writeJSON(path, materials(b)); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	var bom cyclonedx.BOM
	if err := cyclonedx.NewBOMDecoder(file, cyclonedx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, c := range *bom.Components {
		got[c.Name] = c.Version
		if c.Name != "std" && (c.Hashes == nil || len((*c.Hashes)[0].Value) != 64) {
			t.Errorf("%s has no hash", c.Name)
		}
		if c.PackageURL != "pkg:golang/"+c.Name+"@"+strings.ReplaceAll(c.Version, "+", "%2B") {
			t.Errorf("%s has the package URL %s", c.Name, c.PackageURL)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("modules (-binary +bill):\n%s", diff)
	}
	if refs := *(*bom.Dependencies)[0].Dependencies; len(refs) != len(want) {
		t.Errorf("%d dependencies of %d components", len(refs), len(want))
	}
}

func TestMaterialsNameWhatReplacesAModule(t *testing.T) {
	t.Parallel()
	bom := materials(binary{info: &debug.BuildInfo{Deps: []*debug.Module{{
		Path: "example.org/a", Version: "v1.0.0", Replace: &debug.Module{Path: "example.org/b", Version: "v2.0.0+incompatible"},
	}}}})
	last := (*bom.Components)[1]
	if last.PackageURL != "pkg:golang/example.org/b@v2.0.0%2Bincompatible" {
		t.Errorf("the bill has %s", last.PackageURL)
	}
}

// checkProvenance reads the statement with in-toto's own types, and compares its subjects with the files.
func checkProvenance(t *testing.T, out string) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(out, provenanceName))
	if err != nil {
		t.Fatal(err)
	}
	var s intoto.Statement
	if err := protojson.Unmarshal(content, &s); err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
	text, err := s.GetPredicate().MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	var p provenancev1.Provenance
	if err := protojson.Unmarshal(text, &p); err != nil {
		t.Fatal(err)
	}
	if err := p.Validate(); err != nil {
		t.Error(err)
	}
	source := p.GetBuildDefinition().GetResolvedDependencies()[0]
	if revision := source.GetDigest()["gitCommit"]; len(revision) != 40 || source.GetUri() != "git+https://example.org/program@"+revision {
		t.Errorf("the source is %v", source)
	}
	all := files(t, out)
	var names []string
	for _, subject := range s.GetSubject() {
		names = append(names, subject.GetName())
		want := strings.TrimPrefix(strings.TrimSpace(all["image.digest"]), "sha256:")
		if name := subject.GetName(); name != "image" {
			sum := sha256.Sum256([]byte(all[name]))
			want = hex.EncodeToString(sum[:])
		}
		if got := subject.GetDigest()["sha256"]; got != want {
			t.Errorf("%s: digest %s, want %s", subject.GetName(), got, want)
		}
	}
	want := []string{
		installerName, "image.tar", "manager-linux-amd64", "manager-linux-amd64.cdx.json",
		"manager-linux-arm64", "manager-linux-arm64.cdx.json", krewManifest,
	}
	for _, platform := range plugins() {
		want = append(want, platform.archive(), platform.archive()+".cdx.json")
	}
	want = append(want, "image")
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("subjects (-want +got):\n%s", diff)
	}
}

// checkSums lets sha256sum check a release, and then one in which a byte was changed.
func checkSums(t *testing.T, out string) {
	t.Helper()
	check := func() error {
		command := exec.CommandContext(t.Context(), "sha256sum", "--check", "--strict", "--quiet", checksumsName)
		command.Dir = out
		return command.Run()
	}
	if err := check(); err != nil {
		t.Errorf("sha256sum --check: %v", err)
	}
	sums := files(t, out)[checksumsName]
	if lines := strings.Count(sums, "\n"); lines != len(files(t, out))-1 {
		t.Errorf("%d checksums of %d files", lines, len(files(t, out))-1)
	}
	if err := os.WriteFile(filepath.Join(out, installerName), []byte("kind: Lust\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := check(); err == nil {
		t.Error("a changed file passes")
	}
}

func TestNothingIsReleasedUnderAWrongVersion(t *testing.T) {
	t.Parallel()
	image := func(root string) error {
		return run(t.Context(), []string{"image", "-root", root, "-out", t.TempDir(), "-version", "v9.9.9"})
	}
	root := project(t)
	if err := image(root); err == nil || !strings.Contains(err.Error(), "the commit is version v1.2.3, not v9.9.9") {
		t.Errorf("another version: %v", err)
	}
	if err := os.WriteFile(filepath.Join(root, "main.go"), []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := image(root); err == nil || !strings.Contains(err.Error(), "not committed") {
		t.Errorf("a changed work tree: %v", err)
	}
}

func TestCommandLine(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"publish"}, {"image", "-no-such-flag"}, {"documents", "-out", "/no/such/folder"}} {
		if err := run(t.Context(), args); err == nil {
			t.Errorf("release %v does not fail", args)
		}
	}
}
