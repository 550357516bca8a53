package acp

import (
	"encoding/json"
	"io"
	"sync"

	"github.com/pawl-dev/pawl/internal/agent"
)

const (
	maxText  = 2000 // of a command or an error's text, in bytes
	maxName  = 200
	maxPath  = 4096
	maxFiles = 50
	// maxPiece is how much text one line carries, so that no line is cut.
	maxPiece = 256 << 10
)

// line is what the bridge tells, one a line, and [Parser] reads.
type line struct {
	Type    string   `json:"type"`
	Session string   `json:"session,omitempty"`
	Agent   string   `json:"agent,omitempty"`
	Version string   `json:"version,omitempty"`
	Model   string   `json:"model,omitempty"`
	ID      string   `json:"id,omitempty"` // of a message or a tool call
	Text    string   `json:"text,omitempty"`
	Tool    string   `json:"tool,omitempty"`
	Command string   `json:"command,omitempty"`
	Files   []string `json:"files,omitempty"`
	Failed  bool     `json:"failed,omitempty"`
	Result  string   `json:"result,omitempty"` // the beginning of it
	Granted bool     `json:"granted,omitempty"`

	Input      int64   `json:"input,omitempty"`
	Output     int64   `json:"output,omitempty"`
	CacheRead  int64   `json:"cache_read,omitempty"`
	CacheWrite int64   `json:"cache_write,omitempty"`
	USD        float64 `json:"usd,omitempty"`

	Kind   string `json:"kind,omitempty"` // of an error
	Status int    `json:"status,omitempty"`
	Stop   string `json:"stop,omitempty"`
}

// The types of lines.
const (
	lineSession = "session"
	lineText    = "text"
	lineThought = "thought"
	lineTool    = "tool"
	lineToolEnd = "tool_end"
	lineUsage   = "usage"
	lineCost    = "cost"
	lineAsked   = "permission"
	lineUnknown = "unknown"
	lineError   = "error"
	lineEnd     = "end"
)

// printer writes lines. It is safe for concurrent use.
type printer struct {
	mu sync.Mutex
	w  io.Writer
}

func (p *printer) put(l line) {
	for _, s := range []*string{&l.Session, &l.Agent, &l.Version, &l.Model, &l.ID, &l.Tool, &l.Kind, &l.Stop} {
		*s = agent.Clip(*s, maxName)
	}
	l.Command, l.Text = agent.Clip(l.Command, maxText), agent.Clip(l.Text, maxPiece)
	b, err := json.Marshal(l)
	if err != nil {
		return // a number that is none: nothing was told
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = p.w.Write(append(b, '\n')) // a reader that is gone is the supervisor's business
}

// say prints a text in pieces that fit.
func (p *printer) say(kind, id, text string) {
	for text != "" {
		piece := agent.Clip(text, maxPiece)
		p.put(line{Type: kind, ID: id, Text: piece})
		text = text[len(piece):]
	}
}
