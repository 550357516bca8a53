// Package fleet plays a whole board at work: the autopilot's decisions, the
// runs of its tasks and the merge queue, with crashes at every step, conflicts,
// gates that are flaky or red, limits of providers, a clock that is set forward
// and back, and people who answer late or interfere.
//
// What decides is the real code: schedule.Step, loop.Step, queue.Step and the
// board's transitions. What performs is played: agents, git, gates, the
// database, people. Time is virtual and chance comes from a seed, so the same
// seed gives the same history.
//
// After every event the world is held to its promises (see [Law]); the first
// one that is broken ends the play as a [ViolationError], which tells the story of
// those whom it is about. [Rules] can be replaced one by one, to see that a
// broken rule is found.
//
// No program imports the package, and it starts, reads and writes nothing.
package fleet
