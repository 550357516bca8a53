// Package pool keeps the private clones in which tasks are worked on: made or
// taken up again, collected, kept for a while, cleaned, and used again.
//
// A clone borrows the objects of the user's repository ([git.Clone]) and lies
// outside of it. Whatever is done in it, the user's repository gets only
// objects, checked one by one, and refs under refs/pawl/:
//
//	refs/pawl/base/<id>/…      what a clone borrows, so that git's collection keeps it
//	refs/pawl/tasks/<id>       the work of a task, as it was collected last
//	refs/pawl/recovery/<id>/n  what was in a clone before it was changed or removed
//
// # Who owns a clone
//
// A row in the database comes before the folder, and goes after it:
//
//	          Take                  Release(Keep)
//	(none) ──> making ──> held ─────────────────> kept ──> (Take: held again)
//	             ^          │ Release(Landed)       │ retention, low disk, a person
//	   Take      │          v                       v
//	            warm <── removing ───────────────> (none)
//
// A row whose process is dead is finished by the next one: what was being made
// or removed is removed, since no agent was in it or all of it is kept; what
// was held is kept, as it is. One process at a time takes a clone; that is
// decided in the transaction which writes the row.
//
// A folder is removed only when it is proved to be the one that was made:
// repository, path, device and inode, branch, and no live process owns it. Before
// that, commits and files that are not on a ref of the user's repository yet go
// to a recovery ref. What cannot be proved or kept stays, and [Pool.List] says why.
//
// # What the package never does
//
// It never touches the user's work tree, index, branches, stash or configuration,
// never runs a hook or a program that a clone's configuration names, never
// removes a folder that it did not make, and never lands anything.
package pool
