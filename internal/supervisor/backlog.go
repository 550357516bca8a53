package supervisor

import "github.com/pawl-dev/pawl/internal/agent"

// Bounds of what waits for a slow reader.
const (
	backlogEvents = 1024
	backlogBytes  = 2 << 20
	liveText      = 16 << 10 // of one event's text; the file has all of it
	liveCommand   = 2000     // of one event's command, also in the file
)

// note is an event on its way to a client.
type note struct {
	kind agent.EventKind
	data []byte // JSON
}

// backlog holds events for a reader that may be slow, and forgets the oldest
// words before anything that counts.
type backlog struct {
	notes   []note
	bytes   int
	dropped int
}

func (b *backlog) add(n note) {
	b.notes = append(b.notes, n)
	b.bytes += len(n.data)
	for len(b.notes) > backlogEvents || (b.bytes > backlogBytes && len(b.notes) > 1) {
		b.drop()
	}
}

func (b *backlog) drop() {
	at := 0
	for i, n := range b.notes {
		if wordy(n.kind) {
			at = i
			break
		}
	}
	b.bytes -= len(b.notes[at].data)
	b.dropped++
	if at == 0 {
		// The usual case; append moves the rest when its space is used up.
		b.notes[0] = note{}
		b.notes = b.notes[1:]
		return
	}
	b.notes = append(b.notes[:at], b.notes[at+1:]...)
}

// next takes the oldest; there is one. The number of those that were dropped
// before it is told, and begins again.
func (b *backlog) next() note {
	n := b.notes[0]
	b.notes[0] = note{}
	b.bytes -= len(n.data)
	if b.notes, b.dropped = b.notes[1:], 0; len(b.notes) == 0 {
		b.notes = nil
	}
	return n
}

func (b *backlog) take() ([]note, int) {
	notes, dropped := b.notes, b.dropped
	*b = backlog{}
	return notes, dropped
}

// wordy events are for people who watch; the others carry numbers and ends.
func wordy(kind agent.EventKind) bool {
	switch kind {
	case agent.Text, agent.Thinking, agent.ToolStart, agent.ToolEnd, agent.Unknown:
		return true
	}
	return false
}
