// Package flow has the kernels as workflows of Temporal: one that is asked what
// follows from an event, and remembers it, on the engine instead of in a process.
//
//	worker                                engine: workflow Task
//	  │ ◀── order: nothing decided yet ──────│
//	  │ ─── answer: the run has started ───▶ │ loop.Step, recorded
//	  │ ◀── order: run iteration 1 ──────────│
//	  │        agent, snapshot, gates        │
//	  │ ─── answer: iteration 1 ended ─────▶ │ loop.Step, recorded
//	  │ ◀── order: wait until 14:00 ─────────│
//	  │ ─── answer: it waits ──────────────▶ │ a timer, and no slot is taken
//	  │ ◀── order: run iteration 2 ──────────│ loop.Step, recorded
//
// What a kernel decided is recorded and never computed again: a newer pawl
// replays the decisions of an older one. An order is tried once. When its worker
// is lost, the same order goes to another one, which finds that it was begun and
// answers that the iteration was lost; the kernel decides what follows.
//
// The package decides by the kernels alone. It has no clock and touches nothing:
// what it does must come out the same whenever it is replayed.
package flow
