package git

import (
	"os"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/gittest"
	"github.com/pawl-dev/pawl/internal/process"
)

// A few objects cannot make git take all of the machine's memory.
func TestMemoryIsLimited(t *testing.T) {
	t.Parallel()
	if err := process.LimitMemory(os.Getpid(), 1<<62); err != nil {
		t.Skip("no process can be given a limit here:", err)
	}
	dir, r := repository(t, "r")
	tree := gittest.ManyFiles(t, dir)
	c := r.call("read-tree", tree)
	c.memory = 64 << 20
	if _, err := run(t.Context(), c); !OfMachine(err) || !strings.Contains(err.Error(), "ut of memory") {
		t.Errorf("got %v", err)
	}
	if most := mostMemory(); most == 0 || most > memoryLimit {
		t.Errorf("the limit is %d bytes", most)
	}
}
