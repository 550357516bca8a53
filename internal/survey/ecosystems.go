package survey

import (
	_ "embed"
	"strings"
	"sync"
)

// rule is a row of ecosystems.txt.
type rule struct{ group, kind, when, command string }

//go:embed ecosystems.txt
var ecosystemsText string

// rules are the ecosystems but those of Node and Python.
var rules = sync.OnceValue(func() (all []rule) {
	for line := range strings.Lines(ecosystemsText) {
		left, command, ok := strings.Cut(strings.TrimSpace(line), " → ")
		if strings.HasPrefix(line, "#") || !ok {
			continue
		}
		what, when, _ := strings.Cut(left, ": ")
		group, kind, _ := strings.Cut(what, " ")
		all = append(all, rule{group, kind, when, command})
	}
	return all
})
