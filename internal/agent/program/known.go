package program

import (
	"path/filepath"
	"slices"

	"github.com/pawl-dev/pawl/internal/agent"
)

// Format is the stream format that a program prints, named as the program is.
type Format struct {
	// New returns a parser for one run. prompt is what the agent was told; only a
	// format that is EchoCut needs it.
	New     func(prompt []byte) agent.Parser
	EchoCut bool // the parser cuts the prompt's echo off
}

// Lines is a format whose parser needs nothing but the stream.
func Lines[P agent.Parser](parser func() P) *Format {
	return &Format{New: func([]byte) agent.Parser { return parser() }}
}

// Move is a variable by which a program's folders are elsewhere.
type Move struct {
	Variable, Below string   // the folder is below what the variable names
	Instead         []string // of these
}

// XDG are the folders of a program that keeps to the XDG's rules, and how they move.
func XDG(name string) (folders []string, moves []Move) {
	for _, m := range []Move{
		{"XDG_CONFIG_HOME", name, []string{".config/" + name}},
		{"XDG_DATA_HOME", name, []string{".local/share/" + name}},
		{"XDG_STATE_HOME", name, []string{".local/state/" + name}},
		{"XDG_CACHE_HOME", name, []string{".cache/" + name}},
	} {
		folders, moves = append(folders, m.Instead...), append(moves, m)
	}
	return folders, moves
}

// Homes are the folders of the program, wherever getenv and home put them.
func (p Program) Homes(home string, getenv func(string) string) []string {
	names := slices.Clone(p.Folders)
	var out []string
	for _, m := range p.Moves {
		dir := getenv(m.Variable)
		if !filepath.IsAbs(dir) {
			continue
		}
		out = append(out, filepath.Join(dir, m.Below))
		names = slices.DeleteFunc(names, func(n string) bool { return slices.Contains(m.Instead, n) })
	}
	if filepath.IsAbs(home) {
		for _, n := range names {
			out = append(out, filepath.Join(home, n))
		}
	}
	return out
}

// Cloud is what a program needs of a cloud when it is told by a variable to
// reach its model there.
type Cloud struct {
	When  string
	Needs []string
}
