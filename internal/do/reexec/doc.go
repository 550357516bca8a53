// Package reexec is what pawl is when it has started itself: the supervisor of
// a run, the entry of a box, the scripted agent, the bridge to an agent. Fifty
// supervisors run beside fifty agents, and a box is entered for every command,
// so these little programs begin before the rest of pawl is initialised and
// never pay for it, in memory or in time.
//
//	runtime ─▶ what it needs ─▶ reexec ─▶ little program ─▶ exit
//	                                 │            │ asks for the rest
//	                                 ▼            ▼
//	                              all other packages ─▶ main ─▶ Finish
//
// It relies on one promise of Go: a package is initialised after those that it
// imports, and of two packages that could be next the one whose path sorts
// first. So what counts is that reexec imports few packages, and none that
// others wait for: net/http above all, on which nearly all of the rest
// depends. A test in package benchmark holds this.
//
// The one thing of a supervisor that needs the rest is the way out of a closed
// box. When a job asks for it, the initialisation goes on beside the
// supervisor, and main hands it over by [Finish].
//
// The package decides by the command line alone, and does nothing for any
// command that a person writes.
package reexec
