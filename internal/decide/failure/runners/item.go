package runners

import (
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/failure/places"
	"github.com/pawl-dev/pawl/internal/decide/lazy"
)

// Item is one thing that an agent can act on.
type Item struct {
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`   // 1-based; 0 when not known
	Column   int    `json:"column,omitempty"` // 1-based; 0 when not known
	Test     string `json:"test,omitempty"`
	Message  string `json:"message,omitempty"`
	Expected string `json:"expected,omitempty"`
	Received string `json:"received,omitempty"`
}

// HasValuesBeyond reports whether the item has values that said, a part of its message, does not
// contain. If not, showing them after said would repeat them.
func (i Item) HasValuesBeyond(said string) bool {
	if i.Expected == "" && i.Received == "" {
		return false
	}
	return !strings.Contains(said, i.Expected) || !strings.Contains(said, i.Received)
}

// IsCompilerError reports whether TypeScript's compiler made the item. Its class is failure.Lint, since
// the compiler only checks, but it is not about form.
func (i Item) IsCompilerError() bool { return strings.HasPrefix(i.Message, "error TS") }

// Tests is a test runner's summary.
type Tests struct {
	Runner  string `json:"runner"` // "go", "jest", "pytest", …
	Passed  int    `json:"passed"`
	Failed  int    `json:"failed"`
	Skipped int    `json:"skipped"`
	Items   []Item `json:"items,omitempty"`
}

// MaxItems is how many items there are at most.
const MaxItems = 20

// MaxMessage is how many bytes a message of an item has at most.
const MaxMessage = 500

// ofProject ends a message of MSBuild with the project that is built.
var ofProject = lazy.Regexp(` \[([^\[\]]+\.\w*proj)(?:::[^\[\]]*)?\]$`)

// InProject takes the project off a message of MSBuild: it is the place, where the message is about a file of the SDK.
func (i *Item) InProject() {
	m := ofProject().FindStringSubmatchIndex(i.Message)
	if len(m) == 0 {
		return
	}
	if i.File == "" || places.IsForeign(i.File) || strings.HasSuffix(i.File, ".targets") ||
		strings.HasSuffix(i.File, ".props") {
		i.File, i.Line, i.Column = i.Message[m[2]:m[3]], 0, 0
	}
	i.Message = strings.TrimSpace(i.Message[:m[0]])
}
