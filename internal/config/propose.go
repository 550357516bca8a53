package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Proposal is a first pawl.yaml for a repository: what was found, where, and
// what was left out on purpose.
type Proposal struct {
	// Agent is the first agent found; "" if there is none.
	Agent string
	// Others are the further agents found, in the order of preference.
	Others []string
	Gates  []ProposedGate
	// Protect are globs of files that no agent should change.
	Protect []string
	// Setup are commands that a fresh clone needs, e.g. npm ci.
	Setup []string
	// Copy are files that git does not have and gates may need.
	Copy []string
	// Notes say what was seen and not taken, and why.
	Notes []string
}

// ProposedGate is a gate and the file that it was found in.
type ProposedGate struct {
	Gate
	From string
}

// gateOrder is the order in which proposed gates run: what fails soonest and
// explains most comes first.
var gateOrder = []string{"build", "typecheck", "test", "lint"}

// Propose looks at the repository at root. What AGENTS.md says wins over a
// Makefile, which wins over the language's own tools. agents are those of this
// machine, in the order of preference. lookPath finds programs, as exec.LookPath
// does. Nothing is run or written.
func Propose(root string, agents []string, lookPath func(string) (string, error)) (Proposal, error) {
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

func hasKind(gates []ProposedGate, kind string) bool {
	return slices.ContainsFunc(gates, func(g ProposedGate) bool { return g.Kind == kind })
}

// arrange puts the gates into their order and makes their names differ.
func arrange(gates []ProposedGate) []ProposedGate {
	slices.SortStableFunc(gates, func(a, b ProposedGate) int {
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

// YAML is the commented pawl.yaml. Load accepts it.
func (p Proposal) YAML() []byte {
	var b strings.Builder
	w := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	w("# yaml-language-server: $schema=%s", SchemaURL)
	w("# pawl.yaml: how agents work here. Every key: pawl schema; what is in force: pawl config")
	w("")
	p.writeAgent(w)
	w("")
	p.writeGates(w)
	w("")
	w("procedures:")
	w("  build:                             # pawl run build")
	w("    summary: Do the next piece of work")
	w("    observe: [builtin:observe/repository]")
	w("    orient: [builtin:orient/compare]")
	w("    decide: [builtin:decide/one-task]")
	w("    act: [builtin:act/edit-and-test]")
	w("    max_iterations: 10")
	w("")
	w("loop:")
	w("  iteration_timeout: 30m             # one iteration")
	w("  idle_timeout: 10m                  # without output or a changed file")
	w("  safety: normal                     # permissive, normal, paranoid")
	p.writeWorkspace(w)
	return []byte(b.String())
}

func (p Proposal) writeAgent(w func(string, ...any)) {
	if p.Agent == "" {
		w("# No agent was found on this machine. Install one, or name your own program:")
		w("# agents:")
		w("#   mine: {command: [\"./agent.sh\"]}   # the prompt comes on stdin")
		w("# agent: mine")
		return
	}
	w("agent: %s", p.Agent)
	if len(p.Others) > 0 {
		w("# agents:                            # tried when %s has reached its limit", p.Agent)
		w("#   fallback: [%s]", strings.Join(p.Others, ", "))
	}
}

func (p Proposal) writeGates(w func(string, ...any)) {
	for _, note := range p.Notes {
		w("# %s", oneLine(note))
	}
	w("verification:                        # what must be green before anything counts as done")
	if len(p.Protect) > 0 {
		w("  # Changing these fails verification; add your tests if agents must not edit them.")
		w("  protect: [%s]", flowList(p.Protect))
		w("  protect_new: true                  # new files that match, too")
	}
	if len(p.Gates) == 0 {
		w("  # No verification commands were found: tasks would complete without validation.")
		w("  # commands:")
		w("  #   - {name: tests, command: \"make test\", kind: test, timeout: 10m}")
		return
	}
	w("  commands:")
	for _, g := range p.Gates {
		w("    - name: %-28s # from %s", flow(g.Name), oneLine(g.From))
		w("      command: %s", flow(g.Command))
		w("      kind: %s", g.Kind)
		w("      timeout: %s", g.Timeout)
		if !g.Required {
			w("      required: false                # a failure is only a warning")
		}
	}
}

func (p Proposal) writeWorkspace(w func(string, ...any)) {
	if len(p.Setup)+len(p.Copy) == 0 {
		return
	}
	w("")
	w("workspace:                           # the private clone of each task")
	if len(p.Setup) > 0 {
		w("  setup:                             # what a fresh clone needs before its gates can run")
	}
	for _, s := range p.Setup {
		w("    - %s", flow(s))
	}
	if len(p.Copy) > 0 {
		w("  # These are not in git. Take the # off if gates need them; agents can read them then.")
		w("  # copy: [%s]", flowList(p.Copy))
	}
}

func flowList(items []string) string {
	quoted := make([]string, len(items))
	for i, item := range items {
		quoted[i] = flow(item)
	}
	return strings.Join(quoted, ", ")
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
