package survey

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/lazy"
	"github.com/pawl-dev/pawl/internal/decide/lists"
)

// python is what is known of a Python project.
type python struct {
	repository
	project, cfg, tox string
	declared          string // all texts that name dependencies
	run               string // before each tool
	gates             []Gate
	notes             []string
	tools             []string // that the gates need and nothing declares
	needs             bool     // gates import the project
}

// pythonPart also returns what comes before a command of a Makefile that needs the
// project's tools.
func (r repository) pythonPart() (env string, p part) {
	y := python{repository: r, project: r.fileText("pyproject.toml"), cfg: r.fileText("setup.cfg"),
		tox: r.fileText("tox.ini")}
	if !r.has(append(namesOf("projects of Python"), "test_*.py")...) {
		return "", p
	}
	y.declared = hatchEnv().ReplaceAllString(y.project, "") + y.cfg + r.fileText("setup.py") + r.fileText("Pipfile")
	for _, name := range namesOf("requirements") {
		y.declared += "\n" + r.fileText(name)
	}
	folder := ".venv"
	if !r.has(".venv") && r.has("venv/bin/python") {
		folder = "venv"
	}
	y.run, env = folder+"/bin/", ". "+folder+"/bin/activate && "
	var setup []string
	for _, m := range rulesFor("manager") {
		if _, ok := r.ruleHolds(m.when); ok {
			y.run = m.group + " run "
			env, setup = y.run, []string{m.command + y.groupFlags(y.run)}
			break
		}
	}
	y.addTests()
	y.addTypes()
	y.addLints()
	if setup == nil {
		setup = y.makeVenv(folder)
	}
	if len(setup) == 0 {
		env = ""
	}
	return env, part{gates: y.gates, setup: setup, notes: y.notes, groups: []string{"python"}}
}

// groupFlags ask uv for the dependencies of the tests.
func (y *python) groupFlags(run string) string {
	flags := ""
	if run == "uv run " {
		for _, group := range y.extraGroups("dependency-groups") {
			flags += " --group " + group
		}
		for _, extra := range y.extraGroups("project.optional-dependencies") {
			flags += " --extra " + extra
		}
	}
	return flags
}

// tableKeys of a table of a TOML file, which is written as a table of its own or as dotted keys of the one around it.
func tableKeys(text, table string) (names []string) {
	around, last, _ := strings.Cut(table, ".")
	section := ""
	for line := range strings.Lines(text) {
		if m := tomlTable().FindStringSubmatch(line); m != nil {
			section = m[1]
		}
		key, isDotted := strings.CutPrefix(line, last+".")
		isDotted = isDotted && section == around
		isHere := isDotted || section == table
		if m := tomlKey().FindStringSubmatch(key); isHere && m != nil {
			names = append(names, m[1])
		}
	}
	return names
}

var (
	tomlTable = lazy.Regexp(`^\[+([^\[\]]+)\]`)
	tomlKey   = lazy.Regexp(`^"?([A-Za-z0-9_.-]+)"?\s*=`)
)

// addToolGate makes a gate of one of Python's tools. free: nothing of the project says which
// version, so a red one is only a warning.
func (y *python) addToolGate(kind, tool, arguments, from string, free bool) {
	if hasGateOfKind(y.gates, kind) {
		return
	}
	command := strings.TrimSpace(tool + " " + arguments)
	g := newGateOfKind(kind, y.run+command, from)
	g.Required = !free
	if !y.declaresTool(tool) && tool != "python" {
		pin := y.pinnedVersion(tool)
		if pin != "" {
			tool += "==" + pin
		}
		if y.run == "uv run " {
			g.Command = "uv run --with " + tool + " " + command
		}
		g.Required = !free || pin != ""
		y.tools = append(y.tools, tool)
	}
	y.gates = append(y.gates, g)
}

// declaresTool reports whether the project lists the tool among its dependencies.
func (y *python) declaresTool(tool string) bool {
	return regexp.MustCompile(`(?m)(["']|^[ \t]*)` + tool + `(\[|[ \t]*[=<>~!;@"',]|[ \t]*$)`).MatchString(y.declared)
}

// pinnedVersion is the version that pre-commit runs; "" if it runs none.
func (y *python) pinnedVersion(tool string) string {
	hook := regexp.MustCompile(`(?m)` + tool + `[^\n]*\n\s*rev:[^\n]*?v?(\d+\.\d+\.\d+)\b`)
	if m := hook.FindStringSubmatch(y.fileText(".pre-commit-config.yaml")); m != nil {
		return m[1]
	}
	return ""
}

func (y *python) addTests() {
	y.needs = true
	conftest := y.firstFile("conftest.py", "tests/conftest.py", "test/conftest.py")
	beside := y.firstFile("test_*.py")
	switch {
	case y.has("pytest.ini"):
		y.addToolGate("test", "pytest", "", "pytest.ini", false)
	case strings.Contains(y.project, "pytest"):
		y.addToolGate("test", "pytest", "", "pyproject.toml", false)
	case strings.Contains(y.cfg, "[tool:pytest]"):
		y.addToolGate("test", "pytest", "", "setup.cfg", false)
	case y.has("manage.py"):
		y.addToolGate("test", "python", "manage.py test", "manage.py", false)
	case strings.Contains(y.tox, "[testenv"), strings.Contains(y.project, "[tool.tox"):
		y.needs = false
		y.addToolGate("test", "tox", "-e py", cmp.Or(y.firstFile("tox.ini"), "pyproject.toml"), false)
	case conftest != "":
		y.addToolGate("test", "pytest", "", conftest, false)
	case y.declaresTool("pytest"):
		y.addToolGate("test", "pytest", "", "the dependencies", false)
	case y.has("noxfile.py") && strings.Contains(y.fileText("noxfile.py"), "def tests("):
		y.needs = false
		y.addToolGate("test", "nox", "-s tests", "noxfile.py", false)
	case y.has("tests", "test"):
		y.addToolGate("test", "python", "-m unittest discover "+y.unittestFolder(), "the folder of tests", false)
	case strings.Contains(y.fileText(beside), "unittest"):
		y.addToolGate("test", "python", "-m unittest", beside, false)
	case beside != "":
		y.addToolGate("test", "pytest", "", beside, false)
	default:
		y.needs = false
	}
}

// unittestFolder is the argument of discover where the root finds no tests.
func (y *python) unittestFolder() string {
	if y.has("tests/__init__.py", "test/__init__.py") || !y.has("tests", "test") {
		return ""
	}
	return "-s " + y.firstFile("tests", "test")
}

func (y *python) addTypes() {
	var from string
	switch {
	case strings.Contains(y.project, "[tool.mypy]"):
		from = "pyproject.toml"
	case strings.Contains(y.cfg, "[mypy]"):
		from = "setup.cfg"
	default:
		from = y.firstFile("mypy.ini", ".mypy.ini")
	}
	if from == "" {
		set := y.has("pyrightconfig.json") || strings.Contains(y.project, "[tool.pyright]")
		if set && y.declaresTool("pyright") {
			y.addToolGate("typecheck", "pyright", "", "the pyright configuration", false)
		}
		return
	}
	if !y.declaresTool("mypy") && strings.Contains(y.fileText(".pre-commit-config.yaml"), "mypy") {
		y.notes = append(y.notes, "mypy runs in an environment of pre-commit, which gates lack, so it is not a gate.")
		return
	}
	y.needs = true
	arguments := ""
	if !mypyPlaces().MatchString(y.fileText(from)) {
		arguments = y.argumentsOf("mypy", ".")
	}
	y.addToolGate("typecheck", "mypy", arguments, "the mypy configuration", !y.declaresTool("mypy"))
}

// mypyPlaces is that the configuration says which files are checked; then no argument may.
var mypyPlaces = lazy.Regexp(`(?m)^\s*(files|packages|modules)\s*=`)

// argumentsOf finds the arguments that the project itself gives a tool, in CI, tox or nox;
// other if there are none.
func (y *python) argumentsOf(tool, other string) string {
	expr := regexp.MustCompile(`(?m)(?:^|[\s"'=])` + tool + `((?: +[\w./=-]+)+)\s*$`)
	texts := append([]string{y.tox, y.fileText("Makefile"), y.fileText("noxfile.py")},
		lists.Each(y.workflowFiles(), y.fileText)...)
	for _, text := range texts {
		if m := expr.FindStringSubmatch(text); len(m) > 0 && !strings.Contains(m[1], "install") {
			return strings.TrimSpace(m[1])
		}
	}
	return other
}

func (y *python) addLints() {
	switch {
	case strings.Contains(y.project, "[tool.ruff"), y.has("ruff.toml", ".ruff.toml"):
		y.addToolGate("lint", "ruff", "check --no-fix", "the ruff configuration", !y.declaresTool("ruff"))
	case strings.Contains(y.cfg, "[flake8]"), strings.Contains(y.tox, "[flake8]"), y.has(".flake8"):
		y.addToolGate("lint", "flake8", "", "the flake8 configuration", !y.declaresTool("flake8"))
	}
}

// makeVenv makes an environment in a folder that git ignores, and installs what the gates need.
func (y *python) makeVenv(folder string) []string {
	what := lists.Pick(namesOf("requirements"), func(name string) (string, bool) { return "-r " + name, y.has(name) })
	isPackage := strings.Contains(y.project, "[project]") || strings.Contains(y.cfg, "[metadata]") || y.has("setup.py")
	builds := isPackage && !y.needsNoInstall()
	groups := ""
	if y.needs && builds {
		extras := y.extraGroups("project.optional-dependencies")
		if len(extras) == 0 {
			extras = extrasForTests(tableKeys(y.cfg, "options.extras_require"))
		}
		if len(extras) > 0 {
			what = append(what, "-e '.["+strings.Join(extras, ",")+"]'")
		} else {
			what = append(what, "-e .")
		}
	}
	for _, g := range y.extraGroups("dependency-groups") {
		groups += " --group " + g
	}
	what = append(what, y.tools...)
	if len(what) == 0 && groups == "" {
		for i := range y.gates { // the standard library is enough
			y.gates[i].Command = strings.Replace(y.gates[i].Command, y.run+"python ", "python3 ", 1)
		}
		return nil
	}
	pip := folder + "/bin/pip install -q "
	setup := []string{"python3 -m venv " + folder, "echo '*' > " + folder + "/.gitignore"}
	if groups != "" {
		setup = append(setup, pip+"-U pip")
	}
	return append(setup, pip+strings.TrimSpace(strings.Join(what, " ")+groups))
}

// hatchEnv is an environment that only hatch makes: what it names is not installed otherwise.
var hatchEnv = lazy.Regexp(`(?m)^\[+tool\.hatch\.envs.*\n(?:[^\[\n].*\n|\n)*`)

// needsNoInstall reports whether the standard library runs the tests on the sources as they lie there.
// Then nothing has to be installed.
func (y *python) needsNoInstall() bool {
	unittest := len(y.gates) == 1 && strings.Contains(y.gates[0].Command, "-m unittest")
	return unittest && !y.has("src") && !needsMore().MatchString(y.project+y.cfg+y.fileText("setup.py"))
}

// needsMore is that a project depends on others, or that something of it is built.
var needsMore = lazy.Regexp(`install_requires|tests_require|\bdependencies\b\s*=\s*\[\s*[^\]\s]|` +
	`\bdynamic\b.*dependencies|ext_modules|entry[-_]points`)

// extraGroups are the optional dependencies of a table that tests and checks are likely to
// need. What is for developers counts where nothing is for tests, and what holds a gate's
// tool in any case.
func (y *python) extraGroups(table string) []string {
	names := extrasForTests(tableKeys(y.project, table))
	for _, name := range tableKeys(y.project, table) {
		list := regexp.MustCompile(`(?ms)^(?:[\w-]+\.)?"?` + regexp.QuoteMeta(name) + `"?\s*=\s*\[.*?^?\]`).
			FindString(y.project)
		if len(names) == 0 && regexp.MustCompile(`["'](pytest|tox|nox)\b`).MatchString(list) {
			names = append(names, name)
		}
	}
	return names
}

func extrasForTests(names []string) []string {
	isTest := func(name string) bool { return strings.HasPrefix(name, "test") }
	tests := slices.ContainsFunc(names, isTest)
	return slices.DeleteFunc(names, func(name string) bool {
		forDevelopers := tests && strings.HasPrefix(name, "dev")
		return forDevelopers || !slices.Contains(namesOf("extras for tests"), name)
	})
}
