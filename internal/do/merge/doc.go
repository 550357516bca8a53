// Package merge performs what package queue decides: it merges without a
// checkout, runs the gates in an integration workspace, moves the target by
// compare-and-swap, and moves the files of work trees that have it checked out.
//
// # Who may land
//
// A queue has one owner, a process, as a run has. Others add entries and
// requests as rows of the database, which the owner takes in; a process that
// dies leaves a queue that the next one continues.
//
// # What a crash leaves
//
// A step of the queue is stored before its command is carried out, so the
// command to land, with the commit before and after, is the journal of the
// landing. Then the target is moved, then the files of work trees. The process
// that opens the queue next finds the command, sees how far it came, and finishes
// it: a target that was not moved is moved if it is still where it was, one
// that was moved is not moved again, and files follow one by one. A file that
// is neither as it was nor as it is to be is the user's and is left alone.
//
// With a remote that landings are pushed to, the remote is asked first. What it refuses has not landed; what it took
// and the branch here does not have yet, the next look at the remote brings.
//
// # The history that it makes
//
// Each task has a merge commit of its own. Those of a batch are a line beside
// the target, joined to it by one more merge whose first parent is the target
// before. So the first-parent line of the target is exactly what the target's
// ref held, and each of its commits was verified, tree for tree.
//
// # Among several machines
//
// There the target is the remote's branch, and refs/pawl/remote/BRANCH is where that was
// last. A landing is pushed from exactly there, and counts then. The branch of the clone
// follows if it can; what a person has on it is none of the queue's business.
//
// # Its parts
//
// [Queue] drives the decisions; its parts carry them out. None of them calls the queue,
// and each has the target below it:
//
//	target     where it is, here and at the remote; moving it, and the files of work trees
//	checks     gates in an integration workspace, and their records
//	conflicts  merges, rules for simple conflicts, files that are made anew   (uses checks)
//	requests   pull requests, and checks that the forge runs
//
// The package decides nothing about order, blame or conflicts, never checks
// anything out in the user's work tree but the files of a landing, never pushes
// with force, and never tries a failed gate again by itself.
package merge
