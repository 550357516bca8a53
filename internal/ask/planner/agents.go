package planner

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/ask/config/quantity"
	"github.com/pawl-dev/pawl/internal/ask/config/statedir"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/safety"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/agent/agents"
	"github.com/pawl-dev/pawl/internal/do/egress"
	"github.com/pawl-dev/pawl/internal/do/engine"
	"github.com/pawl-dev/pawl/internal/do/engine/runplan"
	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/do/ratelimit"
)

// resolveAgents resolves every agent that may work on the run. The default one must
// be installed; a fallback that is missing is left out with a warning.
func (d draft) resolveAgents(pol *loop.Policy) (map[string]runplan.Agent, error) {
	all := map[string]runplan.Agent{}
	if d.Flags.AgentCmd != "" {
		own, err := d.fromCommand()
		if err != nil {
			return nil, err
		}
		pol.Agent = own.Adapter.About().Name
		all[pol.Agent] = own
	} else if err := d.addAgent(all, pol.Agent, true); err != nil {
		return nil, err
	}
	return all, d.spareAgents(all, pol)
}

// spareAgents resolves those that stand in. One that is missing is left out
// with a warning.
func (d draft) spareAgents(all map[string]runplan.Agent, pol *loop.Policy) error {
	kept := pol.Fallback[:0:0]
	for _, name := range pol.Fallback {
		if err := d.addAgent(all, name, false); err != nil {
			d.warnFormatted("fallback agent ignored: %v", err)
			continue
		}
		kept = append(kept, name)
	}
	pol.Fallback = kept
	if pol.Stronger != "" {
		if err := d.addAgent(all, pol.Stronger, false); err != nil {
			d.warnFormatted("stronger agent ignored: %v", err)
			pol.Stronger = ""
		}
	}
	return d.strategyAgents(all, pol)
}

func (d draft) fromCommand() (runplan.Agent, error) {
	argv, err := quantity.SplitWords(d.Flags.AgentCmd)
	if err != nil {
		return runplan.Agent{}, fault.Refuse("--agent-cmd: cannot read %q as a command line: %v", d.Flags.AgentCmd, err)
	}
	if len(argv) == 0 {
		return runplan.Agent{}, fault.Refuse("--agent-cmd names no program: give a command line, for example " +
			"\"mine --fast\"")
	}
	name := filepath.Base(argv[0])
	adapter, err := agents.Custom(name, argv, "")
	if err != nil {
		return runplan.Agent{}, fault.Refuse("--agent-cmd: %v", err)
	}
	own := runplan.Agent{Adapter: adapter}
	own.Account = d.accountOf(name, argv, own)
	err = d.checkInstalled(name, own)
	// The program is no entry of the configuration.
	if e, ok := errors.AsType[*fault.Error](err); ok && len(e.Hints) > 0 {
		e.Hints[0] = "Install " + argv[0] + ", or correct --agent-cmd"
	}
	return own, err
}

func (d draft) addAgent(all map[string]runplan.Agent, name string, must bool) error {
	if _, ok := all[name]; ok {
		return nil
	}
	ag, err := d.resolveAgent(name)
	if err != nil {
		return err
	}
	if err := d.checkInstalled(name, ag); err != nil {
		if must {
			return err
		}
		return errors.Unwrap(err)
	}
	all[name] = ag
	return nil
}

func (d draft) resolveAgent(name string) (runplan.Agent, error) {
	own, named := d.Config.Agents.Named[name]
	ag := runplan.Agent{Command: own.Command, Model: own.Model, Mode: own.Mode, Isolate: own.Isolate, Tools: own.MCP}
	for k, v := range own.Env {
		ag.Env = append(ag.Env, k+"="+v)
	}
	slices.Sort(ag.Env)
	ag.Account = d.accountOf(name, own.Command, ag)
	if own.IdleTimeout != nil {
		ag.Idle = own.IdleTimeout.Std()
	}
	var err error
	if ag.Endpoints, err = d.endpointsOf(name, own, ag.Env); err != nil {
		return ag, err
	}
	if own.Mode != "" && own.Output != "acp" {
		return ag, fault.Refuse("agents.%s.mode is for a program that speaks ACP", name).
			Hint("Set agents.%s.output: acp, or remove mode", name)
	}
	if builtin, ok := agents.Lookup(name); ok && own.Output == "" {
		ag.Adapter = builtin
		err := d.pointToGateway(name, &ag)
		return ag, err
	}
	if !named || len(own.Command) == 0 {
		return ag, UnknownAgent(name)
	}
	if ag.Adapter, err = agents.Custom(name, own.Command, own.Output); err != nil {
		return ag, fault.Refuse("agent %q: %v", name, err)
	}
	err = d.pointToGateway(name, &ag)
	return ag, err
}

// pointToGateway sends the model calls of an agent through the gateway, where it has a key
// and can be pointed. At the level paranoid it reaches those providers by the
// gateway only.
func (d draft) pointToGateway(name string, ag *runplan.Agent) error {
	if ag.Tools && !ag.Adapter.About().Tools {
		return fault.Refuse("agents.%s.mcp: pawl cannot offer its tools to this program", name).
			Hint("Claude Code and Codex can")
	}
	mode := d.Config.Gateway.Enabled
	if mode == "never" {
		return nil
	}
	in := agent.Invocation{Env: slices.Concat(d.Env, ag.Env)}
	if pointed, can := ag.Adapter.(agent.Pointed); can {
		var failed error
		ag.Routes, can = pointed.Routes(ag.Isolate, func(variable string) string {
			provider, kept := strings.CutPrefix(variable, agent.KeySetting)
			if !kept {
				return in.Value(nil, variable)
			}
			key, err := d.runKeyCommand("gateway.keys."+provider, d.Config.Gateway.Keys.Of(provider))
			failed = cmp.Or(failed, err)
			return key
		})
		if failed != nil {
			return failed
		}
		if err := d.addFallbackRoutes(ag.Routes); err != nil {
			return err
		}
		ag.Around = can && len(ag.Routes) == 0
	}
	if len(ag.Routes) == 0 && mode == "always" {
		return fault.Refuse("agent %q cannot use the gateway: it has no key here, or takes no other address for its models",
			name).
			Hint("docs/gateway.md says which agents can; set gateway.enabled: auto to continue without it")
	}
	if len(d.Config.Agents.Named[name].Endpoints) > 0 {
		return nil
	}
	ag.Endpoints = slices.DeleteFunc(slices.Clone(ag.Endpoints), func(text string) bool {
		e, err := egress.ParseEndpoint(text)
		return err == nil && slices.ContainsFunc(ag.Routes, func(r agent.Route) bool {
			base, err := url.Parse(r.Base)
			return err == nil && base.Hostname() == e.Host
		})
	})
	return nil
}

// runKeyCommand runs the command of a setting; "" without one.
func (d draft) runKeyCommand(setting, command string) (string, error) {
	if command == "" {
		return "", nil
	}
	key, err := d.KeyFrom(command)
	if err != nil {
		return "", fault.Refuse("cannot get the key of %s: %v", setting, err)
	}
	return key, nil
}

// addFallbackRoutes gives routes the endpoints that stand in for them.
func (d draft) addFallbackRoutes(routes []agent.Route) error {
	for i, r := range routes {
		to := d.Config.Gateway.Fallback.Of(r.Name)
		if to == nil {
			continue
		}
		setting := "gateway.fallback." + r.Name
		if u, err := url.Parse(to.URL); err != nil || u.Host == "" || !strings.HasPrefix(u.Scheme, "http") {
			return fault.Refuse("%s.url is not an address: %q", setting, to.URL).Hint("Write it as https://host/path")
		}
		key, err := d.runKeyCommand(setting+".key", to.Key)
		if err != nil {
			return err
		}
		routes[i].Next = r.Other(to.URL, key)
	}
	return nil
}

// endpointsOf an agent at the level paranoid: those that the user names, else those
// known of the program that it runs. A base URL that only the program understands
// is not looked at.
func (d draft) endpointsOf(name string, own config.Agent, env []string) ([]string, error) {
	for _, text := range own.Endpoints {
		if _, err := egress.ParseEndpoint(text); err != nil {
			return nil, fault.Refuse("agent %q: %v", name, err).Hint("Correct agents.%s.endpoints", name)
		}
	}
	if len(own.Endpoints) > 0 {
		return own.Endpoints, nil
	}
	in := agent.Invocation{Env: slices.Concat(d.Env, env)}
	if own.Output != "" {
		name = agents.Program(name, own.Output, own.Command)
	}
	known := agents.Endpoints(name, func(variable string) string { return in.Value(nil, variable) })
	unreadable := func(text string) bool {
		_, err := egress.ParseEndpoint(text)
		return err != nil
	}
	return slices.DeleteFunc(known, unreadable), nil
}

// checkInstalled looks the program up before anything is started.
func (d draft) checkInstalled(name string, ag runplan.Agent) error {
	start, err := ag.Adapter.Start(agent.Invocation{
		PromptFile: os.DevNull, Dir: d.Config.Root, Safety: d.safetyLevel(), Command: ag.Command, Now: time.Now(),
	})
	if err != nil {
		return fault.Refuse("agent %q: %v", name, err)
	}
	program := cmp.Or(start.Program, start.Args[0])
	path, found := d.lookUpProgram(program, d.Config.Root)
	if why := process.ReasonNotExecuted(path); why != "" {
		return fault.Of(fault.Refused, fmt.Errorf("agent %q: %s %w: %s", name, path, engine.ErrNoProgram, why))
	}
	if found {
		return nil
	}
	e := fault.Of(fault.Refused, fmt.Errorf("agent %q is not installed: %q %w", name, program, engine.ErrNoProgram))
	if how, own := strings.CutPrefix(ag.Adapter.About().Install, "install "); own {
		e = e.Hint("Install %s", how)
	} else if how != "" {
		e = e.Hint("Install it: %s", how)
	}
	if found := d.installedAgents(); len(found) > 0 {
		return e.Hint("On this machine: %s; choose one with --agent", strings.Join(found, ", "))
	}
	const own = "No other known agent is on this machine; for a command of your own: pawl run --agent-cmd \"CMD ARGS\""
	return e.Hint(own).
		Hint("Or in pawl.yaml, for the board too: agent: mine, and agents: {mine: {command: [CMD, ARGS]}}")
}

// findProgram asks whether a program is there; see [Planner.lookUpProgram].
func (pl *Planner) findProgram(name, dir string) bool {
	_, found := pl.lookUpProgram(name, dir)
	return found
}

// lookUpProgram looks a program up as the supervisor does: a name with a slash below dir, any other in
// PATH. The path is that of what is there, though it is no program.
func (pl *Planner) lookUpProgram(name, dir string) (path string, found bool) {
	if strings.Contains(name, "/") && !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	path, err := pl.LookPath(name)
	return cmp.Or(path, name), err == nil
}

// installedAgents are the built-in agents whose program is here.
func (pl *Planner) installedAgents() []string {
	var found []string
	for _, name := range agents.Names() {
		ad, _ := agents.Lookup(name)
		start, err := ad.Start(agent.Invocation{PromptFile: os.DevNull})
		if err == nil && name != "script" && pl.findProgram(start.Args[0], "") {
			found = append(found, name)
		}
	}
	return found
}

// commandLine of an agent for --dry-run. One that cannot be resolved is shown by
// its name.
func (d draft) commandLine(name string) string {
	ag, err := d.resolveAgent(name)
	if d.Flags.AgentCmd != "" {
		argv, _ := quantity.SplitWords(d.Flags.AgentCmd)
		return strings.Join(argv, " ")
	}
	if err != nil {
		return name
	}
	start, err := ag.Adapter.Start(agent.Invocation{
		PromptFile: "PROMPT", Dir: d.Config.Root, Safety: d.safetyLevel(), Command: ag.Command, Model: ag.Model,
		Now: time.Now(),
	})
	if err != nil {
		return name
	}
	return strings.Join(start.Args, " ")
}

// accountOf names the account of an agent: runs with the same program, model,
// base URL, keys and configuration meet the same limits. Only a hash is kept.
func (d draft) accountOf(name string, command []string, ag runplan.Agent) string {
	parts := []string{name, ag.Model}
	for _, word := range command {
		// A file of the project is another one in another project.
		if path := filepath.Join(d.Config.Root, word); !filepath.IsAbs(word) && isRegular(path) {
			word = path
		}
		parts = append(parts, word)
	}
	if ag.Isolate { // its login is in the repository's state
		parts = append(parts, statedir.Of(d.Config.Root, d.Env))
	}
	return ratelimit.Key(append(parts, identifyingValues(slices.Concat(d.Env, ag.Env))...)...)
}

// identifyingValues are the variables that may say who pays for a call and where it
// goes, of a list of K=V whose later entries win, in the order of their names.
// One too many shares less; one that is missing waits for the limit of another
// account.
func identifyingValues(env []string) []string {
	values := map[string]string{}
	for _, kv := range env {
		k, v, _ := strings.Cut(kv, "=")
		if identifiesAccount(k) {
			values[k] = v
		}
	}
	var list []string
	for k, v := range values {
		if v != "" {
			list = append(list, k+"="+v)
		}
	}
	slices.Sort(list)
	return list
}

func identifiesAccount(name string) bool {
	switch name {
	case "HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME",
		"AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_REGION", "GOOGLE_APPLICATION_CREDENTIALS":
		return true
	}
	if strings.HasPrefix(name, "PAWL_") {
		return false
	}
	for _, end := range []string{
		"_API_KEY", "_TOKEN", "_BASE_URL", "_API_BASE", "_API_HOST", "_ENDPOINT", "_CONFIG_DIR",
		"_PROJECT", "_ORG_ID", "_USE_BEDROCK", "_USE_VERTEX",
	} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return false
}

// applySafety takes out of the environment what the level withholds, and refuses a
// gate that the level forbids.
func (d draft) applySafety(plan *runplan.Plan) error {
	level := safety.Level(plan.Safety)
	own := Variables(d.Config)
	plan.Home = d.envValue("HOME")
	plan.Environ, plan.Withheld = level.Environ(d.Env, nil, own)
	for name, ag := range plan.Agents {
		ag.Environ, ag.Withheld = level.Environ(d.Env, d.credentialsOf(name), own)
		plan.Agents[name] = ag
	}
	gate, f, refused := plan.RefusedGate()
	if !refused {
		return nil
	}
	return fault.Refuse("gate %q is refused at safety level %s: %s: it %s (%s)", gate, plan.Safety,
		f.Operation.Message(), f.Why, f.Pattern).
		Hint("What was found: %s", f.Command).
		Hint("Remove it from verification.commands, or allow it: --safety permissive")
}

// Variables that the user hides from agents and gates, and lets through.
func Variables(c *config.Config) safety.Variables {
	return safety.Variables{Hide: c.Safety.Env.Hide, Allow: c.Safety.Env.Allow}
}

// credentialsOf an agent's program are the variables from which it reads them.
func (d draft) credentialsOf(name string) []string {
	format := d.Config.Agents.Named[name].Output
	return agents.Variables(name, format, d.envValue)
}

// Accounts opens what is known of the limits of the user's accounts, with the user's own of limits.plan.
func Accounts(c *config.Config, env []string) *ratelimit.Store {
	s := ratelimit.NewStore(statedir.LimitsDir(env))
	s.Plan = int(c.Limits.Plan)
	return s
}

// UnknownAgent refuses a name that neither pawl nor the configuration has, with the names that it may be.
func UnknownAgent(name string) error {
	return fault.Refuse("agent %q is not known", name).
		Hint("Built-in agents: %s. Your own: agents: {%s: {command: [...]}} in pawl.yaml",
			strings.Join(agents.Names(), ", "), name)
}
