// Package supervisor is the small process that owns what a run starts while
// pawl itself may come and go.
//
// [Start] starts one for a run; it runs [Serve]. Over a socket it takes one
// [Job] at a time, an agent or a gate alike, adopts all that the job starts,
// keeps its output in files, parses and meters it, enforces the limits, and
// ends all that is left. A result is in its file before it is sent.
//
//	            hello/attach                     run
//	(started) ───────────────▶ attended, idle ◀───────▶ attended, busy
//	    │ lease                  │ EOF, lease     result   │ EOF    ▲ attach
//	    ▼                        ▼                         ▼        │
//	  (exit) ◀──────────────── (exit) ◀──────────── unattended, busy
//	                                    result, or lease: end the job
//
// The client renews the lease while it lives. A supervisor whose lease runs
// out ends its job with the reason "lease" and exits; one that loses its
// client with nothing to do exits at once. If the supervisor dies, the client
// ends what it left (it fell to the client, or is found by its mark) and
// makes a result with the reason "lost". If both die, the next pawl sweeps by
// the mark.
//
// It serves its own pawl only: who comes back must know the secret that it left
// in the run's folder, and be of its user and in its user and mount namespaces.
// The client asks the same of who sits at the socket. A job without a box is run
// only if the starter said that the run has such jobs.
//
// What is authoritative: the job's files. The start is noted there before it
// happens and the result before it is sent, so a job never runs twice: it has its
// result, or it is lost.
//
// The package knows no agent program: parsers are handed in. It never starts
// a job twice, and never tries one again by itself.
package supervisor
