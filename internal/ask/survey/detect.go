package survey

import (
	"cmp"

	"github.com/pawl-dev/pawl/internal/ask/config/quantity"

	_ "embed"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/safety"
	"github.com/pawl-dev/pawl/internal/do/trust"
)

// repository is a folder that is looked at, read only.
type repository struct {
	dir      string
	lookPath func(string) (string, error)
}

// has reports whether any of the files exists.
func (r repository) has(names ...string) bool { return r.firstFile(names...) != "" }

// firstFile is the first of the files that exists; "" if none does. A name may be a
// pattern.
func (r repository) firstFile(names ...string) string {
	for _, name := range names {
		if !strings.Contains(name, "*") {
			if _, err := os.Stat(filepath.Join(r.dir, name)); err == nil {
				return name
			}
			continue
		}
		if found, err := filepath.Glob(filepath.Join(r.dir, name)); err == nil && len(found) > 0 {
			return filepath.Join(filepath.Dir(name), filepath.Base(found[0]))
		}
	}
	return ""
}

// fileText returns a file's text; "" if it cannot be read: nothing is found in it then.
func (r repository) fileText(name string) string {
	text := trust.Read(r.dir, filepath.Join(r.dir, name)).Text
	return strings.ReplaceAll(text, "\r\n", "\n")
}

// isInstalled reports whether the program is on this machine.
func (r repository) isInstalled(program string) bool {
	_, err := r.lookPath(program)
	return err == nil
}

// ruleHolds reports whether a rule's conditions hold, and the last file that one named.
func (r repository) ruleHolds(when string) (from string, ok bool) {
	for _, condition := range strings.Fields(when) {
		file, ok := r.conditionHolds(condition)
		if !ok {
			return "", false
		}
		if file != "" {
			from = file
		}
	}
	return from, true
}

func (r repository) conditionHolds(condition string) (file string, ok bool) {
	if rest, not := strings.CutPrefix(condition, "!"); not {
		_, ok := r.conditionHolds(rest)
		return "", !ok
	}
	if program, is := strings.CutPrefix(condition, "$"); is {
		return "", r.isInstalled(program)
	}
	names, expr, has := strings.Cut(condition, "~")
	if has {
		file := r.firstFile(names)
		return file, file != "" && regexp.MustCompile(expr).MatchString(r.fileText(file))
	}
	file = r.firstFile(strings.Split(names, "|")...)
	return file, file != ""
}

// part is what was found in one folder.
type part struct {
	gates  []Gate
	setup  []string
	notes  []string
	groups []string // the ecosystems of it
	inTest []string // the kinds of gates that the test runs by itself
	ownEnv bool     // a task makes the environment of Python that it runs in

	testBody string   // what the task of the test runs; "" where its command says it
	members  []string // folders below, whose checks the gates run too
}

func (p *part) mergePart(more part) {
	p.gates = append(p.gates, more.gates...)
	p.setup = append(p.setup, more.setup...)
	p.notes = append(p.notes, more.notes...)
	p.groups = append(p.groups, more.groups...)
	p.inTest = append(p.inTest, more.inTest...)
	p.members = append(p.members, more.members...)
	p.testBody += more.testBody
}

// findEcosystems applies the rules of the table to the folder.
func (r repository) findEcosystems() part {
	p := r.composerScripts()
	seen := map[string]bool{}
	for _, kind := range append(lists.Each(p.gates, func(g Gate) string { return g.Kind }), p.inTest...) {
		seen["php "+kind] = true
	}
	for _, rule := range rulesFor("setup", "build", "typecheck", "test", "lint", "warn") {
		kind := strings.Replace(rule.kind, "warn", "lint", 1)
		key := rule.group + " " + kind
		if kind != "setup" && seen[key] {
			continue
		}
		from, ok := r.ruleHolds(rule.when)
		if !ok {
			continue
		}
		seen[key] = true
		p.groups = lists.Union(p.groups, rule.group)
		command := strings.Replace(rule.command, "{ignore build}", r.ignoringPrefix("build"), 1)
		if kind == "setup" {
			p.setup = append(p.setup, command)
			continue
		}
		g := newGateOfKind(kind, command, from)
		g.Required = rule.kind != "warn"
		p.gates = append(p.gates, g)
	}
	return p
}

// ignoringPrefix is the beginning of a command that makes a folder which git ignores; ""
// where the repository says so itself.
func (r repository) ignoringPrefix(folder string) string {
	ignored := regexp.MustCompile(`(?m)^/?` + regexp.QuoteMeta(folder) + `\*?/?\s*$`)
	if ignored.MatchString(r.fileText(".gitignore")) {
		return ""
	}
	return "mkdir -p " + folder + " && echo '*' > " + folder + "/.gitignore && "
}

func newGateOfKind(kind, command, from string) Gate {
	name := kind
	if kind == "test" {
		name = "tests"
	}
	timeout := quantity.Duration(5 * time.Minute)
	if kind == "test" || kind == "build" {
		timeout = quantity.Duration(10 * time.Minute)
	}
	return Gate{config.Gate{Name: name, Command: command, Kind: kind, Timeout: timeout, Required: true,
		When: "iteration"}, from}
}

// wholeFolder gathers the gates of one folder: AGENTS.md first, then its own tasks, then its
// languages, and the workflows of CI where nothing else says how it is tested.
func (r repository) wholeFolder() (p part, none map[string]bool) {
	said, none := r.agentsFile()
	p.gates = said
	r.leaveEditors(&p)
	take := func(more part) {
		r.leaveEditors(&more)
		more.gates = slices.DeleteFunc(slices.Clone(more.gates), func(g Gate) bool {
			return none[g.Kind] || hasGateOfKind(p.gates, g.Kind) || slices.Contains(p.inTest, g.Kind)
		})
		p.mergePart(more)
	}
	languages := r.findEcosystems()
	languages.mergePart(r.nodePart())
	env, py := r.pythonPart()
	helps := len(languages.gates) > 0 && len(py.gates) == 0 // a list of tools for another language's project
	setup := py.setup
	if py.setup = nil; !helps {
		languages.mergePart(py)
	}
	tasks := r.taskGates(env)
	if !slices.Contains(languages.groups, "cmake") || !hasGateOfKind(languages.gates, "test") {
		take(tasks)
	}
	take(languages)
	prefixes := append(lists.Each(py.gates, func(g Gate) string { return g.Command }), cmp.Or(env, "\n"))
	needsTools := func(g Gate) bool {
		return slices.ContainsFunc(prefixes, func(begins string) bool { return strings.HasPrefix(g.Command, begins) })
	}
	unasked := !helps && !tasks.ownEnv
	if unasked || slices.ContainsFunc(p.gates, needsTools) {
		p.setup = append(p.setup, setup...)
	}
	if !hasGateOfKind(p.gates, "test") && !none["test"] {
		take(r.workflowGates())
	}
	return p, none
}

// protectedGlobs are the files of the checks that run elsewhere, and those by which tools take
// other programs or leave tests out. A repository without workflows would run the first
// one that an agent adds.
func (r repository) protectedGlobs() []string {
	globs := []string{".github/**"}
	for _, rule := range rulesFor("protect") {
		if _, ok := r.ruleHolds(rule.when); ok {
			globs = append(globs, rule.command)
		}
	}
	return globs
}

// rule is a row of ecosystems.txt.
type rule struct{ group, kind, when, command string }

//go:embed ecosystems.txt
var ecosystemsText string

// rules are the ecosystems but those of Node and Python.
var rules = sync.OnceValue(func() (all []rule) {
	for line := range strings.Lines(ecosystemsText) {
		left, command, ok := strings.Cut(strings.TrimSpace(line), " → ")
		if strings.HasPrefix(line, "#") || !ok {
			continue
		}
		what, when, _ := strings.Cut(left, ": ")
		group, kind, _ := strings.Cut(what, " ")
		all = append(all, rule{group, kind, when, command})
	}
	return all
})

// rulesFor are the rows of these kinds.
func rulesFor(kinds ...string) []rule {
	return lists.Pick(rules(), func(r rule) (rule, bool) { return r, slices.Contains(kinds, r.kind) })
}

//go:embed names.txt
var namesText string

var names = sync.OnceValue(func() map[string][]string { return safety.WordsOf(namesText) })

// namesOf is a list of names.txt.
func namesOf(what string) []string { return names()[what] }
