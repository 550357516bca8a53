package engine

import (
	"strconv"
	"strings"

	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/sqlite"
)

// Reply is a person's answer, as it waits in the database, as an event; false
// for a row that is none.
func Reply(c sqlite.Control, p *loop.Policy) (loop.Event, bool) {
	e := loop.Event{Kind: loop.Answered, Policy: p, Text: c.Text}
	switch c.Kind {
	case sqlite.ControlAnswer:
		return e, true
	case sqlite.ControlChoice:
		number, text, _ := strings.Cut(c.Text, " ")
		e.Choice, _ = strconv.Atoi(number)
		e.Text = text
		return e, true
	}
	return loop.Event{}, false
}
