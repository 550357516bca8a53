package archtest

import (
	"go/ast"
	"slices"
	"strings"
)

// hostile are the rooms that handle what agents write: work trees and git folders.
var hostile = []string{"config", "delivery", "gate", "git", "git/checkout", "git/command", "planner", "trust", "workspace"}

// openers are the files of those rooms that open a path by themselves, with what it
// is.
var openers = map[string]string{
	"internal/ask/config/file.go":             "a new file of the person's, which must not be there",
	"internal/ask/config/statedir/roots.go":   "the path that a state folder has, which no agent can write",
	"internal/do/delivery/conflict.go":        "pawl's own record of conflicts",
	"internal/do/delivery/carryout.go":        "pawl's own record of a delivery",
	"internal/do/delivery/workspace.go":       "pawl's own record of what both sides had",
	"internal/do/git/agentfiles.go":           "writes beside pawl's own git directory",
	"internal/do/git/borrow.go":               "a git directory of pawl's own",
	"internal/do/git/clone.go":                "a clone that is being made, and pawl's own index",
	"internal/do/git/checkout/fastforward.go": "the index of the person's own checkout, and pawl's copy of it",
	"internal/do/git/merge.go":                "a folder of pawl's own",
	"internal/do/git/repair.go":               "objects after a power loss, each looked at before",
	"internal/do/git/shadow.go":               "a git directory of pawl's own",
	"internal/ask/planner/prompt.go":          "files outside of the work tree",
	"internal/do/trust/trust.go":              "pawl's own records",
	"internal/do/workspace/rules.go":          "pawl's own lists, and the person's ignore file",
	"internal/do/workspace/snapshot.go":       "tells whether a file can be read, without following a link",
	"internal/ask/planner/policy.go":          "pawl's own list of prices, in a state folder",
}

func checkOpens(t *tree, found report) {
	opens := []string{"Open", "OpenFile", "ReadFile", "WriteFile", "Create"}
	t.each(func(p *pkg, f *file) {
		if !slices.Contains(hostile, p.room) || strings.HasSuffix(f.path, "_test.go") || openers[f.path] != "" {
			return
		}
		t.inspect(f, func(n ast.Node, line int) {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return
			}
			if from, name := f.callee(call); from == "os" && slices.Contains(opens, name) {
				found(f.path, line, "%s opens a path by os.%s", p.room, name)
			}
		})
	})
}
