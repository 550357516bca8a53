package boxpolicy

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/lazy"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/do/engine/runplan"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/do/sandbox"
	"github.com/pawl-dev/pawl/internal/keep/files"
)

// loopbackAddress is one of this machine's loopback, in a setting.
var loopbackAddress = lazy.Regexp(`(?i)(?:^|[/@=\s"',])` +
	`(?:localhost|127(?:\.\d{1,3}){3}|\[::1\]):(\d{2,5})(?:[/\s"',;?)]|$)`)

// loopbackPorts finds ports of the loopback in texts.
func loopbackPorts(texts ...string) []int {
	var out []int
	for _, text := range texts {
		for _, found := range loopbackAddress().FindAllStringSubmatch(text, -1) {
			if port, _ := strconv.Atoi(found[1]); port > 0 && port < 1<<16 {
				out = append(out, port)
			}
		}
	}
	return out
}

// localPorts are the ports of this machine's loopback that agents and gates reach: those of
// safety.local_ports, and of what the person names in what they are given: proxies,
// registries, remotes.
func (m maker) localPorts(settings []git.Setting, shown []sandbox.Bind) []int {
	texts := lists.Each(m.Plan.Environ, func(kv string) string {
		_, value, _ := strings.Cut(kv, "=")
		return value
	})
	for _, b := range shown {
		texts = append(texts, readSettings(b.From))
	}
	for _, s := range settings {
		if strings.HasSuffix(s.Key, ".url") {
			texts = append(texts, s.Value)
		}
	}
	return append(loopbackPorts(texts...), m.Config.Safety.LocalPorts...)
}

// localServices are the ports of model servers whose programs know them by name.
var localServices = map[string]int{"ollama": 11434, "--oss": 11434, "lmstudio": 1234, "lm-studio": 1234}

// agentPorts are the ports of this machine's loopback that one agent reaches besides: those that
// its command, its variables and the settings in its own folders name.
func (m maker) agentPorts(ag runplan.Agent, own []string) []int {
	given := slices.Concat(ag.Command, ag.Env)
	_, out := splitEndpoints(ag.Endpoints)
	out = append(out, loopbackPorts(given...)...)
	for name, port := range localServices {
		if strings.Contains(strings.ToLower(strings.Join(given, " ")), name) {
			out = append(out, port)
		}
	}
	for _, path := range own {
		out = append(out, loopbackPorts(readSettings(path))...)
		for _, file := range existingPaths(path, "*.json", "*.jsonc", "*.toml", "*.yaml", "*.yml", ".env") {
			out = append(out, loopbackPorts(readSettings(file))...)
		}
	}
	return out
}

// readSettings reads a file of settings; what is none is empty.
func readSettings(path string) string {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxSettings {
		return ""
	}
	text, _ := os.ReadFile(path) // who cannot read it names no port
	return string(text)
}

// openDoors puts doors into boxes whose loopback is their own. None leads to pawl's own server, nor
// to what is shut.
func (m maker) openDoors(ports []int, boxes ...*sandbox.Policy) {
	_, own, _ := net.SplitHostPort(m.Config.Server.Address)
	for _, p := range boxes {
		if p.Own {
			p.Doors = slices.DeleteFunc(slices.Clone(ports), func(port int) bool {
				return strconv.Itoa(port) == own || slices.Contains(p.Shut, port)
			})
			p.Doors = lists.Distinct(p.Doors)
		}
	}
}

// resolversOf shows, in a box with a network of its own, addresses for the machine's resolvers
// that lead out of it: those of the machine may be on its loopback.
func (m maker) resolversOf(v sandbox.Verdict) []sandbox.Bind {
	const path = "/etc/resolv.conf"
	old, err := os.ReadFile(path)
	if err != nil || !v.Means.Tun {
		return nil
	}
	var text strings.Builder
	for line := range strings.Lines(string(old)) {
		if !strings.HasPrefix(strings.TrimSpace(line), "nameserver") {
			text.WriteString(line)
		}
	}
	text.WriteString("\n")
	for _, a := range sandbox.Resolvers() {
		text.WriteString("nameserver " + a.String() + "\n")
	}
	to := filepath.Join(m.StateDir, "settings", "resolv.conf")
	if err = os.MkdirAll(filepath.Dir(to), 0o700); err == nil {
		err = files.Replace(to, []byte(text.String()), 0o644, false)
	}
	if err != nil {
		m.Say("Warning: agents and gates cannot look up names: %v", err)
	}
	return []sandbox.Bind{{From: to, To: path, ReadOnly: true}}
}
