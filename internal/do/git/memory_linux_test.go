package git

import (
	"os"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/do/git/command"
	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/test/gittest"
)

// A few objects cannot make git take all of the machine's memory.
func TestMemoryIsLimited(t *testing.T) {
	t.Parallel()
	if err := process.Limit(os.Getpid(), 1<<62, 1<<62); err != nil {
		t.Skip("no process can be given a limit here:", err)
	}
	dir, r := repository(t, "r")
	tree := gittest.ManyFiles(t, dir)
	c := r.NewCall("read-tree", tree)
	c.Memory = 64 << 20
	if _, err := command.Run(t.Context(), c); !OfMachine(err) || !strings.Contains(err.Error(), "ut of memory") {
		t.Errorf("got %v", err)
	}
}
