package survey

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/ask/config/statedir"
)

// onPath is a LookPath that knows only these programs.
func onPath(programs ...string) func(string) (string, error) {
	return func(name string) (string, error) {
		if slices.Contains(programs, name) {
			return "/bin/" + name, nil
		}
		return "", fmt.Errorf("%s is not here", name)
	}
}

const agentsMD = "# Agents\n\n## Quick Reference\n\n**Test:** `wrong`\n\n" +
	"## Build/Test/Lint Commands\n\n**Dependencies:** `go mod download`\n\n**Test:**\n```sh\n# all of them\n$ make deps\ngo test \\\n  ./...   # race\n```\n" +
	"Run `one` for one.\n\n- **Build**: `make all` then `make docs`\n**Lint:** Not required\n\n## Quality\n\n**Typecheck:** `wrong`\n"

func TestPropose(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		files map[string]string
		path  []string
		want  []string // name: command (kind, from)
		notes int
	}{
		{"empty", nil, nil, nil, 0},
		{"go", map[string]string{"go.mod": "module x\n"}, nil,
			[]string{"build: go build ./... (build, go.mod)", "tests: go test ./... (test, go.mod)", "lint: go vet ./... (lint, go.mod)"}, 0},
		{"go with linter", map[string]string{"go.mod": "module x\n", ".golangci.yml": ""}, []string{"golangci-lint"},
			[]string{"build: go build ./... (build, go.mod)", "tests: go test ./... (test, go.mod)", "lint: golangci-lint run (lint, .golangci.yml)"}, 0},
		{"npm", map[string]string{"package.json": `{"scripts": {"test": "vitest", "lint": "eslint .", "typecheck": "tsc", "start": "x"}}`, "package-lock.json": ""}, nil,
			[]string{"typecheck: npm run typecheck (typecheck, package.json)", "tests: npm test (test, package.json)", "lint: npm run lint (lint, package.json)"}, 0},
		{"npm init", map[string]string{"package.json": `{"scripts": {"test": "echo \"Error: no test specified\" && exit 1"}}`}, nil, nil, 0},
		{"pnpm", map[string]string{"package.json": `{"scripts": {"test": "x", "type-check": "tsc"}}`, "pnpm-lock.yaml": ""}, nil,
			[]string{"typecheck: pnpm run type-check (typecheck, package.json)", "tests: pnpm run test (test, package.json)"}, 0},
		{"yarn declared", map[string]string{"package.json": `{"packageManager": "yarn@4.1.0", "scripts": {"build": "x"}}`}, nil,
			[]string{"build: yarn run build (build, package.json)"}, 0},
		{"broken package", map[string]string{"package.json": `{`}, nil, nil, 0},
		{"uv", map[string]string{"pyproject.toml": "[tool.pytest.ini_options]\n[tool.ruff]\n[tool.mypy]\n", "uv.lock": ""}, nil,
			[]string{"typecheck: uv run --with mypy mypy . (typecheck, the mypy configuration)", "tests: uv run --with pytest pytest (test, pyproject.toml)", "lint: uv run --with ruff ruff check --no-fix (lint, the ruff configuration)"}, 0},
		{"tox", map[string]string{"tox.ini": "[testenv]\n"}, nil, []string{"tests: .venv/bin/tox -e py (test, tox.ini)"}, 0},
		{"the first of two workflows", map[string]string{
			".github/workflows/b.yml":  "jobs: {a: {steps: [{run: ./test b}]}}",
			".github/workflows/a.yaml": "jobs: {a: {steps: [{run: ./test a}]}}",
		}, nil, []string{"tests: ./test a (test, .github/workflows/a.yaml)"}, 0},
		{"setup.cfg", map[string]string{"setup.cfg": "[tool:pytest]\n[flake8]\n"}, nil,
			[]string{"tests: .venv/bin/pytest (test, setup.cfg)", "lint: .venv/bin/flake8 (lint, the flake8 configuration)"}, 0},
		{"unittest", map[string]string{"setup.py": "", "tests/test_a.py": ""}, nil,
			[]string{"tests: python3 -m unittest discover -s tests (test, the folder of tests)"}, 0},
		{"cargo", map[string]string{"Cargo.toml": ""}, nil,
			[]string{"build: cargo build (build, Cargo.toml)", "tests: cargo test (test, Cargo.toml)", "lint: cargo clippy --all-targets -- -D warnings (lint, Cargo.toml)"}, 0},
		{"maven", map[string]string{"pom.xml": "", "mvnw": ""}, nil, []string{"tests: ./mvnw -B -ntp test (test, mvnw)"}, 0},
		{"gradle", map[string]string{"build.gradle.kts": "", "gradlew": ""}, nil, []string{"tests: ./gradlew test (test, gradlew)"}, 0},
		{"two languages", map[string]string{"Cargo.toml": "", "pom.xml": ""}, nil,
			[]string{"build: cargo build (build, Cargo.toml)", "tests: cargo test (test, Cargo.toml)", "tests-mvn: mvn -B -ntp test (test, pom.xml)",
				"lint: cargo clippy --all-targets -- -D warnings (lint, Cargo.toml)"}, 0},
		{"make wins", map[string]string{"go.mod": "", "Makefile": "TEST := 1\ntest: build\n\tgo test\nlint:\n\tx\nbuild: ; x\n"}, nil,
			[]string{"build: go build ./... (build, go.mod)", "tests: make test (test, Makefile)", "lint: make lint (lint, Makefile)"}, 0},
		{"make check", map[string]string{"Makefile": "check:\n\tx\ntest := no\n"}, nil, []string{"tests: make check (test, Makefile)"}, 0},
		{"AGENTS.md wins", map[string]string{"go.mod": "", "Makefile": "test:\nlint:\n", "AGENTS.md": agentsMD}, nil,
			[]string{"build: make all && make docs (build, AGENTS.md)", "tests: make deps && go test ./... (test, AGENTS.md)"}, 1},
		{"manual", map[string]string{"go.mod": "", "AGENTS.md": "### Build/Test/Lint Commands\n**Test**: Manual verification\n**Lint**: None\n**Build**: not required\n"}, nil, nil, 3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := write(t, write(t, tempDir(t), tt.files), map[string]string{tested: ""})
			p, err := Of(dir, []string{"codex", "cursor"}, onPath(tt.path...))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, g := range p.Gates {
				got = append(got, fmt.Sprintf("%s: %s (%s, %s)", g.Name, g.Command, g.Kind, g.From))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("gates:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
			if p.Agent != "codex" || !slices.Equal(p.Others, []string{"cursor"}) || len(p.Notes) != tt.notes {
				t.Errorf("agent %q, others %q, notes %q", p.Agent, p.Others, p.Notes)
			}
			roundTrip(t, dir, p)
		})
	}
}

// roundTrip loads what a proposal writes and compares the gates.
func roundTrip(t *testing.T, dir string, p Proposal) {
	t.Helper()
	path := filepath.Join(dir, statedir.FileName)
	if err := config.WriteNew(path, p.YAML()); err != nil {
		t.Fatal(err)
	}
	o := config.Options{
		Dir: dir, Env: []string{"HOME=" + filepath.Join(dir, "nobody")},
		Agents:  []string{"claude", "codex", "gemini", "cursor"},
		Builtin: func(string) (string, bool) { return "text", true },
	}
	c, err := config.Load(o)
	if err != nil {
		t.Fatalf("the proposal does not load: %v\n%s", err, p.YAML())
	}
	if len(c.Verification.Commands) != len(p.Gates) || !slices.Equal(c.Verification.Protect, p.Protect) || !slices.Equal(c.Workspace.Setup, p.Setup) {
		t.Errorf("%d gates, protect %q, setup %q", len(c.Verification.Commands), c.Verification.Protect, c.Workspace.Setup)
	}
	for i, g := range c.Verification.Commands {
		if !reflect.DeepEqual(g, p.Gates[i].Gate) {
			t.Errorf("gate %+v, want %+v", g, p.Gates[i].Gate)
		}
	}
	if b := c.Procedures["build"]; len(b.Observe) == 0 || len(b.Act) == 0 || *b.MaxIterations != 10 {
		t.Errorf("build = %+v", b)
	}
}

// Commands and names of any sort survive the way through YAML.
func TestProposalQuotes(t *testing.T) {
	t.Parallel()
	commands := []string{`echo "a: b" # c`, `- x`, "true", "null", `a\b`, "é 日本", "@x", "{a}", "x: y", "5", "'", "&a", "!x", "%", "a\tb", "yes", "1e3", "~"}
	p := Proposal{}
	for i, command := range commands {
		g := newGateOfKind("test", command, "a\nfile")
		g.Name = fmt.Sprintf("gate %d: #", i)
		p.Gates = append(p.Gates, g)
	}
	p.Setup, p.Protect, p.Notes = commands, commands, []string{"two\nlines"}
	p.Protect = p.Protect[1:]
	roundTrip(t, tempDir(t), p)
}

func TestProposalText(t *testing.T) {
	t.Parallel()
	dir := write(t, tempDir(t), map[string]string{"package.json": `{"scripts": {"test": "vitest", "lint": "eslint"}}`, "package-lock.json": "",
		".github/workflows/ci.yml": "", "Cargo.toml": "", tested: ""})
	p, err := Of(dir, []string{"claude", "gemini"}, onPath())
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/proposal.txt", string(p.YAML()))
	p, err = Of(tempDir(t), nil, onPath())
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/proposal_empty.txt", string(p.YAML()))
	roundTrip(t, tempDir(t), p)
	if _, err := Of(filepath.Join(dir, "missing"), nil, onPath()); err == nil {
		t.Error("a missing folder was looked at")
	}
}

// A command that changes files is no gate, wherever it comes from and whatever calls it.
func TestNoGateEditsFiles(t *testing.T) {
	t.Parallel()
	for command, isGate := range map[string]bool{
		"eslint .": true, "eslint --fix .": false, "eslint . --fix=true": false, "eslint . --fix=false": true, "eslint --fix-dry-run .": true,
		"prettier --check .": true, "prettier --write .": false, "biome check --apply .": false, "biome ci .": true,
		"ruff check": true, "ruff check --fix": false, "ruff format": false, "ruff format --check": true, "black .": false, "black --check .": true,
		"gofmt -l .": true, "gofmt -s -w .": false, "test -z \"$(gofmt -l .)\"": true, "goimports -w a.go": false, "golangci-lint run": true,
		"golangci-lint run --fix": false, "go vet ./...": true, "go mod tidy": false, "go mod tidy -diff": true, "go generate ./...": false,
		"bundle exec rubocop": true, "rubocop -A": false, "rubocop --autocorrect-all": false, "rubocop -a lib": false, "rubocop --auto-correct": false,
		"cargo fmt": false, "cargo fmt --check": true, "cargo fmt -- --check": true, "cargo clippy": true, "cargo clippy --fix": false,
		"phpcs": true, "phpcbf": false, "php-cs-fixer fix": false, "php-cs-fixer fix --dry-run": true, "pint --test": true, "pint": false,
		"mvn spotless:check": true, "mvn spotless:apply": false, "./gradlew ktlintFormat": false, "ktlint": true, "ktlint -F": false,
		"dart format .": false, "dart format --set-exit-if-changed .": true, "terraform fmt -check": true, "terraform fmt": false,
		"clang-format -i src/*.c": false, "clang-format --dry-run -Werror a.c": true, "jest -w 2": true, "npm test -w packages/a": true,
		"jest --updateSnapshot": false, "grep -w x y": true, "$(MISSPELL) -w docs": false, "shfmt -d .": true, "pre-commit run -a": false,
		"stylelint --fix '**/*.css'": false, "swiftformat --lint .": true, "swiftformat .": false, "sed -i s/a/b/ x": false,
	} {
		files := map[string]map[string]string{
			"AGENTS.md":    {"AGENTS.md": "## Build/Test/Lint Commands\n\n**Lint:** `" + command + "`\n"},
			"through make": {"AGENTS.md": "## Build/Test/Lint Commands\n\n**Lint:** `make lint`\n", "Makefile": "lint: one two\none:\n\ttrue\ntwo: three/x\nthree/%:\n\t@" + command + "\n"},
			"package.json": {"package.json": fmt.Sprintf(`{"scripts": {"lint": "npm run style", "style": %q}}`, command)},
			"Makefile":     {"Makefile": "lint: style\nstyle:\n\t" + command + "\n"},
		}
		for from, tree := range files {
			p, err := Of(write(t, tempDir(t), tree), nil, onPath())
			if err != nil {
				t.Fatal(err)
			}
			if got := hasGateOfKind(p.Gates, "lint"); got != isGate {
				t.Errorf("%s: %s is a gate: %v, want %v; notes %q", from, command, got, isGate, p.Notes)
			}
		}
	}
}

// A module below the root that its tests do not reach is named; tools that are written in
// another language are no reason to set that up.
func TestModulesBelow(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files       map[string]string
		note, setup string
	}{
		"go":           {map[string]string{"go.mod": "module x\n", "sdk/go.mod": "module y\n"}, "Left out: sdk", ""},
		"go.work":      {map[string]string{"go.mod": "module x\n", "go.work": "use .\nuse ./sdk\n", "sdk/go.mod": "module y\n"}, "", ""},
		"make":         {map[string]string{"go.mod": "module x\n", "Makefile": "test:\n\t./all\n", "sdk/go.mod": "module y\n"}, "", ""},
		"rust":         {map[string]string{"Cargo.toml": "[package]\n", "bindings/Cargo.toml": "[package]\n"}, "Left out: bindings", "cargo fetch"},
		"a workspace":  {map[string]string{"Cargo.toml": "[workspace]\n", "core/Cargo.toml": "[package]\n"}, "", "cargo fetch"},
		"other tools":  {map[string]string{"go.mod": "module x\n", "requirements.txt": "codespell\n"}, "", ""},
		"needed tools": {map[string]string{"go.mod": "module x\n", "requirements.txt": "codespell\n", "Makefile": "lint:\n\tpython -m codespell\n"}, "", "pip install"},
	} {
		p, err := Of(write(t, tempDir(t), c.files), nil, onPath())
		if err != nil {
			t.Fatal(err)
		}
		notes, setup := strings.Join(p.Notes, "\n"), strings.Join(p.Setup, "\n")
		if strings.Contains(notes, "Left out") != (c.note != "") || !strings.Contains(notes, c.note) {
			t.Errorf("%s: the notes are %q, want %q", name, notes, c.note)
		}
		if (setup == "") != (c.setup == "") || !strings.Contains(setup, c.setup) {
			t.Errorf("%s: the set-up is %q, want %q", name, setup, c.setup)
		}
	}
}

// Every project below the root has gates or is named, however deep it lies; what others wrote is not. Gates that
// find no tests are no gates that must be green.
func TestProjectsBelow(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files string // "path=text" words
		left  string // the folders of the note
		tests string // the tests' gates; a question mark marks a warning
	}{
		"two deep":          {"go.mod= a_test.go= svc/go.mod= sub/x/go.mod=", "sub/x, svc", "go test ./..."},
		"alone, two deep":   {"go.mod= a_test.go= sub/x/go.mod=", "sub/x", "go test ./..."},
		"by make":           {"go.mod= a_test.go= Makefile=test:;go_test_./... sub/x/go.mod=", "sub/x", "make test"},
		"make goes there":   {"go.mod= a_test.go= Makefile=test:;go_test_./...&&go_test_-C_sub/x_./... sub/x/go.mod=", "", "make test"},
		"no tests at all":   {"sub/x/go.mod= sub/x/a_test.go=", "", "cd sub/x && go test ./..."},
		"tests below alone": {"go.mod= sub/x/go.mod= sub/x/a_test.go= y/go.mod=", "y", "go test ./...? cd sub/x && go test ./..."},
		"outside of go.work": {"go.work=use_.|use_./a go.mod= a_test.go= a/go.mod= providers/b/go.mod= examples/go.mod=", "examples, providers/b",
			"go test ./... ./a/..."},
		"of others": {"go.mod= a_test.go= vendor/a/go.mod= web/node_modules/a/package.json={} internal/testdata/go.mod= .cache/a/go.mod= " +
			"a/b/c/d/e/f/go.mod=", "", "go test ./..."},
		"gems": {"Gemfile= .rspec= rack-protection/Gemfile= rack-protection/.rspec= contrib/x.gemspec=", "contrib, rack-protection",
			"bundle exec rspec"},
		"python": {"pyproject.toml=[tool.pytest] test_a.py= plugins/foo/pyproject.toml=[project] lib/test_b.py=", "plugins/foo",
			".venv/bin/pytest"},
		"node": {`package.json={"workspaces":["packages/*"],"scripts":{"test":"x"}} packages/a/package.json={"scripts":{"test":"x"}} ` +
			`more/b/package.json={"scripts":{"test":"x"}} more/c/package.json={}`, "more/b", "npm test"},
		"rust": {"Cargo.toml=[workspace] crates/a/Cargo.toml= crates/a/tests/a.rs=", "", "cargo test --workspace"},
		"java": {"pom.xml= core/pom.xml= core/a/pom.xml=", "", "mvn -B -ntp test"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{}
			for _, word := range strings.Fields(c.files) {
				file, text, _ := strings.Cut(word, "=")
				files[file] = strings.NewReplacer("_", " ", "|", "\n").Replace(text)
			}
			p, err := Of(write(t, tempDir(t), files), nil, onPath())
			if err != nil {
				t.Fatal(err)
			}
			var tests []string
			for _, g := range p.Gates {
				if g.Kind != "test" {
					continue
				}
				mark := ""
				if !g.Required {
					mark = "?"
				}
				tests = append(tests, g.Command+mark)
			}
			left := ""
			for _, n := range p.Notes {
				if rest, is := strings.CutPrefix(n, "Left out: "); is {
					left, _, _ = strings.Cut(rest, ";")
				}
			}
			if left != c.left || strings.Join(tests, " ") != c.tests {
				t.Errorf("left out %q, want %q; tests %q, want %q; notes %q", left, c.left, tests, c.tests, p.Notes)
			}
		})
	}
}

// A task whose tools lie in a home folder cannot work elsewhere; another way to test is taken.
func TestNoGateInHome(t *testing.T) {
	t.Parallel()
	for name, makefile := range map[string]string{
		"a variable of a variable": "env=~/.virtualenvs/colorama\npython=$(env)/bin/python\ntest:\n\t$(python) -m unittest\n",
		"HOME":                     "test:\n\t$(HOME)/bin/check\n",
		"of the shell":             "test:\n\t$$HOME/bin/check\n",
		"of a person":              "test:\n\t/home/jo/bin/check\n",
		"through another":          "test: all\nall:\n\t~/bin/check\n",
	} {
		p, err := Of(write(t, tempDir(t), map[string]string{"go.mod": "", "Makefile": makefile, tested: ""}), nil, onPath())
		if err != nil {
			t.Fatal(err)
		}
		notes := strings.Join(p.Notes, " ")
		if !slices.ContainsFunc(p.Gates, func(g Gate) bool { return g.Command == "go test ./..." }) || !strings.Contains(notes, inHome) {
			t.Errorf("%s: gates %v, notes %q", name, p.Gates, notes)
		}
	}
	p, err := Of(write(t, tempDir(t), map[string]string{"Makefile": "D=/tmp/x\ntest:\n\t/usr/bin/env python a~/b $(D)\n"}), nil, onPath())
	if err != nil || len(p.Gates) != 1 {
		t.Errorf("gates %v, notes %q, %v", p.Gates, p.Notes, err)
	}
}
