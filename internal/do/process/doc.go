// Package process holds the mechanics of child processes: how one is started
// clean, how all that it started is found and ended, how its output is kept
// within a bound, and how a process is known again after a restart.
//
// Two kinds of parents use it. A supervisor has a [Reaper]: it adopts every
// orphan of what it started (Linux sub-reaper), waits for all of them in one
// place and can end the whole tree. The orchestrator calls
// [BecomeSubreaper], starts supervisors with [StartDetached], and ends with
// [Sweep] what a dead supervisor left.
//
// The package decides nothing: it knows no limits, no agents and no leases.
// It never signals its own process, an ancestor, or a process that may be an
// innocent one (pid and start time are compared).
//
// Outside of Linux there is no sub-reaper: an orphan that left its session is
// found by its mark only while `ps` shows environments, so the guarantee
// "nothing is left" is weaker there.
package process
