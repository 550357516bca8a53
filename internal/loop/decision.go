package loop

// Decision is what followed from an event, for whoever keeps a run's state in
// another place than where its commands are carried out. What is stored outlives
// the code: fields can be added or removed, but their names must not change.
type Decision struct {
	Event   Event   `json:"event"`
	State   State   `json:"state"` // after it
	Command Command `json:"command"`
	// Record is the command's, which does not encode it.
	Record *Record `json:"record,omitempty"`
}

// Decide is [Step] as a decision.
func Decide(s State, e Event) Decision {
	after, c := Step(s, e)
	return Decision{e, after, c, c.Record}
}

// Whole is the command with its record.
func (d *Decision) Whole() Command {
	c := d.Command
	c.Record = d.Record
	return c
}
