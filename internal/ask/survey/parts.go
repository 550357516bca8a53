package survey

import (
	"fmt"
	"os"
	"path/filepath"
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

// partFolders are the folders that may be parts.
func (r repository) partFolders() []string {
	var list []string
	for _, name := range r.listFolders(".") {
		if slices.Contains(namesOf("folders of parts"), name) {
			list = append(list, r.listFolders(name)...)
			continue
		}
		list = append(list, name)
	}
	return list
}

func (r repository) listFolders(in string) []string {
	entries, err := os.ReadDir(filepath.Join(r.dir, in))
	if err != nil {
		return nil
	}
	var list []string
	for _, e := range entries {
		aside := strings.HasPrefix(e.Name(), ".") || strings.HasPrefix(e.Name(), "_") ||
			slices.Contains(namesOf("folders apart"), e.Name())
		if e.IsDir() && !aside {
			list = append(list, filepath.Join(in, e.Name()))
		}
	}
	return list
}

// addParts adds what lies below the root: gates where the root has no tests, else a note.
func (r repository) addParts(p *part, none map[string]bool) {
	if r.has("go.work") {
		r.goWork(p)
	}
	alone := hasKind(p.gates, "test") || none["test"]
	var chosen, left []string
	for _, name := range r.partFolders() {
		sub := repository{filepath.Join(r.dir, name), r.lookPath}
		q := sub.findEcosystems()
		q.addPart(sub.nodePart())
		_, py := sub.pythonPart()
		q.addPart(py)
		isNew := slices.ContainsFunc(q.groups, func(g string) bool {
			return !slices.Contains(p.groups, g) || isApart(p, g)
		})
		switch {
		case !hasKind(q.gates, "test"):
		case alone && isNew, !alone && len(chosen) == manyParts:
			left = append(left, name)
		case !alone:
			chosen = append(chosen, name)
			addPart(p, name, &q)
		}
	}
	if len(chosen) > 0 {
		note := "The root has no tests of its own; the gates come from " + strings.Join(chosen, ", ") + "."
		p.notes = append(p.notes, note)
	}
	if len(left) > 0 {
		p.notes = append(p.notes, fmt.Sprintf("Left out: %s; add a gate such as \"cd %s && …\" if agents work there.",
			report.Some(left, shownNames), left[0]))
	}
}

// isApart is true where the root's own tests do not reach into a folder that is a module of its
// own. A workspace reaches all of its modules, and is tested by another command.
func isApart(p *part, group string) bool {
	alone := map[string]string{"go": "go test ./...", "rust": "cargo test"}[group]
	return alone != "" && slices.ContainsFunc(p.gates, func(g Gate) bool { return g.Command == alone })
}

// addPart adds the gates and the set-up of a folder, run there.
func addPart(p *part, name string, q *part) {
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

// goWork tests the modules of a Go workspace.
func (r repository) goWork(p *part) {
	packages := lists.Each(goUse().FindAllStringSubmatch(r.text("go.work"), -1), func(m []string) string {
		return strings.TrimSuffix(m[1], "/") + "/..."
	})
	if len(packages) == 0 {
		return
	}
	p.gates = slices.DeleteFunc(p.gates, func(g Gate) bool { return strings.HasPrefix(g.Command, "go ") })
	for _, g := range [][2]string{{"build", "go build "}, {"test", "go test "}, {"lint", "go vet "}} {
		if !hasKind(p.gates, g[0]) {
			p.gates = append(p.gates, newGate(g[0], g[1]+strings.Join(packages, " "), "go.work"))
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
		if yaml.Unmarshal([]byte(r.text(name)), &file) != nil {
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
				return part{gates: []Gate{newGate("test", line, name)}}
			}
		}
	}
	return part{}
}
