package survey

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/pawl-dev/pawl/internal/decide/report"
)

// manifest is what a package.json says.
type manifest struct {
	Scripts         map[string]string `json:"scripts"`
	PackageManager  string            `json:"packageManager"`
	Dependencies    map[string]string `json:"dependencies"`
	DevDependencies map[string]string `json:"devDependencies"`
	Workspaces      any               `json:"workspaces"`
}

// packageManager is npm unless a lock file or package.json says otherwise; with the
// command that installs.
func (r repository) packageManager(m *manifest) (manager, install string) {
	declared, _, _ := strings.Cut(m.PackageManager, "@")
	for _, row := range rulesFor("lock", "bare") {
		applies := row.kind == "lock" || slices.Contains([]string{declared, "npm"}, row.group)
		if _, ok := r.ruleHolds(row.when); ok && applies {
			return row.group, row.command
		}
	}
	return "npm", ""
}

func (r repository) nodePart() part {
	var p part
	var m manifest
	if json.Unmarshal([]byte(r.fileText("package.json")), &m) != nil {
		return p
	}
	manager, install := r.packageManager(&m)
	members := r.memberFolders(m.Workspaces)
	p.members = members
	locked := slices.ContainsFunc(rulesFor("lock"), func(l rule) bool { return r.has(strings.Fields(l.when)[0]) })
	if len(m.Dependencies)+len(m.DevDependencies)+len(members) > 0 || locked {
		p.setup = append(p.setup, install)
	}
	p.groups = append(p.groups, "node")
	own := pickTasks([]string{"build", "typecheck", "test", "lint"}, scriptTasks(m.Scripts), func(name string) string {
		return runScript(manager, name)
	}, "package.json")
	p.mergePart(own)
	if len(members) > 0 {
		p.mergePart(r.memberGates(manager, members, own.gates))
	}
	if !hasGateOfKind(p.gates, "test") && manager == "bun" && r.has("*.test.ts", "test", "tests", "src/*.test.ts") {
		p.gates = append(p.gates, newGateOfKind("test", "bun test", "bun's lock file"))
	}
	return p
}

func runScript(manager, name string) string {
	if name == "test" && manager == "npm" {
		return "npm test"
	}
	return manager + " run " + name
}

// scriptTasks are the scripts of a package.json.
func scriptTasks(all map[string]string) map[string]task {
	out := map[string]task{}
	for name, body := range all {
		if name != "check" { // it may be anything: types, style, both
			out[name] = task{body: body}
		}
	}
	return out
}

// memberFolders are the folders of a monorepo's packages.
func (r repository) memberFolders(declared any) []string {
	var globs []string
	switch w := declared.(type) {
	case []any:
		globs = stringsAmong(w)
	case map[string]any:
		list, _ := w["packages"].([]any)
		globs = stringsAmong(list)
	}
	var pnpm struct {
		Packages []string `yaml:"packages"`
	}
	if yaml.Unmarshal([]byte(r.fileText("pnpm-workspace.yaml")), &pnpm) == nil {
		globs = append(globs, pnpm.Packages...)
	}
	var found []string
	for _, glob := range globs {
		glob = strings.TrimPrefix(strings.ReplaceAll(glob, "**", "*"), "./")
		if strings.HasPrefix(glob, "!") {
			continue
		}
		files, _ := filepath.Glob(filepath.Join(r.dir, glob, "package.json"))
		for _, file := range files {
			if name, err := filepath.Rel(r.dir, filepath.Dir(file)); err == nil && name != "." {
				found = append(found, name)
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func stringsAmong(list []any) []string {
	var out []string
	for _, w := range list {
		if s, is := w.(string); is {
			out = append(out, s)
		}
	}
	return out
}

// runEverywhere runs a script in all packages that have it.
func (r repository) runEverywhere(manager, script string) string {
	for _, rule := range rulesFor("everywhere") {
		if _, ok := r.ruleHolds(rule.when); ok && rule.group == manager {
			return strings.Replace(rule.command, "{script}", script, 1)
		}
	}
	return runScript(manager, script)
}

// memberGates are the checks of a monorepo's packages that its root does not run.
func (r repository) memberGates(manager string, members []string, own []Gate) part {
	var p part
	with := map[string]int{}
	for _, member := range members {
		var m manifest
		if json.Unmarshal([]byte(r.fileText(filepath.Join(member, "package.json"))), &m) != nil {
			continue
		}
		tasks := scriptTasks(m.Scripts)
		for name, t := range tasks {
			if reasonUnfit(withCalled(tasks, t, map[string]bool{name: true})) == "" {
				with[name]++
			}
		}
	}
	for _, kind := range gateOrder {
		names := namesOf(kind)
		at := slices.IndexFunc(names, func(name string) bool { return with[name] > 0 })
		if at >= 0 && !hasGateOfKind(own, kind) {
			command := r.runEverywhere(manager, names[at])
			p.gates = append(p.gates, newGateOfKind(kind, command, fmt.Sprintf("%d packages", with[names[at]])))
		}
	}
	what := "the gates are the scripts of the root's package.json"
	if len(p.gates) > 0 {
		what = "what the root has no script for runs in every package that has one"
	}
	p.notes = append(p.notes, fmt.Sprintf("Monorepo of %s (%s): %s.", manager, report.Some(members, shownNames), what))
	return p
}

// shownNames are the packages that a note names.
const shownNames = 6
