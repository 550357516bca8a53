package survey

import (
	"bytes"
	_ "embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/decide/lazy"
	"github.com/pawl-dev/pawl/internal/decide/lists"
)

// Proposal is a first pawl.yaml for a repository: what was found, where, and
// what was left out on purpose.
type Proposal struct {
	// Agent is the first agent found; "" if there is none.
	Agent string
	// AgentFrom is the place that names it already; "" is none: it is written here.
	AgentFrom string
	// Others are the further agents found, in the order of preference.
	Others []string
	Gates  []Gate
	// Protect are globs of files that no agent should change.
	Protect []string
	// Setup are commands that a fresh clone needs, e.g. npm ci.
	Setup []string
	// Copy are files that git does not have and gates may need.
	Copy []string
	// Notes say what was seen and not taken, and why.
	Notes []string
}

// Gate is a gate and the file that it was found in.
type Gate struct {
	config.Gate
	From string
}

// gateOrder is the order in which proposed gates run: what fails soonest and
// explains most comes first.
var gateOrder = []string{"build", "typecheck", "test", "lint"}

// Of looks at the repository at root. What AGENTS.md says wins over a
// Makefile, which wins over the language's own tools. agents are those of this
// machine, in the order of preference. lookPath finds programs, as exec.LookPath
// does. Nothing is run or written.
func Of(root string, agents []string, lookPath func(string) (string, error)) (Proposal, error) {
	if info, err := os.Stat(root); err != nil || !info.IsDir() {
		return Proposal{}, fmt.Errorf("cannot look at %s: it is not a readable folder", root)
	}
	p := Proposal{}
	if len(agents) > 0 {
		p.Agent, p.Others = agents[0], agents[1:]
	}
	r := repository{root, lookPath}
	all, none := r.wholeFolder()
	r.addParts(&all, none)
	p.Gates, p.Notes = all.gates, all.notes
	for _, kind := range gateOrder {
		if none[kind] {
			note := "AGENTS.md says that " + kind + " is not required or manual, so no gate was written."
			p.Notes = append(p.Notes, note)
		}
	}
	p.Gates = arrangeGates(p.Gates)
	p.Protect, p.Setup = r.protectedGlobs(), lists.Union(nil, all.setup...)
	if r.has(".env") {
		p.Copy = append(p.Copy, ".env")
	}
	return p, nil
}

func hasGateOfKind(gates []Gate, kind string) bool {
	return slices.ContainsFunc(gates, func(g Gate) bool { return g.Kind == kind })
}

// arrangeGates puts the gates into their order and makes their names differ.
func arrangeGates(gates []Gate) []Gate {
	slices.SortStableFunc(gates, func(a, b Gate) int {
		return slices.Index(gateOrder, a.Kind) - slices.Index(gateOrder, b.Kind)
	})
	count := map[string]int{}
	for i := range gates {
		name := gates[i].Name
		if count[name]++; count[name] > 1 {
			word, _, _ := strings.Cut(gates[i].Command, " ")
			gates[i].Name = fmt.Sprintf("%s-%s", name, strings.TrimPrefix(filepath.Base(word), "./"))
			if count[gates[i].Name]++; count[gates[i].Name] > 1 {
				gates[i].Name = fmt.Sprintf("%s-%d", name, i+1)
			}
		}
	}
	return gates
}

//go:embed proposal.tmpl
var proposalText string

// YAML is the commented pawl.yaml. Load accepts it.
func (p Proposal) YAML() []byte {
	t := template.Must(template.New("pawl.yaml").Funcs(template.FuncMap{
		"schema": func() string { return config.SchemaURL }, "flow": config.Flow, "list": flowList,
		"join": strings.Join, "line": func(s string) string { return strings.Join(strings.Fields(s), " ") },
	}).Parse(proposalText))
	var b bytes.Buffer
	if err := t.Execute(&b, p); err != nil {
		panic("survey: proposal.tmpl: " + err.Error()) // our own file, read by every test
	}
	return b.Bytes()
}

func flowList(items []string) string {
	quoted := lists.Each(items, config.Flow)
	return strings.Join(quoted, ", ")
}

var (
	// runners are red where they find no test.
	runners = lazy.Regexp(`\b(go test|cargo (nextest|test)|pytest|unittest)\b`)
	// scriptRunners are the same in the script of a package.json.
	scriptRunners = lazy.Regexp(`"test"\s*:\s*"[^"]*\b(node --test|jest|vitest|mocha|ava|tap|uvu|bun test)\b`)
	npmTest       = lazy.Regexp(`\b(npm|pnpm|yarn|bun)( run)? test\b`)
	// testPlaces are paths of tests, in the languages of these runners.
	testPlaces = lazy.Regexp(`(?i)(^|/)(tests?|specs?|__tests__)/.+\.\w+$|(^|[/._-])(tests?|specs?)\.\w+$` +
		`|(^|/)tests?[._-][^/]*$`)
	rustTests = lazy.Regexp(`#\[(\w+::)?test\b|#\[cfg\(test\)`)
)

// lookedAt bounds the files that are looked at for a test: so many have one.
const lookedAt = 20_000

// warnUntested makes warnings of test gates that could only be red, as nothing here is a test. apart are folders
// whose tests they do not run.
func (r repository) warnUntested(p *part, apart []string) {
	searched, has := false, false
	for i, g := range p.gates {
		script := npmTest().MatchString(g.Command) && scriptRunners().MatchString(r.fileText("package.json"))
		if runs := script || runners().MatchString(g.Command); g.Kind != "test" || !runs {
			continue
		}
		if !searched {
			searched, has = true, r.hasTests(apart)
		}
		if has {
			return
		}
		p.gates[i].Required = false
		p.notes = append(p.notes, fmt.Sprintf("No test was found, and a test gate without tests is red: "+
			"'%s' is only a warning. Remove its 'required: false' when the first test is there.", g.Command))
	}
}

// hasTests is true if any file looks like a test, or if there are too many to look at. What is in the folders
// apart is none.
func (r repository) hasTests(apart []string) bool {
	n, found := 0, false
	err := filepath.WalkDir(r.dir, func(path string, e fs.DirEntry, err error) error {
		n++
		rel := strings.TrimPrefix(filepath.ToSlash(path), filepath.ToSlash(r.dir)+"/")
		name := e.Name()
		hidden := strings.HasPrefix(name, ".") || name == "node_modules" || name == "vendor"
		switch {
		case err != nil:
			return fs.SkipDir // what cannot be read has no tests
		case e.IsDir() && path != r.dir && hidden, slices.Contains(apart, rel):
			return fs.SkipDir
		case e.IsDir():
			return nil
		}
		found = testPlaces().MatchString(rel) || n > lookedAt ||
			strings.HasSuffix(rel, ".rs") && rustTests().MatchString(r.fileText(rel))
		if found {
			return fs.SkipAll
		}
		return nil
	})
	return found || err != nil
}

// This file reads the section "Build/Test/Lint Commands" of AGENTS.md: labels
// in bold, each followed by code on its line or in a fenced block.

var (
	mdHeading    = lazy.Regexp(`^(#{1,6})\s+(.*?)\s*#*$`)
	mdSection    = lazy.Regexp(`(?i)^build\s*/\s*test\s*/\s*lint( commands)?$`)
	mdLabel      = lazy.Regexp(`(?m)^\s*(?:[-*+]\s+)?(?:\*\*|__)([^*_]+?):?(?:\*\*|__)\s*:?`)
	mdCode       = lazy.Regexp("`([^`]+)`")
	mdFence      = lazy.Regexp("^\\s*(?:```|~~~)")
	mdBlock      = lazy.Regexp("(?s)(?:```|~~~)[^\n]*\n(.*?)(?:```|~~~|$)")
	mdContinued  = lazy.Regexp(`[ \t]*\\\n\s*`)
	mdUnrequired = lazy.Regexp(`(?i)^\W*(not required|manual verification|none|n/a)\b`)
)

var mdKinds = map[string]string{
	"build": "build", "test": "test", "tests": "test", "lint": "lint",
	"typecheck": "typecheck", "type check": "typecheck", "type-check": "typecheck",
}

// agentsFile returns the gates that AGENTS.md names, and the kinds that it
// says are not required or verified by hand.
func (r repository) agentsFile() (gates []Gate, none map[string]bool) {
	none = map[string]bool{}
	section := mdCommands(r.fileText("AGENTS.md"))
	labels := mdLabel().FindAllStringSubmatchIndex(section, -1)
	for i, at := range labels {
		end := len(section)
		if i+1 < len(labels) {
			end = labels[i+1][0]
		}
		kind := mdKinds[strings.ToLower(strings.TrimSpace(section[at[2]:at[3]]))]
		body := section[at[1]:end]
		switch command := mdCommand(body); {
		case kind == "":
		case mdUnrequired().MatchString(body):
			none[kind] = true
		case command != "":
			gates = append(gates, newGateOfKind(kind, command, "AGENTS.md"))
		}
	}
	return gates, none
}

// mdCommands is the text of the section, without its heading.
func mdCommands(text string) string {
	var out strings.Builder
	level, fenced := 0, false
	for line := range strings.Lines(text) {
		if mdFence().MatchString(line) {
			fenced = !fenced
		}
		if m := mdHeading().FindStringSubmatch(strings.TrimSpace(line)); m != nil && !fenced {
			switch {
			case level == 0 && mdSection().MatchString(m[2]):
				level = len(m[1])
				continue
			case level > 0 && len(m[1]) <= level:
				return out.String()
			}
		}
		if level > 0 {
			out.WriteString(line)
		}
	}
	return out.String()
}

// mdCommand reads what follows a label: the first fenced block, else the code on
// the first line that has some; what comes later explains. Several commands are
// joined, so that the first failure stops.
func mdCommand(body string) string {
	var commands []string
	add := func(line string) {
		line, _, _ = strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "$ "), " # ")
		if line != "" && !strings.HasPrefix(line, "#") {
			commands = append(commands, strings.TrimSpace(line))
		}
	}
	if m := mdBlock().FindStringSubmatch(body); m != nil {
		for line := range strings.Lines(mdContinued().ReplaceAllString(m[1], " ")) {
			add(line)
		}
		return strings.Join(commands, " && ")
	}
	for line := range strings.Lines(body) {
		for _, m := range mdCode().FindAllStringSubmatch(line, -1) {
			add(m[1])
		}
		if len(commands) > 0 {
			break
		}
	}
	return strings.Join(commands, " && ")
}
