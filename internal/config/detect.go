package config

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/trust"
)

// repository is a root folder that is looked at, read only.
type repository string

// has is true if any of the files exists.
func (r repository) has(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		_, err := os.Stat(filepath.Join(string(r), name))
		return err == nil
	})
}

// text is a file's text; "" if it cannot be read: nothing is found in it then.
func (r repository) text(name string) string {
	text := trust.Read(string(r), filepath.Join(string(r), name)).Text
	return strings.ReplaceAll(text, "\r\n", "\n")
}

func found(kind, command, from string) ProposedGate {
	names := map[string]string{"test": "tests"}
	name := names[kind]
	if name == "" {
		name = kind
	}
	timeout := Duration(5 * time.Minute)
	if kind == "test" || kind == "build" {
		timeout = Duration(10 * time.Minute)
	}
	return ProposedGate{Gate{Name: name, Command: command, Kind: kind, Timeout: timeout, Required: true}, from}
}

// makeTarget is a rule's line: a name, a colon, and no assignment.
var makeTarget = lazily(`(?m)^([A-Za-z0-9_-]+)[ \t]*:(?:[^=]|$)`)

// makefile finds the targets test (else check), lint and typecheck.
func (r repository) makefile() []ProposedGate {
	for _, name := range []string{"GNUmakefile", "makefile", "Makefile"} {
		targets := map[string]bool{}
		for _, m := range makeTarget().FindAllStringSubmatch(r.text(name), -1) {
			targets[m[1]] = true
		}
		var gates []ProposedGate
		switch {
		case targets["test"]:
			gates = append(gates, found("test", "make test", name))
		case targets["check"]:
			gates = append(gates, found("test", "make check", name))
		}
		for _, kind := range []string{"lint", "typecheck"} {
			if targets[kind] {
				gates = append(gates, found(kind, "make "+kind, name))
			}
		}
		if len(gates) > 0 {
			return gates
		}
	}
	return nil
}

// tools finds the gates of every language in the repository.
func (r repository) tools(lookPath func(string) (string, error)) []ProposedGate {
	return slices.Concat(r.goModule(lookPath), r.node(), r.python(), r.cargo(), r.java())
}

func (r repository) goModule(lookPath func(string) (string, error)) []ProposedGate {
	if !r.has("go.mod") {
		return nil
	}
	gates := []ProposedGate{found("build", "go build ./...", "go.mod"), found("test", "go test ./...", "go.mod")}
	lint := []string{".golangci.yml", ".golangci.yaml", ".golangci.toml", ".golangci.json"}
	if _, err := lookPath("golangci-lint"); err == nil && r.has(lint...) {
		return append(gates, found("lint", "golangci-lint run", "the golangci-lint configuration"))
	}
	return append(gates, found("lint", "go vet ./...", "go.mod"))
}

// lockFiles say which package manager is used, and what a fresh clone needs.
var lockFiles = []struct{ file, manager, install string }{
	{"pnpm-lock.yaml", "pnpm", "pnpm install --frozen-lockfile"},
	{"yarn.lock", "yarn", "yarn install --frozen-lockfile"},
	{"bun.lock", "bun", "bun install --frozen-lockfile"},
	{"bun.lockb", "bun", "bun install --frozen-lockfile"},
	{"package-lock.json", "npm", "npm ci"},
	{"npm-shrinkwrap.json", "npm", "npm ci"},
}

// packageManager is npm unless a lock file or package.json says otherwise.
func (r repository) packageManager(declared string) string {
	for _, l := range lockFiles {
		if r.has(l.file) {
			return l.manager
		}
	}
	name, _, _ := strings.Cut(declared, "@")
	if slices.Contains([]string{"pnpm", "yarn", "bun"}, name) {
		return name
	}
	return "npm"
}

func (r repository) node() []ProposedGate {
	var pkg struct {
		Scripts        map[string]string `json:"scripts"`
		PackageManager string            `json:"packageManager"`
	}
	if json.Unmarshal([]byte(r.text("package.json")), &pkg) != nil {
		return nil
	}
	manager := r.packageManager(pkg.PackageManager)
	var gates []ProposedGate
	for _, s := range []struct{ kind, script string }{
		{"build", "build"}, {"typecheck", "typecheck"}, {"typecheck", "type-check"}, {"test", "test"}, {"lint", "lint"},
	} {
		body := pkg.Scripts[s.script]
		// npm init writes a test script that always fails.
		if body == "" || strings.Contains(body, "no test specified") || hasKind(gates, s.kind) {
			continue
		}
		command := manager + " run " + s.script
		if s.script == "test" && manager == "npm" {
			command = "npm test"
		}
		gates = append(gates, found(s.kind, command, "package.json"))
	}
	return gates
}

func (r repository) python() []ProposedGate {
	project, setup, tox := r.text("pyproject.toml"), r.text("setup.cfg"), r.text("tox.ini")
	if project == "" && setup == "" && tox == "" && !r.has("setup.py", "pytest.ini", "requirements.txt") {
		return nil
	}
	run := ""
	for _, tool := range []string{"uv", "poetry", "pdm"} {
		if r.has(tool + ".lock") {
			run = tool + " run "
			break
		}
	}
	var gates []ProposedGate
	for _, g := range []struct {
		used                bool
		kind, command, from string
	}{
		{r.has("pytest.ini"), "test", "pytest", "pytest.ini"},
		{strings.Contains(project, "pytest"), "test", "pytest", "pyproject.toml"},
		{strings.Contains(setup, "[tool:pytest]"), "test", "pytest", "setup.cfg"},
		{strings.Contains(tox, "[testenv") || strings.Contains(project, "[tool.tox"), "test", "tox", "tox.ini"},
		{r.has("conftest.py", "tests/conftest.py"), "test", "pytest", "conftest.py"},
		{r.has("tests", "test"), "test", "python3 -m unittest discover", "the folder of tests"},
		{strings.Contains(project, "[tool.ruff") || r.has("ruff.toml", ".ruff.toml"),
			"lint", "ruff check .", "the ruff configuration"},
		{strings.Contains(setup, "[flake8]") || r.has(".flake8"), "lint", "flake8", "the flake8 configuration"},
		{strings.Contains(project, "[tool.mypy") || strings.Contains(setup, "[mypy") || r.has("mypy.ini", ".mypy.ini"),
			"typecheck", "mypy .", "the mypy configuration"},
	} {
		if g.used && !hasKind(gates, g.kind) {
			gates = append(gates, found(g.kind, run+g.command, g.from))
		}
	}
	return gates
}

func (r repository) cargo() []ProposedGate {
	if !r.has("Cargo.toml") {
		return nil
	}
	lint := found("lint", "cargo clippy --all-targets -- -D warnings", "Cargo.toml")
	lint.Required = r.has("clippy.toml", ".clippy.toml")
	return []ProposedGate{found("build", "cargo build", "Cargo.toml"), found("test", "cargo test", "Cargo.toml"), lint}
}

func (r repository) java() []ProposedGate {
	var gates []ProposedGate
	if r.has("pom.xml") {
		tool := "mvn"
		if r.has("mvnw") {
			tool = "./mvnw"
		}
		gates = append(gates, found("test", tool+" -B -q test", "pom.xml"))
	}
	for _, name := range []string{"build.gradle", "build.gradle.kts"} {
		if !r.has(name) {
			continue
		}
		tool := "gradle"
		if r.has("gradlew") {
			tool = "./gradlew"
		}
		return append(gates, found("test", tool+" test", name))
	}
	return gates
}

// protected are the files of the checks that run elsewhere.
func (r repository) protected() []string {
	var globs []string
	for _, f := range []struct{ file, glob string }{
		{".github/workflows", ".github/**"}, {".gitlab-ci.yml", ".gitlab-ci.yml"}, {".circleci", ".circleci/**"},
		{"Jenkinsfile", "Jenkinsfile"}, {"azure-pipelines.yml", "azure-pipelines.yml"},
	} {
		if r.has(f.file) {
			globs = append(globs, f.glob)
		}
	}
	return globs
}

// setup is what a fresh clone needs before its gates can run.
func (r repository) setup() []string {
	if !r.has("package.json") {
		return nil
	}
	for _, l := range lockFiles {
		if r.has(l.file) {
			return []string{l.install}
		}
	}
	return nil
}
