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

// Sees is whether the program will find a value for one of the variables: in
// the user's additions, else in pawl's own environment, which getenv looks up
// and which may be nil. An addition without a value takes a variable away.
func (in Invocation) Sees(getenv func(string) string, names ...string) bool {
	for _, name := range names {
		value := ""
		if getenv != nil {
			value = getenv(name)
		}
		for _, kv := range in.Env {
			if k, v, _ := strings.Cut(kv, "="); k == name {
				value = v
			}
		}
		if value != "" {
			return true
		}
	}
	return false
}
