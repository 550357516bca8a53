package config

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/ask/config/quantity"
	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/lazy"
	"github.com/pawl-dev/pawl/internal/decide/lists"
)

// checker holds the rules that need more than one key, over all layers.
type checker struct {
	*Config
	agents     []string // built in; nil: not checked
	strategies []string // built in; nil: not checked
	errs       Errors
}

func (k *checker) addError(path, suggestion, format string, args ...any) {
	k.errs = append(k.errs, errorAtPlace(k.positionOfKey(path), suggestion, format, args...))
}

func (k *checker) checkEverything() {
	k.namedAgents()
	k.agentReferences()
	k.checkProcedures()
	k.checkGates()
	k.checkRegenerate()
	k.checkForge()
	k.ownStrategies()
	k.checkHooks()
	k.checkNotifications()
	k.checkServer()
	k.checkCluster()
	if a := k.Autopilot; max(a.Racers, len(a.Race)) > 5 { // board.MaxRacers
		k.addError("autopilot.race", "", "autopilot.race: at most five agents can race for a task")
	}
	target, err := quantity.ParseTarget(k.Sprint.Target.Type, k.Sprint.Target.Value)
	if err != nil {
		k.addError("sprint.target.value", "", "sprint.target.value %v", err)
	}
	k.Sprint.Target = target
}

func (k *checker) namedAgents() {
	for _, name := range sortedKeys(k.Agents.Named) {
		path := joinPath("agents", name)
		if !validName().MatchString(name) {
			k.addError(path, "", "%q cannot be the name of an agent: use letters, digits, - and _", name)
		}
		a := k.Agents.Named[name]
		if k.agents != nil && len(a.Command) == 0 && !slices.Contains(k.agents, name) {
			near := Nearest(name, k.agents)
			k.addError(path, near, "%s needs a command: no built-in agent is called %q", path, name)
		}
		for _, variable := range sortedKeys(a.Env) {
			if strings.ContainsAny(variable, "=\x00") {
				k.addError(joinPath(path, "env"), "", "%q cannot be the name of a variable", variable)
			}
		}
	}
}

// agentReferences checks every key that names an agent.
func (k *checker) agentReferences() {
	if k.agents == nil {
		return
	}
	known := append(k.AgentNames(), k.agents...)
	known = lists.Distinct(known)
	for _, ref := range k.AgentReferences() {
		if slices.Contains(known, ref.Name) {
			continue
		}
		near, hint := nearestOrAll(ref.Name, known)
		k.addError(ref.Path, near, "%s names the unknown agent %q%s", ref.Path, ref.Name, hint)
	}
}

// validName fits a file name, and `pawl run` does not take it for a file.
var validName = lazy.Regexp(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$`)

func (k *checker) checkProcedures() {
	for _, name := range sortedKeys(k.Procedures) {
		p := k.Procedures[name]
		path := joinPath("procedures", name)
		ext := strings.ToLower(filepath.Ext(name))
		if !validName().MatchString(name) || ext == ".yaml" || ext == ".yml" {
			k.addError(path, "", "%q cannot be the name of a procedure: use letters, digits, - and _", name)
		}
		if len(p.Observe)+len(p.Orient)+len(p.Decide)+len(p.Act) == 0 {
			k.addError(path, "", "%s has no prompt: give at least one of observe, orient, decide and act", path)
		}
		if p.MaxIterations != nil && *p.MaxIterations == 0 && p.Policy != "procedure" {
			k.addError(path+".max_iterations", "",
				"%s.max_iterations must be 1 or more: only the policy procedure can be unlimited", path)
		}
		if p.Strategy != "" {
			k.checkStrategy(path+".strategy", p.Strategy)
		}
	}
	k.checkStrategy("loop.strategy", k.Loop.Strategy)
}

// strategyModes are the words that choose how strategies are chosen.
var strategyModes = []string{"auto", "conservative", "aggressive"}

func (k *checker) checkStrategy(path, name string) {
	if k.strategies == nil {
		return
	}
	known := append(slices.Clone(strategyModes), k.strategies...)
	for _, s := range k.Strategies {
		if s.Name != "" && !slices.Contains(known, s.Name) {
			known = append(known, s.Name)
		}
	}
	if !slices.Contains(known, name) {
		k.addError(path, Nearest(name, known), "%s must be one of %s; not %q", path, strings.Join(known, ", "), name)
	}
}

func (k *checker) checkRegenerate() {
	for i, r := range k.Merge.Regenerate {
		path := fmt.Sprintf("merge.regenerate[%d]", i)
		if strings.TrimSpace(r.Command) == "" {
			k.addError(path, "", "%s needs a command", path)
		}
		if len(r.Files) == 0 {
			k.addError(path, "", "%s needs files, such as [package-lock.json]", path)
		}
		k.checkGlobs(path+".files", "the repository", r.Files)
	}
}

// repositoryName is owner/name.
var repositoryName = lazy.Regexp(`^[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+$`)

func (k *checker) checkForge() {
	if f := k.Forge; f.URL != "" && !webAddress(f.URL) {
		k.addError("forge.url", "", "forge.url must be an http or https address")
	}
	if f := k.Forge; f.Repository != "" && !repositoryName().MatchString(f.Repository) {
		k.addError("forge.repository", "", "forge.repository must be owner/name, not %q", f.Repository)
	}
	if label := k.Forge.Issues.Label; strings.ContainsRune(label, ',') || label != strings.TrimSpace(label) {
		k.addError("forge.issues.label", "", "forge.issues.label must be one label, without commas: %q", label)
	}
}

func (k *checker) checkGates() {
	seen := map[string]int{}
	for i := range k.Verification.Commands {
		g := &k.Verification.Commands[i]
		path := fmt.Sprintf("verification.commands[%d]", i)
		if !k.completeGate(path, g) {
			continue
		}
		if first, ok := seen[g.Name]; ok {
			k.addError(path, "", "%s has the name %q of gate %d: give it another", path, g.Name, first+1)
		}
		seen[g.Name] = i
	}
	k.checkGlobs("verification.protect", "the root", k.Verification.Protect)
}

// completeGate completes a gate. It returns false for one that cannot be.
func (k *checker) completeGate(path string, g *Gate) bool {
	commanded := strings.TrimSpace(g.Command) != ""
	_, timed := k.from[path+".timeout"]
	switch {
	case g.Forge != "" && commanded:
		k.addError(path, "", "%s is a command, or the forge's checks: not both", path)
	case g.Forge != "" && len(g.Checks) == 0:
		k.addError(path, "", "%s needs the names of checks, such as required: [build, test]", path)
	case g.Forge != "" && k.Verification.Checks().Name != g.Name:
		k.addError(path, "", "%s asks for the forge's checks again: name all of them in one gate", path)
	case g.Forge != "":
		g.Name = cmp.Or(g.Name, "checks")
		if !timed {
			g.Timeout = quantity.Duration(time.Hour)
		}
		return true
	case !commanded:
		k.addError(path, "", "%s needs a command", path)
	case len(g.Checks) > 0:
		k.addError(path+".required", "", "%s.required must be true or false; a list belongs to forge: checks", path)
	default:
		if g.Name == "" {
			g.Name = g.Command
			k.from[path+".name"] = k.from[path+".command"]
		}
		if !timed {
			g.Timeout = k.Verification.DefaultTimeout
			k.from[path+".timeout"] = k.from["verification.default_timeout"]
		}
		return true
	}
	return false
}

// checkGlobs checks a list of paths or globs relative to a folder.
func (k *checker) checkGlobs(list, folder string, globs []string) {
	for i, glob := range globs {
		if path := fmt.Sprintf("%s[%d]", list, i); glob == "" || filepath.IsAbs(glob) {
			k.addError(path, "", "%s must be a path or glob relative to %s, not %q", path, folder, glob)
		}
	}
}

func (k *checker) checkHooks() {
	hooks := reflect.ValueOf(k.Hooks)
	for _, f := range schema().findField("hooks").fields {
		h, _ := hooks.Field(f.index).Interface().(*Hook)
		if path := "hooks." + f.name; h != nil && strings.TrimSpace(h.Command) == "" {
			k.addError(path, "", "%s needs a command", path)
		}
	}
}

func (k *checker) checkNotifications() {
	for i, n := range k.Notify {
		path := fmt.Sprintf("notify[%d]", i)
		set := 0
		for _, is := range []bool{n.Command != "", n.Webhook != "", n.Desktop} {
			if is {
				set++
			}
		}
		if set != 1 {
			k.addError(path, "", "%s needs exactly one of command, webhook and desktop", path)
		}
		if n.Webhook != "" && !webAddress(n.Webhook) {
			k.addError(path+".webhook", "", "%s.webhook must be an http or https address", path)
		}
		for _, name := range sortedKeys(n.Headers) {
			if !headerName().MatchString(name) || strings.ContainsAny(n.Headers[name], "\r\n\x00") {
				k.addError(joinPath(path, "headers"), "",
					"%q cannot be a header: a name has letters, digits and -, a value is one line", name)
			}
		}
	}
}

// headerName is what servers take as the name of a header.
var headerName = lazy.Regexp(`^[A-Za-z0-9!#$%&'*+.^_|~-]+$`)

// webAddress is false for what is no http or https address. One that begins
// with a variable of the environment is judged when that is known.
func webAddress(address string) bool {
	if strings.HasPrefix(address, "${") {
		return true
	}
	u, err := url.Parse(address)
	return err == nil && slices.Contains([]string{"http", "https"}, u.Scheme) && u.Host != ""
}

// Folder of cluster.files; "" without one, and where it is no absolute path.
func (c Cluster) Folder() string {
	path, ok := strings.CutPrefix(c.Files, "file://")
	if !ok || !filepath.IsAbs(path) {
		return ""
	}
	return filepath.Clean(path)
}

func (k *checker) checkCluster() {
	if scheme, _, ok := strings.Cut(k.Cluster.Store, "://"); ok && scheme != "postgres" && scheme != "postgresql" {
		k.addError("cluster.store", "postgres://pawl@db.example.com/pawl",
			"cluster.store must be a database of PostgreSQL")
	}
	switch c := k.Cluster; {
	case c.Files == "":
	case c.Folder() == "":
		k.addError("cluster.files", "file:///srv/pawl", "cluster.files must be a folder that all machines have")
	case c.Store == "":
		k.addError("cluster.files", "", "cluster.files needs cluster.store as well: "+
			"only a board in a database has several machines")
	}
}

func (k *checker) checkServer() {
	_, port, err := net.SplitHostPort(k.Server.Address)
	n, portErr := strconv.Atoi(port)
	if err != nil || portErr != nil || n < 0 || n > 65535 {
		k.addError("server.address", "", "server.address must be host:port, e.g. 127.0.0.1:7295; not %q",
			k.Server.Address)
	}
	if (k.Server.TLSCert == "") != (k.Server.TLSKey == "") {
		set, other := "server.tls_cert", "server.tls_key"
		if k.Server.TLSCert == "" {
			set, other = other, set
		}
		k.addError(set, "", "%s needs %s as well", set, other)
	}
}

// ownStrategies checks what `strategies:` adds to the built-in ones.
func (k *checker) ownStrategies() {
	taken := slices.Concat(strategyModes, k.strategies)
	for i := range k.Strategies {
		s := &k.Strategies[i]
		path := fmt.Sprintf("strategies[%d]", i)
		switch {
		case !validName().MatchString(s.Name):
			k.addError(path, "", "%s needs a name of letters, digits, - and _", path)
		case slices.Contains(taken, s.Name):
			k.addError(path, "", "%s has the name %q, which is taken", path, s.Name)
		}
		taken = append(taken, s.Name)
		k.checkClasses(path, s)
	}
}

// checkClasses checks the failures that a strategy is made for.
func (k *checker) checkClasses(path string, s *Strategy) {
	known := lists.Each(failure.Classes(), func(c failure.Class) string { return string(c) })
	for i, name := range s.ApplicableErrors {
		if slices.Contains(known, name) {
			continue
		}
		at := fmt.Sprintf("%s.applicable_errors[%d]", path, i)
		near, hint := nearestOrAll(name, known)
		k.addError(at, near, "%s must be a class of failure, not %q%s", at, name, hint)
	}
}
