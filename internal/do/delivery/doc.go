// Package delivery carries work between a person's checkout and the private workspace
// of a run.
//
//	person's checkout                          private workspace
//	  files, HEAD, index ──── Begin ─────────▶ the same files, HEAD and index
//	        │                                    │ agent, snapshot, gates
//	        │──── BringIn, before an iteration ─▶│ three-way, by file
//	        │◀─── Deliver, what is verified ─────│
//
// What both have had in common last is stored as Agreed: a tree of all files and the
// commit that is checked out. What the person did is the difference from there to the
// checkout, what agents did the difference to the workspace.
//
// A delivery stores what it is about to do, then moves the branch by compare-and-swap,
// then the files, then the index, which is locked all the while. One that was cut off is
// finished, or undone where the branch was not moved yet, by the next one who opens the
// workspace. A file is written only if what is there is what was there when work began
// on it; anything else is the person's, and stays.
//
// It decides nothing: what becomes of work is decided by package deliver. It runs no
// hook and no filter, and never touches the stash or another branch.
package delivery
