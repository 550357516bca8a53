// Package store is pawl's memory: one database file per repository, with
// runs, their iterations, the journal of events, the control rows by which
// other processes reach a run, and the cases of the board. All SQL of pawl is
// here, one file per noun.
//
// The package stores and finds; it never decides what a run does next, never
// asks whether a process is alive (callers pass that in), and never deletes
// or replaces a database that it cannot read.
//
// # Parts
//
// A part keeps some tables and has the methods about them. [Store] embeds all parts, and all
// parts share one [DB]: the connections, the transaction and the leases of owners.
//
//	Store ── RunTables, EventTable, CaseTables, QueueTables, AutopilotTables,
//	  │      WorkspaceTable, WorkerTable, TrialTable, Statistics
//	  └──── DB ── rows: statements, columns, conditions
//	          └── database: sqlite for one machine, postgres for several
//
// # Who may write a run
//
// A run has an owner exactly while a process drives it.
//
//	Create ──> owned ──Commit, Commit, …──> owned
//	             │  ^
//	   Release,  │  │ Take: the run is free, or its owner is dead
//	   EndedAt   v  │
//	            free
//
// The row of the run is authoritative: [RunTables.Commit] by anybody else than
// its owner changes nothing and returns [ErrNotOwner], so a process that was
// believed dead and comes back cannot write over its successor.
//
// # What a crash leaves
//
// A commit is one transaction: the run's state, the event that led to it and
// the iteration's record are all there or none is. After kill -9 every commit
// that returned is there. After a power loss the last ones may be missing,
// never a part of one, and never an answer in [RunTables.AddControl]: that is on disk when
// it returns. The same holds after a crash of a shared database's server, where the step
// that frees a run is on disk, too.
//
// The counters of cases, and whether a task is ready, are kept in the
// transaction that changes what they count. The next task is then found by an
// index. New cases, landings and what a person does survive a power loss.
//
// Events of a run are numbered without gaps. A commit that is repeated, after
// an error that left its fate open, finds its own event stored and does
// nothing.
package store
