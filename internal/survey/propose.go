package survey

import (
	"bytes"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"github.com/pawl-dev/pawl/internal/config"
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
		return Proposal{}, fmt.Errorf("cannot look at %s: it is no folder that can be read", root)
	}
	p := Proposal{}
	if len(agents) > 0 {
		p.Agent, p.Others = agents[0], agents[1:]
	}
	r := repository{root, lookPath}
	all, none := r.whole()
	r.parts(&all, none)
	p.Gates, p.Notes = all.gates, all.notes
	for _, kind := range gateOrder {
		if none[kind] {
			p.Notes = append(p.Notes, "AGENTS.md says that "+kind+" is not required or manual, so there is no such gate.")
		}
	}
	r.untested(&p)
	p.Gates = arrange(p.Gates)
	p.Protect, p.Setup = r.protected(), unique(all.setup)
	if r.has(".env") {
		p.Copy = append(p.Copy, ".env")
	}
	return p, nil
}

func unique(list []string) []string {
	var out []string
	for _, s := range list {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

func hasKind(gates []Gate, kind string) bool {
	return slices.ContainsFunc(gates, func(g Gate) bool { return g.Kind == kind })
}

// arrange puts the gates into their order and makes their names differ.
func arrange(gates []Gate) []Gate {
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
		"schema": func() string { return config.SchemaURL }, "flow": config.Flow, "list": flowList, "join": strings.Join,
		"line": func(s string) string { return strings.Join(strings.Fields(s), " ") },
	}).Parse(proposalText))
	var b bytes.Buffer
	if err := t.Execute(&b, p); err != nil {
		panic("survey: proposal.tmpl: " + err.Error()) // our own file, read by every test
	}
	return b.Bytes()
}

func flowList(items []string) string {
	quoted := make([]string, len(items))
	for i, item := range items {
		quoted[i] = config.Flow(item)
	}
	return strings.Join(quoted, ", ")
}
