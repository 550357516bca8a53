package survey

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/pawl-dev/pawl/internal/decide/lazy"
	"github.com/pawl-dev/pawl/internal/decide/lists"
)

// This file reads the commands that a project gave names to: Makefile, justfile,
// Taskfile, the scripts of package.json.

// task is the text of one, and what it calls first.
type task struct{ body, calls string }

var (
	// taskEdits changes files, whatever else stands in the line.
	taskEdits = lazy.Regexp(`(^|\s)--(fix|write|apply|autofix|unsafe-fixes|apply-unsafe|auto-?correct(-all)?|` +
		`in-?place|update-?snapshots?|updateSnapshot|snapshot-update)(\s|$|=[^f])|` +
		`\brubocop\b.*\s-[aAx]\b|\bktlint\b.*\s-F\b|\bcargo fix\b|\bgo (fix|generate)\b|\bpre-commit run\b|` +
		`(\$[({]\w+[)}]|\b(gofmt|goimports|gofumpt|gci|golines|misspell|shfmt|buf))(\s+\S+)*?\s+-w\b|` +
		`\b(clang-format|yapf|autoflake|docformatter|sed)\b.*\s-[A-Za-z]*i\b|` +
		`\b(phpcbf|autopep8|pyupgrade|lint-staged|spotless:?[aA]pply|ktlintFormat|fmt:format` +
		`|documentation readme|doctoc|automd|readme-md-generator|all-contributors generate)\b`)
	// taskFormats does, but with what [taskChecks] finds in the line.
	taskFormats = lazy.Regexp(`\b(black|isort|ruff format|(cargo|go|terraform|deno|zig|dprint|taplo) fmt|` +
		`(dotnet|mix|dart) format|go mod tidy|php-cs-fixer fix|rector process|pint|rustfmt|swiftformat|stylua|` +
		`scalafmt(All)?)\b`)
	taskChecks = lazy.Regexp(`-check|-diff|--verify-no-changes|--no-fix|--dry-run|--set-exit-if-changed|` +
		`--(test|lint)\b`)
	taskStays  = lazy.Regexp(`--watch(All)?(\s|$)|\bnodemon\b|\bvitest (watch|dev)\b`)
	taskNone   = lazy.Regexp(`no test specified|\bexit 1$`)
	taskFormat = lazy.Regexp(`(^|\s)(fmt|format|fix)(\s|$)`)
	homePath   = lazy.Regexp(`(^|[\s"'=:])(~/|\${1,2}[({]?HOME\b[)}]?/|/(home|Users)/\w|/root/)`)
	assignment = lazy.Regexp(`(?m)^\s*(?:export\s+)?([A-Za-z_][\w-]*)\s*[:?]*=\s*(.*?)\s*$`)
)

const (
	editsFiles = "edits files, which a gate must not do"
	staysOpen  = "does not end by itself"
	inHome     = "uses a path in a home folder, which is not part of the repository"
)

// reasonUnfit is the reason why a task is no gate; "" if it is one.
func reasonUnfit(t task) string {
	formats := false
	for line := range strings.Lines(t.body) {
		if taskFormats().MatchString(line) && !taskChecks().MatchString(line) {
			formats = true
		}
	}
	switch {
	case strings.TrimSpace(t.body+t.calls) == "":
		return "is empty"
	case taskNone().MatchString(strings.TrimSpace(t.body)):
		return "only fails"
	case formats, taskEdits().MatchString(t.body), taskFormat().MatchString(t.calls):
		return editsFiles
	case taskStays().MatchString(t.body):
		return staysOpen
	case homePath().MatchString(t.body):
		return inHome
	}
	return ""
}

// callsTask is how a task starts another one.
var callsTask = lazy.Regexp(`(?:\b(?:npm|pnpm|yarn|bun|make|just|task|composer)|\$[({]MAKE[)}])` +
	`(?: run(?:-script)?)? ([\w:.-]+)|(?:^|\s)@([\w:.-]+)`)

// testsCalledBy are the tests that a task starts beside other work.
func testsCalledBy(t task) []string {
	return lists.Pick(callsTask().FindAllStringSubmatch(t.body, -1), func(m []string) (string, bool) {
		return m[1] + m[2], strings.HasPrefix(m[1]+m[2], "test")
	})
}

// callsScripts is how a script of npm starts several others.
var callsScripts = lazy.Regexp(`\b(?:npm-run-all|run-[sp])\b[^&|;\n]*`)

// withCalled is a task with the text of those that it calls. seen are those that it has already.
func withCalled(all map[string]task, t task, seen map[string]bool) task {
	called := strings.FieldsFunc(t.calls, func(r rune) bool { return strings.ContainsRune(" \t/%=:$()", r) })
	called = append(called, strings.Fields(strings.Join(callsScripts().FindAllString(t.body, -1), " "))...)
	for _, m := range callsTask().FindAllStringSubmatch(t.body, -1) {
		called = append(called, m[1]+m[2])
	}
	for _, name := range called {
		if next, is := all[name]; is && !seen[name] {
			seen[name] = true
			t.body += "\n" + withCalled(all, next, seen).body
		}
	}
	return t
}

// leaveEditors takes gates out that edit files, by themselves or by what they call.
func (r repository) leaveEditors(p *part) {
	tasks := map[string]task{}
	for _, name := range []string{"GNUmakefile", "makefile", "Makefile", "justfile", "Justfile", ".justfile"} {
		maps.Copy(tasks, readRules(r.fileText(name)))
	}
	for _, name := range []string{"composer.json", "package.json"} {
		maps.Copy(tasks, r.scriptsOf(name))
	}
	p.gates = slices.DeleteFunc(p.gates, func(g Gate) bool {
		edits := reasonUnfit(withCalled(tasks, task{body: g.Command}, map[string]bool{})) == editsFiles
		if edits {
			p.notes = append(p.notes, fmt.Sprintf("%s: %q %s, so it is not a gate.", g.From, g.Command, editsFiles))
		}
		return edits
	})
}

// scriptsOf reads the scripts of a composer.json or package.json.
func (r repository) scriptsOf(name string) map[string]task {
	var file struct {
		Scripts map[string]any `json:"scripts"`
	}
	_ = json.Unmarshal([]byte(r.fileText(name)), &file)
	tasks := map[string]task{}
	for script, body := range file.Scripts {
		tasks[script] = task{body: strings.Trim(fmt.Sprint(body), "[]")}
	}
	return tasks
}

// composerScripts are the checks that a project of PHP gave names to. They know the options that its tools need.
func (r repository) composerScripts() part {
	return pickTasks([]string{"typecheck", "test", "lint"}, r.scriptsOf("composer.json"),
		func(name string) string { return "composer " + name }, "composer.json")
}

// pickTasks takes the best task of each kind, and notes those that are unfit.
func pickTasks(kinds []string, tasks map[string]task, command func(name string) string, from string) part {
	var p part
	inTest := map[string]bool{}
	chosen := map[string]string{}
	for _, kind := range kinds {
		names := namesOf(kind)
		if kind == "test" {
			names = slices.Concat(names, testsCalledBy(tasks["test"]))
		}
		for _, name := range names {
			t, is := tasks[name]
			if !is {
				continue
			}
			called := map[string]bool{name: true}
			whole := withCalled(tasks, t, called)
			why := reasonUnfit(whole)
			if why == "" {
				p.gates = append(p.gates, newGateOfKind(kind, command(name), from))
				if chosen[kind] = name; kind == "test" {
					inTest = called
					p.testBody = whole.body + "\n"
				}
				break
			}
			if slices.Contains([]string{editsFiles, staysOpen, inHome}, why) {
				p.notes = append(p.notes, fmt.Sprintf("%s: %s %s, so it is not a gate.", from, name, why))
			}
		}
	}
	p.leaveWhatTestsRun(chosen, inTest, from)
	return p
}

// leaveWhatTestsRun takes gates out that the test starts by itself. chosen are the tasks of the kinds.
func (p *part) leaveWhatTestsRun(chosen map[string]string, inTest map[string]bool, from string) {
	p.gates = slices.DeleteFunc(p.gates, func(g Gate) bool {
		twice := g.Kind != "test" && inTest[chosen[g.Kind]]
		if twice {
			p.inTest = append(p.inTest, g.Kind)
			p.notes = append(p.notes, fmt.Sprintf("%s: %s runs %s, so that is no gate of its own.",
				from, chosen["test"], chosen[g.Kind]))
		}
		return twice
	})
}

// taskGates reads the first of Makefile, justfile and Taskfile that names a check. env
// comes before a command that needs the tools of the folder.
func (r repository) taskGates(env string) part {
	kinds := []string{"typecheck", "test", "lint"}
	for _, f := range []struct {
		program string
		files   []string
		read    func(string) map[string]task
	}{
		{"make", []string{"GNUmakefile", "makefile", "Makefile"}, readRules},
		{"just", []string{"justfile", "Justfile", ".justfile"}, readRules},
		{"task", []string{"Taskfile.yml", "Taskfile.yaml", "Taskfile.dist.yml"}, readTaskfile},
	} {
		name := r.firstFile(f.files...)
		if name == "" {
			continue
		}
		tasks := f.read(r.fileText(name))
		ownEnv := false
		command := func(target string) string {
			body := withCalled(tasks, tasks[target], map[string]bool{target: true}).body
			ownEnv = ownEnv || taskOwnEnv().MatchString(body)
			return withPythonTools(env, body, f.program+" "+target)
		}
		if p := pickTasks(kinds, tasks, command, name); len(p.gates)+len(p.notes) > 0 {
			p.ownEnv = ownEnv
			return p
		}
	}
	return part{}
}

// withPythonTools puts env before a command whose text needs the tools of Python.
func withPythonTools(env, body, command string) string {
	if env == "" || taskOwnEnv().MatchString(body) || !taskPython().MatchString(body) {
		return command
	}
	return env + command
}

var (
	taskOwnEnv = lazy.Regexp(`(?i)\b(uv|poetry|pdm|pipenv|hatch|tox|nox|docker|\.?venv)\b`)
	taskPython = lazy.Regexp(`\b(python3?|pytest|mypy|ruff|flake8|pylint|pyright|coverage)\b`)
	// ruleLine is a rule's line: a name, perhaps parameters, a colon, and no assignment.
	ruleLine = lazy.Regexp(`^([A-Za-z0-9_:-]*[A-Za-z0-9_-])[^:#]*?::?([^=].*|)$`)
)

// readRules reads a Makefile or a justfile. A variable that leads to a home folder is replaced by its value.
func readRules(text string) map[string]task {
	text = writeOutHomes(text)
	all := map[string]task{}
	name := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		indented := strings.HasPrefix(line, "\t") || strings.HasPrefix(line, " ")
		m := ruleLine().FindStringSubmatch(line)
		switch {
		case indented && name != "":
			t := all[name]
			t.body += strings.TrimLeft(strings.TrimSpace(line), "@-") + "\n"
			all[name] = t
		case !indented && m != nil:
			name = m[1]
			calls, inline, _ := strings.Cut(m[2], ";")
			t := all[name]
			t.calls += calls + " "
			t.body += strings.TrimSpace(inline)
			all[name] = t
		case strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "#"):
			name = ""
		}
	}
	return all
}

// writeOutHomes replaces the variables of a Makefile whose values are paths in a home folder, and those made of them.
func writeOutHomes(text string) string {
	for range 3 {
		for _, m := range assignment().FindAllStringSubmatch(text, -1) {
			value := strings.Trim(m[2], `"'`)
			isOwn := strings.Contains(value, "("+m[1]+")") || strings.Contains(value, "{"+m[1]+"}")
			if homePath().MatchString(value) && !isOwn {
				name := m[1]
				asValue := strings.NewReplacer("$("+name+")", value, "${"+name+"}", value, "{{"+name+"}}", value)
				text = asValue.Replace(text)
			}
		}
	}
	return text
}

func readTaskfile(text string) map[string]task {
	var file struct {
		Tasks map[string]any `yaml:"tasks"`
	}
	all := map[string]task{}
	if yaml.Unmarshal([]byte(text), &file) != nil {
		return all
	}
	for name, t := range file.Tasks {
		if body, err := json.Marshal(t); err == nil {
			all[name] = task{body: strings.NewReplacer(`"`, " ", "[", " ", "]", " ").Replace(string(body))}
		}
	}
	return all
}
