package planner_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/ask/planner"
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/prompt"
	"github.com/pawl-dev/pawl/internal/decide/strategy"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/agent/agents"
	"github.com/pawl-dev/pawl/internal/do/autopilot"
	"github.com/pawl-dev/pawl/internal/do/engine/runplan"
	"github.com/pawl-dev/pawl/internal/do/workspace/pool"
	"github.com/pawl-dev/pawl/internal/keep/store"
	"github.com/pawl-dev/pawl/internal/test/transcript"
)

// The stories of testdata are of one person each, at an empty folder, on a
// machine without any agent:
//
//	put FILE              FILE of testdata is in the folder, a configuration as
//	                      pawl.yaml; it is shown
//	have PROGRAM…         the programs are in PATH
//	set K=V…              the variables are set
//	run NAME [FLAG=V…]    the plan of a procedure, with flags as keys of
//	                      planner.Flags in JSON
//	workflow FILE [FLAG=V…]   of a workflow
//	task [FLAG=V…]        of a task; case_iterations and case_timeout are its own limits,
//	                      control=KEY:VALUE is its own iteration control
//	landing               of what lands
//	dry NAME [FLAG=V…]    what --dry-run shows
//	told                  who is told what: the hooks
func TestTranscripts(t *testing.T) {
	transcript.Run(t, func(t *testing.T) func(string) string {
		s := &story{t: t, dir: t.TempDir(), env: []string{"HOME=/home/ada", "PATH=/bin"}}
		if err := os.Mkdir(filepath.Join(s.dir, ".git"), 0o755); err != nil {
			t.Fatal(err)
		}
		return s.play
	})
}

type story struct {
	t    *testing.T
	dir  string
	have []string
	env  []string
}

func (s *story) play(line string) string {
	words := strings.Fields(line)
	switch words[0] {
	case "put":
		return s.put(words[1])
	case "have":
		s.have = strings.Fields(strings.ReplaceAll(strings.Join(words[1:], " "), "DIR", s.dir))
		return ""
	case "set":
		s.env = append(s.env, words[1:]...)
		return ""
	}
	text, err := s.plan(words)
	if err != nil {
		text += wrong(err)
	}
	return strings.ReplaceAll(text, s.dir, "DIR")
}

func (s *story) put(name string) string {
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		s.t.Fatal(err)
	}
	to := name
	if strings.HasSuffix(name, ".pawl.yaml") {
		to = "pawl.yaml"
	}
	if err := os.WriteFile(filepath.Join(s.dir, to), data, 0o600); err != nil {
		s.t.Fatal(err)
	}
	var b strings.Builder
	for line := range strings.Lines(string(data)) {
		b.WriteString("  | " + line)
	}
	return b.String()
}

// plan does what a line asks for.
func (s *story) plan(words []string) (string, error) {
	what, name, given := words[0], "", words[1:]
	if what == "run" || what == "dry" || what == "workflow" {
		name, given = words[1], words[2:]
	}
	pl, said, err := s.planner(given)
	if err != nil {
		return "", err
	}
	var plan runplan.Plan
	switch what {
	case "run":
		plan, err = pl.Procedure(name)
	case "task":
		args := transcript.Arguments(given)
		tags := strings.Fields(strings.ReplaceAll(args["tags"], ",", " "))
		var control *board.Control
		if own := args["control"]; own != "" {
			if control, err = control.With(strings.Replace(own, ":", "=", 1)); err != nil {
				s.t.Fatal(err)
			}
		}
		plan, err = pl.Task(autopilot.Task{
			Case:      board.Case{ID: "T-1", Title: "Greet", Tags: tags, Control: control},
			Workspace: pool.Workspace{ID: "T-1", Dir: filepath.Join(s.dir, "clone")},
			Agent:     args["racer"], Limits: limitsOf(s.t, args),
		})
	case "landing":
		plan, err = pl.Landing()
	case "workflow":
		w, werr := config.LoadWorkflow(s.dir, name)
		if werr != nil {
			return "", werr
		}
		plan, err = pl.Workflow(w)
	case "dry":
		in, command, err := pl.DryRun(name)
		return fmt.Sprintf("%siteration %d of %d by: %s\nprompt %s\n", *said, in.Iteration, in.MaxIterations, command, promptFragments(in)), err
	case "told":
		return told(pl.Config, s.env), nil
	default:
		s.t.Fatalf("a story has no line %q", what)
	}
	if err != nil {
		return *said, err
	}
	return *said + tell(plan), nil
}

// planner is that of the folder, with flags in force.
func (s *story) planner(given []string) (*planner.Planner, *string, error) {
	args, said := transcript.Arguments(given), ""
	f := planner.Flags{
		Max: args["max_iterations"], Safety: args["safety"], Timeout: args["timeout"], Strategy: args["strategy"], MaxCost: args["max_cost"],
		Agent: args["agent"], AgentCmd: strings.ReplaceAll(args["agent_cmd"], "_", " "),
	}
	_, f.Iterate = args["iterate"]
	if c, ok := args["context"]; ok {
		f.Context = []string{c}
	}
	c, err := config.Load(config.Options{
		Dir: s.dir, Env: s.env, Flags: f.Paths(), Builtin: prompt.Builtin, BuiltinNames: prompt.Builtins(), CheckTemplate: prompt.CheckTemplate,
		Agents: agents.Names(), Strategies: strategy.Names(),
	})
	return &planner.Planner{
		Config: c, Flags: f, Env: s.env, Dir: s.dir, Warn: func(text string) { said += "warning: " + text + "\n" },
		KeyFrom: func(command string) (string, error) {
			if key, ok := strings.CutPrefix(command, "echo "); ok {
				return key, nil
			}
			return "", errors.New("the command failed: exit status 1")
		},
		LookPath: func(program string) (string, error) {
			if slices.Contains(s.have, program) || slices.Contains([]string{"go", "git", "make"}, program) { // which the gates of most stories need
				return "/bin/" + program, nil
			}
			return "", exec.ErrNotFound
		},
	}, &said, err
}

// limitsOf are those of a task.
func limitsOf(t *testing.T, args map[string]string) (l store.CaseLimits) {
	var err error
	if n := args["case_iterations"]; n != "" {
		if l.MaxIterations, err = strconv.Atoi(n); err != nil {
			t.Fatal(err)
		}
	}
	if d := args["case_timeout"]; d != "" {
		if l.Timeout, err = time.ParseDuration(d); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// wrong is an error as a person gets it.
func wrong(err error) string {
	var f *fault.Error
	if !errors.As(err, &f) {
		return fmt.Sprintf("wrong: %v\n", err)
	}
	text := fmt.Sprintf("%s: %v\n", f.Kind, err)
	for _, h := range f.Hints {
		text += "  " + h + "\n"
	}
	return text
}

// tell is a plan in words. What is off is left out.
func tell(p runplan.Plan) string {
	var b strings.Builder
	pol := p.Policy
	fmt.Fprintf(&b, "%s %s at the level %s, in %s\n", p.Kind, p.Name, p.Safety, p.Root)
	if pol.Kind != "" {
		fmt.Fprintf(&b, "policy %s: %s\n", pol.Kind, limits(pol))
		if c := pol.Control; c != nil {
			fmt.Fprintf(&b, "control: %s\n", some("retry red", c.RetryTestFail, "retry rejected", c.RetryReviewReject, "diff", c.IncludeDiff, "feedback", c.FeedbackMax))
		}
		fmt.Fprintf(&b, "an iteration: %s\n", some("time", pol.IterationTimeout, "silence", pol.IdleTimeout, "cost", pol.MaxIterationCost, "calls", pol.MaxIterationCalls))
		fmt.Fprintf(&b, "guards: %s\n", some("failures", pol.FailureThreshold, "thrashing", pol.Thrashing, "stuck", pol.Stuck, "repeated", pol.Repeated))
		fmt.Fprintf(&b, "strategy: %s\n", some("fixed", pol.Strategy, "mode", pol.Mode))
	}
	for _, name := range slices.Sorted(maps.Keys(p.Agents)) {
		a, role := p.Agents[name], ""
		switch {
		case name == pol.Agent:
			role = " (works)"
		case slices.Contains(pol.Fallback, name):
			role = " (stands in)"
		case name == pol.Stronger:
			role = " (stronger)"
		case name == pol.Reviewer:
			role = " (reviews)"
		}
		fmt.Fprintf(&b, "agent %s%s: %s\n", name, role, some("command", strings.Join(a.Command, " "), "model", a.Model, "env", strings.Join(a.Env, " "), "silence", a.Idle, "through the gateway", routes(a.Routes), "reach", strings.Join(a.Endpoints, " "), "withheld", strings.Join(a.Withheld, " ")))
	}
	if pol.Review {
		fmt.Fprintf(&b, "review by %s: %s\n", reviewerOf(pol), p.Review.Fragment.Name)
	}
	for _, g := range p.Gates {
		must := "required"
		if !g.Required {
			must = "optional"
		}
		fixed := ""
		if g.Fixed {
			fixed = ", fixed"
		}
		fmt.Fprintf(&b, "gate %s (%s, %s%s): %s\n", g.Name, must, g.Timeout, fixed, g.Command)
	}
	if names := promptFragments(p.Prompt); names != "" {
		fmt.Fprintf(&b, "prompt %s\n", names)
	}
	if len(p.Withheld) > 0 {
		fmt.Fprintf(&b, "withheld from gates: %s\n", strings.Join(p.Withheld, " "))
	}
	if len(p.Marks) > 0 {
		fmt.Fprintf(&b, "marks: %s\n", strings.Join(p.Marks, " "))
	}
	return b.String()
}

func reviewerOf(pol loop.Policy) string {
	if pol.Reviewer == "" {
		return pol.Agent + ", in a fresh process"
	}
	return pol.Reviewer
}

func limits(pol loop.Policy) string {
	text := some("iterations", pol.MaxIterations, "cost", pol.MaxCost, "wall clock", pol.Timeout, "time of the iterations", pol.TaskTimeout, "the level's time", pol.MaxDuration)
	if pol.Once {
		text = "once; " + text
	}
	return text
}

func promptFragments(in prompt.Input) string {
	var names []string
	for _, list := range [][]prompt.Fragment{in.Observe, in.Orient, in.Decide, in.Act} {
		for _, f := range list {
			names = append(names, f.Name)
		}
	}
	for _, c := range in.Context {
		names = append(names, fmt.Sprintf("context(%s:%s)", c.Source, strings.TrimSpace(c.Text)))
	}
	return strings.Join(names, ", ")
}

// some are the pairs of a name and a value that is not its type's zero.
func some(pairs ...any) string {
	var parts []string
	for i := 0; i < len(pairs); i += 2 {
		if text := fmt.Sprint(pairs[i+1]); text != "" && text != "0" && text != "0s" {
			parts = append(parts, fmt.Sprintf("%v %s", pairs[i], text))
		}
	}
	if len(parts) == 0 {
		return "-"
	}
	return strings.Join(parts, ", ")
}

func told(c *config.Config, env []string) string {
	o, left := planner.Hooks(c, func(name string) string {
		for _, kv := range env {
			if v, ok := strings.CutPrefix(kv, name+"="); ok {
				return v
			}
		}
		return ""
	})
	var b strings.Builder
	for _, n := range slices.Sorted(maps.Keys(o.Hooks)) {
		fmt.Fprintf(&b, "at %s: %s\n", n, o.Hooks[n].Line)
	}
	for _, r := range o.Receivers {
		fmt.Fprintf(&b, "%s %v: ", r.Label, r.Events)
		if r.Webhook != nil {
			fmt.Fprintf(&b, "post to %s with %v\n", r.Webhook.Address, r.Webhook.Headers)
			continue
		}
		fmt.Fprintf(&b, "%s\n", r.Command.Line)
	}
	for _, l := range left {
		fmt.Fprintf(&b, "left out: %s\n", l)
	}
	return b.String()
}

// routes are the providers that an agent reaches by the gateway, without their keys.
func routes(all []agent.Route) string {
	var out []string
	for _, r := range all {
		text := r.Name + " at " + r.Base
		if r.Next != nil {
			text += fmt.Sprintf(", then %s with %q in %s", r.Next.Base, r.Next.Key, r.Next.Header)
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

// A file of the repository is no context where a link leads there, whichever folder of the
// repository the configuration is in: an agent may have brought the link.
func TestContextBehindALink(t *testing.T) {
	small, err := os.ReadFile("testdata/small.pawl.yaml")
	if err != nil {
		t.Fatal(err)
	}
	top, other := t.TempDir(), t.TempDir()
	for _, dir := range []string{".git", "sub"} {
		if err := os.Mkdir(filepath.Join(top, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	secret, plain := filepath.Join(other, "key.md"), filepath.Join(top, "plain.md")
	for _, path := range []string{secret, plain} {
		if err := os.WriteFile(path, []byte("canary"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"notes.md": secret, "docs": other} {
		if err := os.Symlink(to, filepath.Join(top, name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(filepath.Join(top, "sub"))
	for _, dir := range []string{filepath.Join(top, "sub"), "."} {
		s := &story{t: t, dir: dir, have: []string{"claude"}, env: []string{"HOME=/home/ada", "PATH=/bin"}}
		if err := os.WriteFile(filepath.Join(dir, "pawl.yaml"), small, 0o600); err != nil {
			t.Fatal(err)
		}
		for item, isRead := range map[string]bool{
			"../notes.md": false, "../docs/key.md": false, filepath.Join(top, "notes.md"): false, "../plain.md": true, secret: true,
		} {
			text, err := s.plan([]string{"dry", "build", "context=" + item})
			if got := strings.Contains(text, "canary"); got != isRead || err == nil != isRead {
				t.Errorf("%s in %s: read is %v: %v", item, dir, got, err)
			}
		}
	}
}

// An order carries the four flags of an autopilot and nothing else, and never lowers the level.
func TestOrderedPaths(t *testing.T) {
	t.Parallel()
	asked := map[string]string{
		"loop.max_iterations": "3", "loop.max_cost": "2", "agent": "codex", "loop.safety": "permissive", "loop.timeout": "1h",
		"agents.codex.command": "sh -c evil", "cluster.store": "postgres://elsewhere/x",
	}
	for level, want := range map[string]string{"normal": "normal", "paranoid": "paranoid", "permissive": "permissive"} {
		got := planner.OrderedPaths(asked, level)
		if len(got) != 4 || got["loop.safety"] != want || got["agent"] != "codex" {
			t.Errorf("at %s an order carries %v", level, got)
		}
	}
}
