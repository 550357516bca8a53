// Command release makes what a release consists of, in dist/: for each system an archive
// with pawl and one with pawl-cluster, each with the manual and the completions, lists of
// their parts, what people install with, and checksums. It publishes nothing.
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/ask/cli"
)

func main() {
	version := flag.String("version", "", "the `VERSION`, e.g. v1.2.0")
	targets := flag.String("targets", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64", "`SYSTEM/PROCESSOR`,…")
	out := flag.String("out", "dist", "`DIR`ectory of the archives")
	flag.Parse()
	if err := release(*version, strings.Split(*targets, ","), *out); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func release(version string, targets []string, out string) error {
	if version == "" {
		return fmt.Errorf("cannot make a release without a version: -version v1.2.0")
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	when := committed()
	docs, err := documents(cli.Root(), when)
	if err != nil {
		return err
	}
	made := map[string][]byte{}
	var programs []program
	for _, target := range targets {
		system, processor, ok := strings.Cut(target, "/")
		if !ok {
			return fmt.Errorf("cannot build for %q: write linux/amd64", target)
		}
		for _, command := range []string{"pawl", "pawl-cluster"} {
			name := fmt.Sprintf("%s-%s-%s-%s", command, version, system, processor)
			binary := filepath.Join(out, name)
			if err := build(binary, command, version, system, processor); err != nil {
				return err
			}
			files := maps.Clone(docs)
			if files[command], err = os.ReadFile(binary); err != nil {
				return err
			}
			if command == "pawl" {
				programs = append(programs, program{system, processor, files[command]})
			}
			if made[name+".cdx.json"], err = parts(binary, version); err != nil {
				return err
			}
			if made[name+".tar.gz"], err = archive(name, files, when); err != nil {
				return err
			}
			if err := os.Remove(binary); err != nil {
				return err
			}
		}
	}
	more, err := installers(version, programs, made, docs, when)
	if err != nil {
		return err
	}
	maps.Copy(made, more)
	made["SHA256SUMS"] = sums(made)
	for name, data := range made {
		if err := os.WriteFile(filepath.Join(out, name), data, 0o644); err != nil {
			return err
		}
	}
	fmt.Printf("%s", made["SHA256SUMS"])
	return nil
}

func build(binary, program, version, system, processor string) error {
	cmd := exec.CommandContext(context.Background(), "go", "build", "-trimpath",
		"-ldflags", "-s -w -X main.version="+version, "-o", binary, "./cmd/"+program)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+processor)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("cannot build for %s/%s: %v", system, processor, err)
	}
	return nil
}

// committed is the time of the commit, which all files of the archives have: the same
// source makes the same archives.
func committed() time.Time {
	out, err := exec.CommandContext(context.Background(), "git", "log", "-1", "--format=%cI").Output()
	if t, perr := time.Parse(time.RFC3339, strings.TrimSpace(string(out))); err == nil && perr == nil {
		return t
	}
	return time.Unix(0, 0)
}

// documents are the files beside the program: manual, completions, README and licence.
func documents(root *cobra.Command, when time.Time) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, name := range []string{"README.md", "LICENSE"} {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		files[name] = text
	}
	maps.Copy(files, manual(root, when))
	for name, write := range map[string]func(*bytes.Buffer) error{
		"completions/pawl.bash": func(b *bytes.Buffer) error { return root.GenBashCompletionV2(b, true) },
		"completions/_pawl":     func(b *bytes.Buffer) error { return root.GenZshCompletion(b) },
		"completions/pawl.fish": func(b *bytes.Buffer) error { return root.GenFishCompletion(b, true) },
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			return nil, err
		}
		files[name] = b.Bytes()
	}
	return files, nil
}

// archive is a tar.gz of files in one folder.
func archive(folder string, files map[string][]byte, when time.Time) ([]byte, error) {
	var b bytes.Buffer
	zip, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	tape := tar.NewWriter(zip)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		mode := fs.FileMode(0o644)
		if name == "pawl" || name == "pawl-cluster" || name == "launcher.js" {
			mode = 0o755
		}
		h := &tar.Header{Name: path.Join(folder, name), Mode: int64(mode), Size: int64(len(files[name])), ModTime: when}
		if err := tape.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := tape.Write(files[name]); err != nil {
			return nil, err
		}
	}
	if err := tape.Close(); err != nil {
		return nil, err
	}
	if err := zip.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// part is one module of a program, as CycloneDX writes it.
type part struct {
	Type    string `json:"type"`
	Name    string `json:"name"`
	Version string `json:"version"`
	Ref     string `json:"bom-ref"`
	PURL    string `json:"purl"`
}

func newPart(kind, name, version string) part {
	purl := "pkg:golang/" + name + "@" + version
	return part{kind, name, version, purl, purl}
}

// parts is the list of what is in a program (CycloneDX), as Go recorded it there.
func parts(binary, version string) ([]byte, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	list := []part{newPart("library", "std", strings.TrimPrefix(info.GoVersion, "go"))}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		list = append(list, newPart("library", m.Path, m.Version))
	}
	return json.MarshalIndent(map[string]any{
		"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
		"metadata":   map[string]any{"component": newPart("application", info.Main.Path, version)},
		"components": list,
	}, "", "  ")
}

// sums are lines for 'sha256sum -c'.
func sums(files map[string][]byte) []byte {
	var b bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(files[name]), name)
	}
	return b.Bytes()
}
