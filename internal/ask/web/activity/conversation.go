package activity

import (
	"github.com/pawl-dev/pawl/internal/ask/web/view"
	"github.com/pawl-dev/pawl/internal/keep/spool"
)

// lookBack is how many bytes are looked at for events before a place, and about how many
// of them after one.
const lookBack = 1 << 20

// EventsFile is where the supervisor writes what the agent's parser made of
// its stream.
const EventsFile = "agent.events.jsonl"

// ReadEventsFrom reads the events that begin at or after a place.
func ReadEventsFrom(f *spool.Reader, from int64, limit int, out view.Conversation) view.Conversation {
	lines := spool.NewLines(f, from)
	out.Before, out.Next = from, from
	for len(out.Events) < limit && out.Next-out.Before < lookBack && lines.Next() {
		out.Next = lines.End
		if e, ok := view.ReadEvent(lines.Line, lines.At); ok {
			if len(out.Events) == 0 {
				out.Before = e.Offset
			}
			out.Events = append(out.Events, e)
		}
	}
	out.Size = max(out.Size, out.Next)
	return out
}

// ReadEventsBefore reads the last events that end at or before a place.
func ReadEventsBefore(f *spool.Reader, spans []spool.Span, end int64, limit int, out view.Conversation) view.Conversation {
	at := len(spans) - 1
	if at > 0 && spans[at].From >= end {
		at--
	}
	end = min(end, spans[at].To)
	from := max(spans[at].From, end-lookBack)
	lines := spool.NewLines(f, from)
	out.Before, out.Next = from, from
	var all []view.AgentEvent
	for lines.Next() && lines.End <= end {
		out.Next = lines.End
		if e, ok := view.ReadEvent(lines.Line, lines.At); ok {
			all = append(all, e)
		}
	}
	out.Events = append(out.Events, all[max(0, len(all)-limit):]...)
	more := len(all) > limit || from > spans[at].From
	if more && len(out.Events) > 0 {
		out.Before = out.Events[0].Offset
	}
	return out
}
