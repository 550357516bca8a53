// Package greenfiles keeps what gates were green on: the last tree of a plan, so that they need
// not run on it again before a first agent, and what a command printed when it passed, so that
// noise is known when it is red. Without its files gates run once more, and a hint is missing.
package greenfiles

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/engine/runplan"
	"github.com/pawl-dev/pawl/internal/do/gate"
	"github.com/pawl-dev/pawl/internal/keep/files"
	"github.com/pawl-dev/pawl/internal/keep/spool"
)

// most is how much is kept of what a green gate printed.
const most = 64 << 10

// IsGreen reports whether tree is the last one on which all gates of the plan were green.
func IsGreen(stateDir string, p *runplan.Plan, tree string) bool {
	return tree != "" && spool.ReadEnd(treeFile(stateDir, p), most) == tree
}

// KeepTree notes that all gates of the plan are green on a tree.
func KeepTree(stateDir string, p *runplan.Plan, tree string) {
	if tree != "" {
		keepFile(treeFile(stateDir, p), tree)
	}
}

// treeFile returns the path of the file that holds the last green tree of the plan.
func treeFile(stateDir string, p *runplan.Plan) string {
	h := sha256.New()
	for _, g := range p.Gates {
		h.Write([]byte(g.Key()))
	}
	fmt.Fprintf(h, "%s %q", p.Sandbox, p.Root)
	return filepath.Join(stateDir, "green", hex.EncodeToString(h.Sum(nil)[:8])+".tree")
}

// LastOutput returns what the command of a red gate printed when it last passed, in
// this run or in an earlier one. Of a green gate it keeps the output, and returns "".
func LastOutput(stateDir, command string, e gate.Exec) string {
	sum := sha256.Sum256([]byte(command))
	path := filepath.Join(stateDir, "green", hex.EncodeToString(sum[:8]))
	if e.Status() != loop.GatePassed {
		return spool.ReadEnd(path, most)
	}
	keepFile(path, e.Output[max(0, len(e.Output)-most):])
	return ""
}

func keepFile(path, text string) {
	if os.MkdirAll(filepath.Dir(path), 0o700) == nil {
		_ = files.Replace(path, []byte(text), 0o600, false) // see the package's comment
	}
}
