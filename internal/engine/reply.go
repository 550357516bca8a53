package engine

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/store"
)

// Reply is a person's answer, as it waits in the database, as an event; false
// for a row that is none.
func Reply(c store.Control, p *loop.Policy) (loop.Event, bool) {
	e := loop.Event{Kind: loop.Answered, Policy: p, Text: c.Text}
	switch c.Kind {
	case store.ControlAnswer:
		return e, true
	case store.ControlChoice:
		number, text, _ := strings.Cut(c.Text, " ")
		e.Choice, _ = strconv.Atoi(number)
		e.Text = text
		return e, true
	case store.ControlReply:
		var to loop.Asks
		if json.Unmarshal([]byte(c.Text), &to) != nil || to.Step == "" {
			return loop.Event{}, false
		}
		e.Text, e.Replies = "", []loop.Asks{to}
		return e, true
	}
	return loop.Event{}, false
}

// Replies are all answers that wait for a run, oldest first, as one event: the
// newest, and of those to steps the newest to each. False is none.
func Replies(rows []store.Control, p *loop.Policy) (all loop.Event, ok bool) {
	for _, row := range rows {
		e, is := Reply(row, p)
		if !is {
			continue
		}
		if len(e.Replies) > 0 && len(all.Replies) > 0 {
			e.Replies = append(e.Replies, all.Replies...) // the first to a step counts
		}
		all, ok = e, true
	}
	return all, ok
}
