package attemptdir

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/supervisor"
)

// Hearing is an agent at work that takes messages; without one they wait.
type Hearing struct {
	mu    sync.Mutex
	b     *Begun
	begun string // where it is kept
}

// Open lets messages be passed on to the agent whose job was begun so; path is where that is kept.
func (h *Hearing) Open(b Begun, path string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.b, h.begun = &b, path
}

// Close returns what was begun, with the messages that were passed on.
func (h *Hearing) Close(b Begun) Begun {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.b != nil {
		b, h.b = *h.b, nil
	}
	return b
}

// Pass hands a message to the agent, once. It is noted before it is handed on: after a
// crash it may be told again, and is never lost.
func (h *Hearing) Pass(id int64, text string, warn func(string)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.b == nil || slices.Contains(h.b.Messages, id) {
		return
	}
	h.b.Messages, h.b.Said, h.b.Later = append(h.b.Messages, id), append(h.b.Said, text), h.b.Later+1
	err := h.b.Write(h.begun)
	if err == nil {
		err = appendTo(h.b.Job.Messages(), agent.UserLine(text))
	}
	if err != nil {
		warn(fmt.Sprintf("cannot send the agent a message now; its next prompt has it: %v", err))
	}
}

func appendTo(path string, line []byte) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(line)
	return errors.Join(err, f.Close())
}

// Told leaves out the messages that came too late for the agent.
func (b Begun) Told(res supervisor.Result) Begun {
	n := len(b.Messages) - max(0, b.Later-res.Told)
	b.Messages, b.Said = b.Messages[:n], b.Said[:n]
	return b
}
