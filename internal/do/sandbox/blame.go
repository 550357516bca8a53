package sandbox

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/fault"
)

// maxNamed is how many connections that were refused a failure names.
const maxNamed = 3

// outsideOfBox are the failures that no box makes: what a provider answers, and what pawl ended.
var outsideOfBox = []failure.Class{
	failure.Auth, failure.QuotaExhausted, failure.RateLimit, failure.ServiceUnavailable, failure.ContextLength,
	failure.RefusedByModel, failure.OutputLimit, failure.EmptyAnswer, failure.MalformedAnswer,
	failure.LimitExceeded, failure.NoProgress, failure.Tampering,
}

// NameRefusals adds to a failure what the box refused, so that the next
// attempt, and the person, know why the system said no.
func (p *Policy) NameRefusals(f *failure.Analysis, output string, connections []string) {
	if f == nil || p == nil {
		return
	}
	if !p.Closed { // programs look for a cloud's addresses by themselves, and do without
		connections = slices.DeleteFunc(slices.Clone(connections), func(c string) bool {
			host, _, _ := strings.Cut(strings.TrimPrefix(c, "connection to "), ": ")
			return !strings.Contains(output, host)
		})
	}
	connections = connections[:min(len(connections), maxNamed)]
	lines := append(Refused(*p, output), connections...)
	if len(lines) == 0 && p.Closed && f.Class == failure.Network && !isAboutLoopback(f.Summary) {
		lines = []string{f.Summary}
	}
	if len(lines) == 0 || slices.Contains(outsideOfBox, f.Class) {
		return
	}
	named := localPortsIn(*p, output)
	closed := p.Closed || len(connections) > 0
	offline := f.Class == failure.Network && closed
	if f.Class == failure.Network { // the port of a server that is there
		offline = offline || slices.ContainsFunc(lines, func(l string) bool { return refusedPort(*p, l, named) > 0 })
	}
	headline := f.Class == failure.Unknown && len(Refused(*p, f.Summary)) > 0
	if headline {
		f.Summary, _, _ = strings.Cut(f.Summary, " (exit status ")
	}
	if offline || headline || f.Class == failure.Permission {
		// The same again is refused again, and neither owners of files nor more time help.
		f.Class, f.Kind, f.Transient, f.Severity, f.Actions = failure.Permission, failure.Work, false,
			failure.Medium, nil
	}
	lift := wayToAllow(*p, lines, connections, named, offline)
	f.Summary = appendNote(f.Summary, fmt.Sprintf("refused by pawl's sandbox, level %s; %s", p.Level, lift))
	f.Items = append(slices.Clone(f.Items), failure.Item{
		Message: fmt.Sprintf("Refused by pawl's sandbox (level %s): %s", p.Level, strings.Join(lines, " | ")),
	})
	f.Actions = append(slices.Clone(f.Actions),
		"Work inside of the workspace and the temporary folders: pawl's sandbox refuses the rest. A person can add "+
			"folders with safety.write, ports of this machine with safety.local_ports, and network hosts with "+
			"agents.NAME.endpoints; --unsandboxed turns it off.")
}

// appendNote appends a note to a summary, which is cut before it if both together are too long.
func appendNote(summary, note string) string {
	const most = 270 // what is shown of a summary has the name of a gate, too
	return fault.Cut(summary, max(140, most-len(note))) + " (" + note + ")"
}

// ExplainGate adds to the failure of a gate what the box refused, as NameRefusals does. A connection
// that was refused without an address may have been to a server of this machine.
func (p *Policy) ExplainGate(f *failure.Analysis, output string, connections []string) {
	p.NameRefusals(f, output, connections)
	isRefusal := f.Class == failure.Network && strings.Contains(strings.ToLower(f.Summary), "refused")
	if p != nil && p.Own && isRefusal && !anyAddress().MatchString(f.Summary) {
		f.Summary = appendNote(f.Summary, "safety.local_ports: [PORT] opens a port of this machine; "+
			"in pawl's sandbox the loopback is its own")
	}
}

// isAboutLoopback reports whether a message about the box's own loopback, which is open.
func isAboutLoopback(s string) bool {
	return strings.Contains(s, "127.0.0.1") || strings.Contains(s, "localhost") || strings.Contains(s, "::1")
}

// wayToAllow says what a person can set so that it is not refused any more.
func wayToAllow(p Policy, lines, connections []string, named []int, offline bool) string {
	switch {
	case offline && p.Closed && len(connections) == 0:
		return "only a lower --safety opens the network"
	case len(connections) == len(lines) && !p.Closed:
		return "safety.local_ports opens ports of this machine"
	case len(connections) == len(lines):
		return "agents.NAME.endpoints allows it"
	case slices.ContainsFunc(lines, func(l string) bool { return NamesKept(p, l) }):
		return "it is a protected file; allow of the procedure lets it change"
	}
	for _, line := range lines {
		if port := refusedPort(p, line, named); port > 0 {
			return fmt.Sprintf("safety.local_ports: [%d] opens this port of the machine", port)
		}
		if path := NotShown(p, line); path != "" {
			return fmt.Sprintf("it does not show %[1]s; safety.show: [%[1]s] does, and safety.write lets write there",
				path)
		}
	}
	return "safety.write or --unsandboxed allows it"
}
