package web

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/ask/web/activity"
	"github.com/pawl-dev/pawl/internal/ask/web/view"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/keep/spool"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// talks begins to keep what an agent says in the first iteration of a run.
func (r *rig) talks(run, file string, limit int64) *spool.Writer {
	r.t.Helper()
	r.left(run, 1, map[string]string{"begun.json": `{"attempt":1}`})
	return spool.NewWriter(filepath.Join(r.dir, "runs", run, "1", file), limit)
}

func word(n int) string { return fmt.Sprintf(`{"kind":"text","text":"%06d"}`+"\n", n) }

// A long conversation is read in both directions past what was left out, while
// the agent talks and when it has ended, at the same places.
func TestLongConversation(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.run("abc123", nil)
	w := r.talks("abc123", activity.EventsFile, 4000)
	const all = 1000
	for n := range all {
		_, _ = w.Write([]byte(word(n)))
	}
	read := func(query string) (c view.Conversation) {
		r.get("/runs/abc123/iterations/1/conversation?limit=7&"+query, &c)
		return c
	}
	for _, ended := range []bool{false, true} {
		if ended {
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
		}
		var forward, backward []string
		c := read("from=0")
		for ; len(c.Events) > 0; c = read(fmt.Sprintf("from=%d", c.Next)) {
			for _, e := range c.Events {
				forward = append(forward, e.Text)
				if e.Offset != int64(len(word(0))*atoi(t, e.Text)) {
					t.Fatalf("ended %v: %s is at %d", ended, e.Text, e.Offset)
				}
			}
		}
		if c.Size != w.Size() || c.Next != w.Size() {
			t.Errorf("ended %v: it ends at %d of %d, want %d", ended, c.Next, c.Size, w.Size())
		}
		for c = read("tail=true"); len(c.Events) > 0; c = read(fmt.Sprintf("before=%d", c.Before)) {
			for i := range c.Events {
				backward = append(backward, c.Events[len(c.Events)-1-i].Text)
			}
			if c.Before == 0 {
				break
			}
		}
		if len(forward) != len(backward) || len(forward) < 100 || forward[0] != "000000" || backward[0] != "000999" {
			t.Fatalf("ended %v: %d forward, %d backward: %v", ended, len(forward), len(backward), backward)
		}
		for i, text := range forward {
			if backward[len(backward)-1-i] != text {
				t.Fatalf("ended %v: %s forward is %s backward", ended, text, backward[len(backward)-1-i])
			}
		}
	}
}

func atoi(t *testing.T, text string) (n int) {
	t.Helper()
	if _, err := fmt.Sscanf(text, "%d", &n); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return n
}

// The parts of a long output have the offsets of what was printed; what was
// left out is passed over.
func TestLongOutput(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.run("abc123", nil)
	w := r.talks("abc123", "agent.out", 1000)
	_, _ = w.Write([]byte(strings.Repeat("é", 5000)))
	for _, ended := range []bool{false, true} {
		if ended {
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
		}
		var part view.FilePart
		text, jumps := "", 0
		for next := int64(0); next < w.Size(); next = part.Next {
			r.get(fmt.Sprintf("/runs/abc123/iterations/1/files/agent.out?limit=333&offset=%d", next), &part)
			if part.Offset != next {
				jumps++
			}
			text += part.Text
			if part.Size != 10_000 || part.Next <= next {
				t.Fatalf("ended %v: from %d: %+v", ended, next, part)
			}
		}
		if jumps != 1 || strings.Trim(text, "é") != "" || part.More || len(text) < 1000 {
			t.Errorf("ended %v: %d jumps, %q", ended, jumps, strings.Trim(text, "é"))
		}
		r.get("/runs/abc123/iterations/1/files/agent.out?offset=-100", &part)
		if part.Offset != 9900 || part.Text != strings.Repeat("é", 50) {
			t.Errorf("ended %v: the end is %+v", ended, part)
		}
	}
}

// Who watches an agent is told how far it has come, past any bound of what is kept.
func TestGrowingBeyondWhatIsKept(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.run("abc123", func(row *store.Run, _ *loop.State) { row.Iteration = 1 })
	w := r.talks("abc123", activity.EventsFile, 2000)
	r.serve()
	events := r.open("/events", "")
	for n := range 400 {
		_, _ = w.Write([]byte(word(n)))
	}
	for {
		var g view.Grown
		if err := json.Unmarshal([]byte(events.until("output").data), &g); err != nil {
			t.Fatal(err)
		}
		if g.Run != "abc123" || g.Iteration != 1 || g.Attempt != 1 || g.Output != 0 {
			t.Fatalf("got %+v", g)
		}
		if g.Events == w.Size() {
			break
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}
