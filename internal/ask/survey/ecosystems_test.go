package survey

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The conditions of the table can be read, and no rule stands behind one that always
// takes its place.
func TestRulesCanBeReached(t *testing.T) {
	t.Parallel()
	taken := map[string]string{}
	for _, r := range rules() {
		for _, condition := range strings.Fields(r.when) {
			if _, expr, has := strings.Cut(condition, "~"); has {
				if _, err := regexp.Compile(expr); err != nil {
					t.Errorf("%s %s: %v", r.group, r.kind, err)
				}
			}
		}
		key := r.group + " " + strings.Replace(r.kind, "warn", "lint", 1)
		if before, is := taken[key]; is && r.kind != "setup" && strings.HasPrefix(r.when, before+" ") {
			t.Errorf("%s %q is never reached: %q comes first", key, r.when, before)
		}
		taken[key] = r.when
	}
}

// What is proposed for kinds of projects: set-up, gates and notes.
func TestProposeKinds(t *testing.T) {
	t.Parallel()
	const scripts = `{"scripts": {"test": "node --test"}, "devDependencies": {"x": "1"}}`
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  []string // "$ set-up", "kind: command", "kind? command" of an optional one, "- note"
	}{
		{"deno", map[string]string{"deno.json": "{}"}, []string{"test: deno test --allow-all", "lint: deno lint"}},
		{"deno with tasks", map[string]string{"deno.jsonc": `{"tasks": {"test": "deno test -A", "lint": "deno lint && x"}}`},
			[]string{"test: deno task test", "lint: deno task lint"}},
		{"deno with options", map[string]string{"deno.json": `{"tasks": {"dev": "x"}, "test": {"exclude": ["a"]}}`},
			[]string{"test: deno test --allow-all", "lint: deno lint"}},
		{"npm without lock", map[string]string{"package.json": scripts},
			[]string{"$ npm install --no-package-lock --no-audit --no-fund", "test: npm test"}},
		{"npm without dependencies", map[string]string{"package.json": `{"scripts": {"test": "bin/bats test"}}`, "test/a.bats": ""},
			[]string{"test: npm test"}},
		{"submodules", map[string]string{"go.mod": "", "go.sum": "", ".gitmodules": ""},
			[]string{"$ git -c submodule.active=. submodule update --recursive", "$ go mod download",
				"build: go build ./...", "test: go test ./...", "lint: go vet ./..."}},
		{"pnpm", map[string]string{"package.json": scripts, "pnpm-lock.yaml": ""},
			[]string{"$ pnpm install --frozen-lockfile", "test: pnpm run test"}},
		{"yarn 1", map[string]string{"package.json": scripts, "yarn.lock": ""},
			[]string{"$ yarn install --frozen-lockfile", "test: yarn run test"}},
		{"yarn berry, as package.json says", map[string]string{"yarn.lock": "", "package.json": `{"packageManager": "yarn@4.1.0", "scripts": {"test": "jest"}}`},
			[]string{"$ yarn install --immutable", "test: yarn run test"}},
		{"yarn 1, as package.json says", map[string]string{"package.json": `{"packageManager": "yarn@1.22.0", "dependencies": {"x": "1"}, "scripts": {"test": "jest"}}`},
			[]string{"$ yarn install --no-lockfile", "test: yarn run test"}},
		{"yarn berry", map[string]string{"package.json": scripts, "yarn.lock": "", ".yarnrc.yml": ""},
			[]string{"$ yarn install --immutable", "test: yarn run test"}},
		{"bun", map[string]string{"package.json": `{}`, "bun.lock": "", "a.test.ts": ""},
			[]string{"$ bun install --frozen-lockfile", "test: bun test"}},
		{"scripts that edit or stay", map[string]string{"package.json": `{"scripts": {"test": "jest --watch", "test:ci": "jest",
			"lint": "npm run style", "style": "eslint --fix .", "lint:check": "eslint ."}}`},
			[]string{"test: npm run test:ci", "lint: npm run lint:check",
				"- package.json: test does not end by itself, so it is not a gate.",
				"- package.json: lint edits files, which a gate must not do, so it is not a gate."}},
		{"npm scripts that one starts together", map[string]string{"package-lock.json": "", "package.json": `{"scripts": {
			"build": "npm-run-all clean -p bundle -s docs", "docs": "documentation readme src", "test": "run-s unit", "unit": "node --test"}}`},
			[]string{"$ npm ci", "test: npm test",
				"- package.json: build edits files, which a gate must not do, so it is not a gate."}},
		{"npm workspaces", map[string]string{"package.json": `{"workspaces": ["packages/*"], "scripts": {"lint": "eslint ."}}`,
			"package-lock.json": "", "packages/a/package.json": scripts, "packages/b/package.json": `{}`},
			[]string{"$ npm ci", "test: npm run test --workspaces --if-present", "lint: npm run lint",
				"- Monorepo of npm (packages/a, packages/b): what the root has no script for runs in every package that has one."}},
		{"pnpm workspace", map[string]string{"package.json": scripts, "pnpm-lock.yaml": "",
			"pnpm-workspace.yaml": "packages: ['apps/*', '!apps/old']\n", "apps/web/package.json": scripts},
			[]string{"$ pnpm install --frozen-lockfile", "test: pnpm run test",
				"- Monorepo of pnpm (apps/web): the gates are the scripts of the root's package.json."}},
		{"parts", map[string]string{"backend/go.mod": "module x\n", "backend/a_test.go": "", "frontend/test/a.js": "", "frontend/package.json": scripts,
			"frontend/package-lock.json": "", "docs/package.json": scripts},
			[]string{"$ cd frontend && npm ci", "build: cd backend && go build ./...", "test: cd backend && go test ./...",
				"test: cd frontend && npm test", "lint: cd backend && go vet ./...",
				"- The root has no tests of its own; the gates come from backend, frontend.",
				`- Left out: docs; add a gate such as "cd docs && …" if agents work there.`}},
		{"a part beside the root", map[string]string{"go.mod": "module x\n", "web/package.json": scripts},
			[]string{"build: go build ./...", "test: go test ./...", "lint: go vet ./...",
				`- Left out: web; add a gate such as "cd web && …" if agents work there.`}},
		{"go workspace", map[string]string{"go.work": "go 1.22\n\nuse (\n\t./a\n\t./b\n)\n", "a/go.mod": "module a\n", "b/go.mod": "module b\n"},
			[]string{"build: go build ./a/... ./b/...", "test: go test ./a/... ./b/...", "lint: go vet ./a/... ./b/...",
				"- Go workspace: the gates cover the modules that go.work uses."}},
		{"click", map[string]string{"uv.lock": "", "pyproject.toml": "[dependency-groups]\ndev = [\n    \"ruff\",\n]\ntests = [\n    \"pytest\",\n]\n" +
			"typing = [\n    \"mypy\",\n]\n[tool.mypy]\nfiles = [\"src\"]\n[tool.ruff]\nfix = true\n"},
			[]string{"$ uv sync --frozen --group tests --group typing", "typecheck: uv run mypy", "test: uv run pytest",
				"lint: uv run ruff check --no-fix"}},
		{"pip", map[string]string{"pyproject.toml": "[project]\nname = \"x\"\n[project.optional-dependencies]\ntest = [\"pytest\"]\ndocs = [\"sphinx\"]\n" +
			"[tool.ruff]\n", ".pre-commit-config.yaml": "repos:\n  - repo: https://example.org/ruff-pre-commit\n    rev: v0.4.2\n"},
			[]string{"$ python3 -m venv .venv", "$ echo '*' > .venv/.gitignore", "$ .venv/bin/pip install -q -e '.[test]' ruff==0.4.2",
				"test: .venv/bin/pytest", "lint: .venv/bin/ruff check --no-fix"}},
		{"pip, dotted keys", map[string]string{"pyproject.toml": "[project]\nname = \"x\"\noptional-dependencies.docs = [ \"sphinx\" ]\n" +
			"optional-dependencies.tests = [\n  \"pytest>=9\",\n  \"ruff\",\n]\nurls.Home = \"https://example.org\"\n[tool.ruff]\n"},
			[]string{"$ python3 -m venv .venv", "$ echo '*' > .venv/.gitignore", "$ .venv/bin/pip install -q -e '.[tests]'",
				"test: .venv/bin/pytest", "lint: .venv/bin/ruff check --no-fix"}},
		{"clojure", map[string]string{"deps.edn": "{:aliases {:test {:extra-deps {a/b {:mvn/version \"1\"}} :main-opts [\"-m\" \"r\"]}}}"},
			[]string{"test: clojure -M:test"}},
		{"clojure, a function", map[string]string{"deps.edn": "{:aliases {:test {:extra-paths [\"test\"] :exec-fn r/test}}}"},
			[]string{"test: clojure -X:test"}},
		{"clojure, a runner of its own", map[string]string{"deps.edn": "{:aliases {:test {:extra-paths [\"test\"]}\n :runner\n {:main-opts [\"-m\" \"r\"]}}}"},
			[]string{"test: clojure -M:test:runner"}},
		{"clojure without a runner", map[string]string{"deps.edn": "{:aliases {:test {:extra-paths [\"test\"]} :dev {:main-opts [\"-r\"]}}}"},
			nil},
		{"requirements", map[string]string{"requirements.txt": "flask\n", "test/test_a.py": "", "mypy.ini": "[mypy]\n",
			"tox.ini": "[flake8]\n", ".github/workflows/ci.yml": "jobs: {a: {steps: [{run: mypy app}]}}\n"},
			[]string{"$ python3 -m venv .venv", "$ echo '*' > .venv/.gitignore", "$ .venv/bin/pip install -q -r requirements.txt mypy flake8",
				"typecheck? .venv/bin/mypy .", "test: .venv/bin/python -m unittest discover -s test", "lint? .venv/bin/flake8"}},
		{"standard library", map[string]string{"pyproject.toml": "", "tests/__init__.py": ""},
			[]string{"test: python3 -m unittest discover"}},
		{"tests beside the code", map[string]string{"setup.py": "", "test_a.py": "import unittest\n"},
			[]string{"test: python3 -m unittest"}},
		{"tests in an extra of another name", map[string]string{"tests/test_a.py": "", "pyproject.toml": "[project]\nname = \"x\"\n" +
			"[project.optional-dependencies]\ndocs = [\"sphinx\"]\nall = [\n    \"ruff\",\n    \"pytest >= 8\",\n]\n"},
			[]string{"$ python3 -m venv .venv", "$ echo '*' > .venv/.gitignore", "$ .venv/bin/pip install -q -e '.[all]'", "test: .venv/bin/pytest"}},
		{"unittest, and a dependency", map[string]string{"tests/test_a.py": "", "pyproject.toml": "[project]\nname = \"x\"\n" +
			"dependencies = [\n    \"six\",\n]\n"},
			[]string{"$ python3 -m venv .venv", "$ echo '*' > .venv/.gitignore", "$ .venv/bin/pip install -q -e .",
				"test: .venv/bin/python -m unittest discover -s tests"}},
		{"two files of Python", map[string]string{"a.py": "", "test_a.py": "import unittest\n"}, []string{"test: python3 -m unittest"}},
		{"functions beside the code", map[string]string{"requirements.txt": "", "test_a.py": "def test_a(): pass\n"},
			[]string{"$ python3 -m venv .venv", "$ echo '*' > .venv/.gitignore", "$ .venv/bin/pip install -q -r requirements.txt pytest",
				"test: .venv/bin/pytest"}},
		{"poetry", map[string]string{"pyproject.toml": "[tool.poetry]\n[tool.poetry.group.dev.dependencies]\npytest = \"^8\"\n", "poetry.lock": ""},
			[]string{"$ poetry install --no-interaction", "test: poetry run pytest"}},
		{"make with tools of Python", map[string]string{"requirements.txt": "pytest\n", "Makefile": "test:\n\tpytest -q\nlint: fmt\n\truff check\n"},
			[]string{"$ python3 -m venv .venv", "$ echo '*' > .venv/.gitignore", "$ .venv/bin/pip install -q -r requirements.txt",
				"test: . .venv/bin/activate && make test",
				"- Makefile: lint edits files, which a gate must not do, so it is not a gate."}},
		{"just", map[string]string{"justfile": "test arg='x':\n    go test\n\nlint:\n    cargo fmt\n"},
			[]string{"test: just test", "- justfile: lint edits files, which a gate must not do, so it is not a gate."}},
		{"task", map[string]string{"Taskfile.yml": "tasks: {test: {cmds: [go test]}, lint: {cmds: [prettier --write .]}}\n"},
			[]string{"test: task test", "- Taskfile.yml: lint edits files, which a gate must not do, so it is not a gate."}},
		{"ruby", map[string]string{"Gemfile": "gem 'rubocop'\n", "Rakefile": "Rake::TestTask.new\n", ".rubocop.yml": ""},
			[]string{"$ bundle config set --local path .bundle/gems", "$ echo '*' > .bundle/.gitignore", "$ bundle install",
				"test: bundle exec rake test", "lint: bundle exec rubocop"}},
		{"php", map[string]string{"composer.json": `{"scripts": {"test": ["phpunit"]}, "require-dev": {"phpstan/phpstan": "*"}}`, "phpstan.neon": ""},
			[]string{"$ composer install --no-interaction --no-progress",
				"typecheck: vendor/bin/phpstan analyse --no-progress --memory-limit=1G", "test: composer test"}},
		{"php with scripts for its tools", map[string]string{"composer.json": `{"scripts": {"phpstan": "phpstan analyse -c a.neon",
			"phpcs": "php-cs-fixer fix --dry-run --allow-risky=yes", "test": ["@phpunit", "@phpcs"]},
			"require-dev": {"phpstan/phpstan": "*", "friendsofphp/php-cs-fixer": "*"}}`, "phpstan.neon": "", ".php-cs-fixer.php": ""},
			[]string{"$ composer install --no-interaction --no-progress",
				"typecheck: composer phpstan", "test: composer test",
				"- composer.json: test runs phpcs, so that is no gate of its own."}},
		{"a Makefile that makes the environment of Python", map[string]string{"pyproject.toml": "[project]\nname = \"x\"\n" +
			"[project.optional-dependencies]\ndev = [\"pytest\"]\n", "Makefile": "VENV = build/venv\ntest: venv\n\t$(VENV)/bin/pytest\n"},
			[]string{"test: make test"}},
		{"the same, and a tool beside it", map[string]string{"pyproject.toml": "[project]\nname = \"x\"\n[tool.ruff]\n" +
			"[project.optional-dependencies]\ndev = [\"pytest\", \"ruff\"]\n", "Makefile": "test:\n\ttox\n"},
			[]string{"$ python3 -m venv .venv", "$ echo '*' > .venv/.gitignore", "$ .venv/bin/pip install -q -e '.[dev]'",
				"test: make test", "lint: .venv/bin/ruff check --no-fix"}},
		{"tests in an environment of hatch", map[string]string{"pyproject.toml": "[project]\nname = \"x\"\n\n[tool.hatch.envs.test]\n" +
			"dependencies = [\n  \"pytest\",\n]\n[tool.hatch.envs.docs]\ndependencies = [\"sphinx\"]\n[tool.pytest.ini_options]\n"},
			[]string{"$ python3 -m venv .venv", "$ echo '*' > .venv/.gitignore",
				"$ .venv/bin/pip install -q -e . pytest", "test: .venv/bin/pytest"}},
		{"cmake, meson, autotools and bazel", map[string]string{"CMakeLists.txt": "enable_testing()\n", ".gitignore": "build\n",
			"meson.build": "", "configure.ac": "", "WORKSPACE": ""},
			[]string{"build: cmake -S . -B build && cmake --build build", "test: ctest --test-dir build --output-on-failure"}},
		{"swift, and cmake for Windows", map[string]string{"Package.swift": "", "CMakeLists.txt": "enable_testing()\n", "Tests/a.swift": ""},
			[]string{"$ swift package resolve", "build: swift build", "test: swift test"}},
		{"maven and gradle", map[string]string{"pom.xml": "", "mvnw": "", "build.gradle": "", "gradlew": ""},
			[]string{"test: ./mvnw -B -ntp test"}},
		{"gradle beside a pom", map[string]string{"pom.xml": "", "build.gradle": "", "gradlew": ""}, []string{"test: ./gradlew test"}},
		{"kotlin for several platforms", map[string]string{"build.gradle.kts": "plugins { kotlin(\"multiplatform\") }\n", "gradlew": ""},
			[]string{"test: ./gradlew check"}},
		{"mill's own starter", map[string]string{"build.mill": "", "mill": ""}, []string{"test: ./mill __.test"}},
		{"deno.json for the registry of deno", map[string]string{"deno.json": `{"name": "@a/b"}`, "package.json": scripts},
			[]string{"$ npm install --no-package-lock --no-audit --no-fund", "test: npm test"}},
		{"a build that writes the README", map[string]string{"package-lock.json": "", "package.json": `{"scripts": {"build": "automd && unbuild", "test": "node --test"}}`},
			[]string{"$ npm ci", "test: npm test",
				"- package.json: build edits files, which a gate must not do, so it is not a gate."}},
		{"a test that formats first", map[string]string{"package-lock.json": "", "package.json": `{"scripts": {"format": "prettier --write .",
			"test": "npm run format && npm run test-api", "test-api": "node test.js"}}`},
			[]string{"$ npm ci", "test: npm run test-api",
				"- package.json: test edits files, which a gate must not do, so it is not a gate."}},
		{"tests that begin with the linter", map[string]string{"package-lock.json": "", "package.json": `{"scripts": {"lint": "eslint .",
			"test": "npm run lint && node --test"}}`},
			[]string{"$ npm ci", "test: npm test", "- package.json: test runs lint, so that is no gate of its own."}},
		{"dotnet", map[string]string{"App.sln": ""},
			[]string{"$ dotnet restore", "build: dotnet build --no-restore", "test: dotnet test --no-build"}},
		{"elixir", map[string]string{"mix.exs": "", ".formatter.exs": ""},
			[]string{"$ mix local.hex --force --if-missing", "$ mix deps.get", "test: mix test", "lint: mix format --check-formatted"}},
		{"cmake beside make", map[string]string{"CMakeLists.txt": "enable_testing()\n", "Makefile": "test:\n\t./t\n", ".gitignore": "build/\n"},
			[]string{"build: cmake -S . -B build && cmake --build build", "test: ctest --test-dir build --output-on-failure"}},
		{"cmake, build not ignored", map[string]string{"CMakeLists.txt": "", "Makefile": "test:\n\t./t\n"},
			[]string{"build: mkdir -p build && echo '*' > build/.gitignore && cmake -S . -B build && cmake --build build", "test: make test"}},
		{"workflow only", map[string]string{".github/workflows/ci.yml": "jobs:\n  t:\n    steps:\n      - run: |\n          sudo apt install x\n" +
			"          ./run-tests --all\n      - run: ./test ${{ matrix.x }}\n"},
			[]string{"test: ./run-tests --all"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := write(t, write(t, tempDir(t), tt.files), map[string]string{tested: ""})
			p, err := Of(dir, nil, onPath())
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, s := range p.Setup {
				got = append(got, "$ "+s)
			}
			for _, g := range p.Gates {
				mark := ": "
				if !g.Required {
					mark = "? "
				}
				got = append(got, g.Kind+mark+g.Command)
			}
			for _, n := range p.Notes {
				got = append(got, "- "+n)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
		})
	}
}

// Workflows of CI are protected where there are none yet, and a copy is only offered.
func TestProposalProtects(t *testing.T) {
	t.Parallel()
	dir := write(t, tempDir(t), map[string]string{".env": "KEY=1\n", ".gitlab-ci.yml": ""})
	p, err := Of(dir, nil, onPath())
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{".github/**", ".gitlab-ci.yml"}; !slices.Equal(p.Protect, want) {
		t.Errorf("protects %q, want %q", p.Protect, want)
	}
	text := string(p.YAML())
	for _, want := range []string{"\n  protect_new: true", "\n  # copy: [.env]"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
}
