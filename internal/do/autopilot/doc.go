// Package autopilot keeps slots busy: it takes the next ready task of the
// board, drives a run for it in a workspace of its own, and hands what is
// verified to the merge queue, until nothing is left or a person stops it.
//
//	board ─▶ slot ─▶ workspace ─▶ engine ─▶ outcome: on the board, to the queue
//	  ▲                                         │
//	  └──────────── landed: dependents ready ◀──┘
//
// One goroutine owns the state and asks schedule.Step what to do; each slot has
// one more, which drives its run and sends back how that ended. A request to an
// autopilot in another process is stored in the database.
//
// A task's status is stored before its run begins and after its work is kept,
// so that whatever a crash leaves is found again: [Run] begins with that. The
// package decides nothing itself, keeps no workspace and lands nothing.
package autopilot
