package codex

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/agent/jsonline"
)

const (
	// maxRollout is how much of the end of a session's file is read.
	maxRollout = 4 << 20
	// maxReset is the longest wait that a plan can ask for.
	maxReset = 32 * 24 * time.Hour
	// maxEpoch is a time beyond all resets, in seconds.
	maxEpoch = 1 << 35
)

// complete reads when a used-up plan works again from the session's own file:
// the stream has only a clock time in words. Without the file, or for any other
// outcome, nothing changes. getenv looks up the program's environment.
func complete(ctx context.Context, getenv func(string) string, ended time.Time, out agent.Outcome) agent.Outcome {
	n := len(out.Errors)
	if n == 0 || out.Errors[n-1].Status != 429 || !out.Errors[n-1].ResetAt.IsZero() || !isID(out.Session) || ctx.Err() != nil {
		return out
	}
	home := getenv("CODEX_HOME")
	if home == "" && getenv("HOME") != "" {
		home = filepath.Join(getenv("HOME"), ".codex")
	}
	if home == "" {
		return out
	}
	at := resetIn(rollout(home, out.Session))
	if !at.After(ended) || at.Sub(ended) > maxReset {
		return out
	}
	out.Errors = append(out.Errors[:0:0], out.Errors...)
	out.Errors[n-1].ResetAt = at
	return out
}

// isID is true for what can be the id of a session, and no pattern.
func isID(s string) bool {
	return len(s) >= 8 && len(s) <= 200 && strings.Trim(s, "0123456789abcdefABCDEF-") == ""
}

// rollout is the end of a session's file; nil when it cannot be read.
func rollout(home, id string) []byte {
	found, err := filepath.Glob(filepath.Join(escaped(home), "sessions", "*", "*", "*", "rollout-*-"+id+".jsonl"))
	if err != nil || len(found) == 0 {
		return nil
	}
	f, err := os.Open(found[len(found)-1])
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	b, err := io.ReadAll(io.NewSectionReader(f, max(0, info.Size()-maxRollout), maxRollout))
	if err != nil {
		return nil
	}
	return b
}

// escaped is a path that a pattern takes for itself.
func escaped(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// resetIn reads the last state of the plan's limits: when the last of those
// that are used up starts anew, or the first limit when none is said to be.
func resetIn(b []byte) time.Time {
	for len(b) > 0 {
		start := bytes.LastIndexByte(b[:len(b)-1], '\n') + 1
		line := b[start:]
		b = b[:start]
		var l rolloutLine
		if !bytes.Contains(line, []byte("rate_limits")) || !jsonline.Read(line, &l) {
			continue
		}
		if at := l.Payload.Limits.reset(); !at.IsZero() {
			return at
		}
		if at := l.Limits.reset(); !at.IsZero() {
			return at
		}
	}
	return time.Time{}
}

// rolloutLine is a line of a session's file.
type rolloutLine struct {
	Payload struct {
		Limits limits `json:"rate_limits"`
	}
	Limits limits `json:"rate_limits"`
}

// limits are the state of a plan's two windows.
type limits struct{ Primary, Secondary window }

type window struct {
	Used     float64 `json:"used_percent"`
	ResetsAt float64 `json:"resets_at"`
}

func (l limits) reset() time.Time {
	last := 0.0
	for _, w := range []window{l.Primary, l.Secondary} {
		if w.Used >= 100 {
			last = max(last, w.ResetsAt)
		}
	}
	if last == 0 {
		last = l.Primary.ResetsAt
	}
	if last <= 0 || last > maxEpoch {
		return time.Time{}
	}
	return time.Unix(int64(last), 0).UTC()
}
