package jsonline

import "github.com/pawl-dev/pawl/internal/agent"

// Draft is a message that arrives in pieces. The zero value is none.
type Draft struct {
	tail *agent.Tail
	open bool
}

// Join adds a piece.
func (d *Draft) Join(piece string) {
	if d.tail == nil {
		d.tail = agent.NewTail(agent.MessageCap)
	}
	d.open = true
	d.tail.Join(piece)
}

// Drop forgets the message.
func (d *Draft) Drop() {
	if d.open {
		d.open = false
		d.tail.Reset()
	}
}

// Take returns the message and forgets it; false if there is none.
func (d *Draft) Take() (string, bool) {
	if !d.open {
		return "", false
	}
	text := d.tail.Text()
	d.Drop()
	return text, true
}
