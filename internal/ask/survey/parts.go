package survey

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/pawl-dev/pawl/internal/decide/lazy"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/report"
)

// This file looks below the root: at the parts of a monorepo, and at the workflows of CI.

// manyParts is how many folders get gates of their own at most.
const manyParts = 6

// manyFolders and deepest bound the search for projects below the root.
const (
	manyFolders = 2000
	deepest     = 4
)

// below is a project in a folder below the root.
type below struct {
	name string
	part
	reached   bool // the gates of the project around it run its tests
	apart     bool // it has a module or an environment of its own
	withGates bool // it may get gates
}

// listFolders are the folders in one that may hold projects.
func (r repository) listFolders(in string) []string {
	entries, err := os.ReadDir(filepath.Join(r.dir, in))
	if err != nil {
		return nil
	}
	return lists.Pick(entries, func(e os.DirEntry) (string, bool) {
		aside := strings.HasPrefix(e.Name(), ".") || strings.HasPrefix(e.Name(), "_") ||
			slices.Contains(namesOf("folders of others"), e.Name())
		return filepath.Join(in, e.Name()), e.IsDir() && !aside
	})
}

// findBelow surveys the folders in one, and those in them. around is the project that they are in, and left how
// many folders are looked at.
func (r repository) findBelow(in string, around *part, depth int, left *int) (found []below) {
	for _, name := range r.listFolders(in) {
		if *left--; *left < 0 {
			return found
		}
		b, within := r.surveyFolder(name, around), around
		if len(b.groups) > 0 {
			found = append(found, b)
		}
		if hasGateOfKind(b.gates, "test") {
			within = &b.part
		}
		if depth > 1 {
			found = append(found, r.findBelow(name, within, depth-1, left)...)
		}
	}
	return found
}

// surveyFolder surveys a folder below the root.
func (r repository) surveyFolder(name string, around *part) below {
	sub := repository{filepath.Join(r.dir, name), r.lookPath}
	b := below{name: name, part: sub.findEcosystems()}
	b.mergePart(sub.nodePart())
	steps := strings.Split(name, string(filepath.Separator))
	isOfParts := len(steps) == 2 && slices.Contains(namesOf("folders of parts"), steps[0])
	if len(steps) == 1 || isOfParts || sub.has(namesOf("projects of Python")...) {
		_, py := sub.pythonPart()
		b.mergePart(py)
	}
	for i := range b.members {
		b.members[i] = filepath.Join(name, b.members[i])
	}
	b.members = append(b.members, around.members...)
	var runners []rule
	for _, rule := range rulesFor("apart") {
		if _, is := sub.ruleHolds(rule.when); is {
			b.apart, runners = true, append(runners, rule)
			b.groups = lists.Union(b.groups, rule.group)
		}
	}
	isAside := func(step string) bool { return slices.Contains(namesOf("folders apart"), step) }
	b.withGates = !slices.ContainsFunc(steps, isAside)
	isNew := func(group string) bool { return !slices.Contains(around.groups, group) }
	isLeft := func(r rule) bool { return around.leavesOut(name, r.command) }
	b.reached = !slices.ContainsFunc(b.groups, isNew) && !slices.ContainsFunc(runners, isLeft)
	return b
}

// leavesOut is true where the tests of a project do not reach into a folder that is a module of its own. A workspace
// reaches all of its modules, and so may a task that runs something for each folder. runner is what runs the tests.
func (p *part) leavesOut(name, runner string) bool {
	return !slices.Contains(p.members, name) && slices.ContainsFunc(p.gates, func(g Gate) bool {
		text := g.Command + "\n" + p.testBody
		reaches := severalFolders().MatchString(text) || strings.Contains(p.testBody, filepath.Base(name))
		return g.Kind == "test" && regexp.MustCompile(runner).MatchString(text) && !reaches
	})
}

// severalFolders matches a command that works in more than the folder where it starts.
var severalFolders = lazy.Regexp(
	`--(workspace|recursive|filter)|\b(cd|for|find|xargs|turbo|nx|lerna|workspaces?)\b| -[rC] `)

// needsTests is true where a test has to be green.
func needsTests(gates []Gate) bool {
	return slices.ContainsFunc(gates, func(g Gate) bool { return g.Kind == "test" && g.Required })
}

// addParts adds what lies below the root: gates where the root has no tests, else a note.
func (r repository) addParts(p *part, none map[string]bool) {
	if r.has("go.work") {
		r.addGoWorkspace(p)
	}
	around, left, untested := p, manyFolders, hasGateOfKind(p.gates, "test")
	if !untested && !none["test"] {
		around = &part{members: p.members}
	}
	found := r.findBelow(".", around, deepest, &left)
	apart := lists.Pick(found, func(b below) (string, bool) { return b.name, b.apart && !b.reached })
	r.warnUntested(p, apart)
	alone := none["test"] || needsTests(p.gates)
	var chosen, others []string
	for _, b := range found {
		tests := hasGateOfKind(b.gates, "test")
		if !alone && tests {
			repository{filepath.Join(r.dir, b.name), r.lookPath}.warnUntested(&b.part, nil)
		}
		if untested { // then only what has tests is better than nothing
			tests = needsTests(b.gates)
		}
		switch fits := b.withGates && len(chosen) < manyParts && tests; {
		case b.reached:
		case !alone && fits:
			chosen = append(chosen, b.name)
			addPartOfFolder(p, b.name, &b.part)
		case tests && b.withGates, b.apart:
			others = append(others, b.name)
		}
	}
	if len(chosen) > 0 {
		note := "The root has no tests of its own; the gates come from " + strings.Join(chosen, ", ") + "."
		p.notes = append(p.notes, note)
	}
	if len(others) > 0 {
		p.notes = append(p.notes, fmt.Sprintf("Left out: %s; add a gate such as \"cd %s && …\" if agents work there.",
			report.Some(others, shownNames), others[0]))
	}
	if left < 0 {
		p.notes = append(p.notes, fmt.Sprintf("Only the first %d folders were looked at.", manyFolders))
	}
}

// addPartOfFolder adds the gates and the set-up of a folder, run there.
func addPartOfFolder(p *part, name string, q *part) {
	for _, g := range q.gates {
		g.Command = "cd " + name + " && " + g.Command
		g.Name = filepath.Base(name) + "-" + g.Name
		g.From = filepath.Join(name, g.From)
		p.gates = append(p.gates, g)
	}
	p.setup = append(p.setup, lists.Each(q.setup, func(s string) string { return "cd " + name + " && " + s })...)
	p.notes = append(p.notes, lists.Each(q.notes, func(n string) string { return name + ": " + n })...)
}

var goUse = lazy.Regexp(`(?m)^\s*(?:use\s+)?(\./[\w./-]*|\.)\s*$`)

// addGoWorkspace tests the modules of a Go workspace.
func (r repository) addGoWorkspace(p *part) {
	packages := lists.Each(goUse().FindAllStringSubmatch(r.fileText("go.work"), -1), func(m []string) string {
		p.members = append(p.members, filepath.Clean(m[1]))
		return strings.TrimSuffix(m[1], "/") + "/..."
	})
	if len(packages) == 0 {
		return
	}
	p.gates = slices.DeleteFunc(p.gates, func(g Gate) bool { return strings.HasPrefix(g.Command, "go ") })
	for _, g := range [][2]string{{"build", "go build "}, {"test", "go test "}, {"lint", "go vet "}} {
		if !hasGateOfKind(p.gates, g[0]) {
			p.gates = append(p.gates, newGateOfKind(g[0], g[1]+strings.Join(packages, " "), "go.work"))
		}
	}
	p.groups = append(p.groups, "go")
	p.notes = append(p.notes, "Go workspace: the gates cover the modules that go.work uses.")
}

// workflowFiles are the definitions of CI, by name.
func (r repository) workflowFiles() []string {
	var list []string
	for _, glob := range []string{".github/workflows/*.yml", ".github/workflows/*.yaml"} {
		found, _ := filepath.Glob(filepath.Join(r.dir, glob))
		for _, file := range found {
			list = append(list, filepath.Join(".github", "workflows", filepath.Base(file)))
		}
	}
	slices.Sort(list)
	return list
}

var (
	ciTests = lazy.Regexp(`(^|[\s/._-])(test|tests|check|spec|ctest|rspec|busted|prove|bats|tap|unittest)([\s/._-]|$)`)
	ciApart = lazy.Regexp(`\$\{\{|\$\(|\||>|\bsudo\b|\bapt|\bbrew\b|\bdocker\b|\bcurl\b|\bwget\b|\becho\b|` +
		`\bgit\b|\binstall\b|\bpip\b|^if\b|^for\b|^cd\b|^#|upload|coverage|codecov`)
)

// workflowGates takes the first line of CI that tests something, where nothing else says
// how that is done.
func (r repository) workflowGates() part {
	for _, name := range r.workflowFiles() {
		var file struct {
			Jobs map[string]struct {
				Steps []struct {
					Run string `yaml:"run"`
					Dir string `yaml:"working-directory"`
				} `yaml:"steps"`
			} `yaml:"jobs"`
		}
		if yaml.Unmarshal([]byte(r.fileText(name)), &file) != nil {
			continue
		}
		var lines []string
		for _, job := range file.Jobs {
			for _, step := range job.Steps {
				if step.Dir == "" {
					lines = append(lines, strings.Split(step.Run, "\n")...)
				}
			}
		}
		slices.Sort(lines)
		for _, line := range lines {
			line = strings.TrimSpace(line)
			if ciTests().MatchString(line) && !ciApart().MatchString(line) && !strings.HasSuffix(line, `\`) {
				return part{gates: []Gate{newGateOfKind("test", line, name)}}
			}
		}
	}
	return part{}
}
