package engine

import (
	"os"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/agent"
)

// cold is an agent that needs a warm-up.
type cold struct {
	agent.Adapter
	warm []string
}

func (c cold) Start(in agent.Invocation) (agent.Start, error) {
	start, err := c.Adapter.Start(in)
	start.Warm = c.warm
	return start, err
}

// warmed runs once per repository, before the agent's first start.
func (w *world) warmed(command string) *within {
	h := w.within()
	a := h.opts.Plan.Agents["script"]
	a.Adapter = cold{a.Adapter, []string{"sh", "-c", strings.ReplaceAll(command, "{dir}", w.dir)}}
	h.opts.Plan.Agents["script"] = a
	return h
}

func TestAnAgentIsWarmedUpOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
  - - run: {command: "test -e {dir}/warm", must: true}
    - append: {path: a.txt, content: "x"}
`)
	for range 2 {
		h := w.warmed("echo up >>{dir}/warm")
		h.start()
		w.holds(loop.Completed, "1.1 success", "2.1 success")
		if n := h.count(string(Warning)); n != 0 {
			t.Errorf("warnings: %q", h.lines)
		}
	}
	if got := w.read("warm"); got != "up\n" {
		t.Errorf("warmed up: %q", got)
	}
}

// A warm-up that fails is tried again at the next start; the agent starts all
// the same.
func TestAWarmUpThatFailsIsAWarning(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quick)
	h := w.warmed("echo no disk; exit 3")
	h.start()
	w.holds(loop.Completed, "1.1 success", "2.1 success")
	if n := h.count("warning could not warm up script: sh -c echo no disk; exit 3 ended with status 3: no disk"); n != 2 {
		t.Errorf("%d warnings: %q", n, h.lines)
	}
	if _, err := os.Stat(w.path("state/agents/script/warm")); err == nil {
		t.Error("a warm-up that failed counts")
	}
}
