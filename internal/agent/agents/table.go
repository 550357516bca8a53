package agents

import (
	"time"

	"github.com/pawl-dev/pawl/internal/agent"
)

// Row is one agent that pawl knows, for people.
type Row struct {
	agent.Facts

	Name       string // in the configuration
	Install    string
	LiveUsage  bool // tokens can be metered while it runs
	Structured bool // its stream has an end of its own
	// Idle is the shortest silence that means something; 0 is nothing special.
	Idle time.Duration
}

// Silent is whether an agent never tells what it uses.
func Silent(a agent.Adapter) bool {
	if a.LiveUsage() {
		return false
	}
	if !a.Structured() {
		return true
	}
	known, ok := a.(agent.Factual)
	return ok && known.Facts().Tokens == agent.NotKnown
}

// Table is every built-in agent that is a program of its own, sorted by name.
func Table() []Row {
	var rows []Row
	for _, name := range Names() {
		a, _ := Lookup(name)
		known, ok := a.(agent.Factual)
		if !ok {
			continue
		}
		row := Row{Facts: known.Facts(), Name: name, Install: a.Install(), LiveUsage: a.LiveUsage(),
			Structured: a.Structured()}
		if p, ok := a.(agent.Patient); ok {
			row.Idle = p.IdleTimeout()
		}
		rows = append(rows, row)
	}
	return rows
}
