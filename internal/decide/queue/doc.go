// Package queue decides how verified work lands on one target branch: which
// entries are tried together, what a red verification means and for whom, what
// becomes of a conflict, and when the queue stops and asks.
//
// [Step] takes a [State] and an [Event] and returns the state after it and one
// [Command], as the kernel of a run does. Beside the command, each entry whose
// status is [Resolving] has a run of its own, which the performer keeps going;
// its end comes back as an event.
//
//	           choose            merged             green
//	(idle) ───────────▶ prepare ───────▶ verify ───────────▶ land ──▶ foresee ──▶ push
//	   ▲                   │                │ red               │ moved: prepare again
//	   │ nothing to do     │ conflict       ▼                   │ a file of yours in the way: the entry waits
//	   └───────────────────┘        once more, halve,           ▼
//	                                then the target itself   (next)
//
// The promises, which invariants_test.go holds the package to:
//
//   - G1 the target moves only from the commit that was seen to one whose tree
//     has a green record;
//   - G3 what is landed is what was verified, the same commit and tree;
//   - G5 oldest first within a priority; one that was passed over [AgeLimit]
//     times goes before all others, so nothing starves;
//   - G6 a rule resolves a conflict only where both sides stay in, or where one side
//     changed nothing but blanks; what it resolved is verified again;
//   - G7 a red target stops the queue with one alarm and blames no entry.
//
// The package never reads a clock, a repository or a database, and starts
// nothing: time and facts come in with events.
package queue
