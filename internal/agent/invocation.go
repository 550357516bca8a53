package agent

import (
	"slices"
	"strings"
)

// Program is the start of the command line: the user's own command, else name.
func (in Invocation) Program(name string) []string {
	if len(in.Command) > 0 {
		return slices.Clone(in.Command)
	}
	return []string{name}
}

// Sees is whether the program will find a value for one of the variables.
func (in Invocation) Sees(getenv func(string) string, names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return in.Value(getenv, name) != "" })
}

// Value is what the program will find in a variable: the user's addition, else
// what pawl's own environment has, which getenv looks up and which may be nil.
// An addition without a value takes a variable away.
func (in Invocation) Value(getenv func(string) string, name string) string {
	value := ""
	if getenv != nil {
		value = getenv(name)
	}
	for _, kv := range in.Env {
		if k, v, _ := strings.Cut(kv, "="); k == name {
			value = v
		}
	}
	return value
}
