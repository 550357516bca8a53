package main

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"text/template"
	"time"
)

// This file makes what people install with: a script, a formula, packages of npm and a
// container file. Each names the archives or the programs of this release.

// from is where the files of a release are.
const from = "https://github.com/pawl-dev/pawl/releases/download/"

var (
	//go:embed install.sh
	installScript string
	//go:embed Containerfile
	containerFile string
	//go:embed formula.rb.tmpl
	formulaText string
	//go:embed launcher.js
	launcher []byte
)

// program is pawl for one system.
type program struct {
	system, processor string
	binary            []byte
}

// installers are those for programs whose archives were made.
func installers(version string, programs []program, made, docs map[string][]byte, when time.Time,
) (map[string][]byte, error) {
	all := map[string][]byte{
		"install.sh":    []byte(strings.ReplaceAll(installScript, "version=VERSION", "version="+version)),
		"Containerfile": []byte(strings.ReplaceAll(containerFile, "VERSION", version)),
	}
	var err error
	if all["pawl.rb"], err = formula(version, programs, made); err != nil {
		return nil, err
	}
	platforms := map[string]string{}
	for _, p := range programs {
		name, packed, err := platformPackage(version, p, docs, when)
		if err != nil {
			return nil, err
		}
		platforms[name] = number(version)
		all[packageFile(name, version)] = packed
	}
	main, err := npmPackage(map[string]any{
		"name": "@pawl-dev/pawl", "bin": map[string]string{"pawl": "launcher.js"}, "optionalDependencies": platforms,
	}, version, map[string][]byte{
		"launcher.js": launcher, "README.md": docs["README.md"], "LICENSE": docs["LICENSE"],
	}, when)
	all[packageFile("@pawl-dev/pawl", version)] = main
	return all, err
}

func number(version string) string { return strings.TrimPrefix(version, "v") }

// packageFile is what npm pack calls the file of a package.
func packageFile(name, version string) string {
	return "npm-" + strings.TrimPrefix(name, "@pawl-dev/") + "-" + number(version) + ".tgz"
}

// formula is that of Homebrew.
func formula(version string, programs []program, made map[string][]byte) ([]byte, error) {
	type archive struct{ Processor, URL, Sum string }
	type system struct {
		Name     string
		Archives []archive
	}
	var systems []system
	for _, name := range []string{"linux", "darwin"} {
		s := system{Name: map[string]string{"linux": "linux", "darwin": "macos"}[name]}
		for _, p := range programs {
			file := fmt.Sprintf("pawl-%s-%s-%s.tar.gz", version, p.system, p.processor)
			if p.system == name {
				processor := map[string]string{"amd64": "intel", "arm64": "arm"}[p.processor]
				sum := fmt.Sprintf("%x", sha256.Sum256(made[file]))
				s.Archives = append(s.Archives, archive{processor, from + version + "/" + file, sum})
			}
		}
		if len(s.Archives) > 0 {
			systems = append(systems, s)
		}
	}
	var b bytes.Buffer
	err := template.Must(template.New("formula").Parse(formulaText)).Execute(&b, map[string]any{
		"Number": number(version), "Systems": systems,
	})
	return b.Bytes(), err
}

// platformPackage holds the program of one system; npm takes none for another.
func platformPackage(version string, p program, docs map[string][]byte, when time.Time,
) (name string, packed []byte, err error) {
	cpu := map[string]string{"amd64": "x64", "arm64": "arm64"}[p.processor]
	name = "@pawl-dev/pawl-" + p.system + "-" + cpu
	packed, err = npmPackage(map[string]any{"name": name, "os": []string{p.system}, "cpu": []string{cpu}}, version,
		map[string][]byte{"pawl": p.binary, "LICENSE": docs["LICENSE"]}, when)
	return name, packed, err
}

func npmPackage(manifest map[string]any, version string, files map[string][]byte, when time.Time) ([]byte, error) {
	manifest["version"], manifest["license"] = number(version), "Apache-2.0"
	manifest["description"] = "Run AI coding agents in bounded, verified iterations"
	manifest["repository"] = map[string]string{"type": "git", "url": "git+https://github.com/pawl-dev/pawl.git"}
	text, err := json.MarshalIndent(manifest, "", "  ")
	if err != nil {
		return nil, err
	}
	files["package.json"] = append(text, '\n')
	return archive("package", files, when)
}
