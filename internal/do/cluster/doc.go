// Package cluster lets the tasks of a board be worked by several processes: the
// kernels are workflows on a Temporal engine (package flow), and a [Worker]
// carries out what they order, as an autopilot's slot does on one machine.
//
//	engine: workflow Task ── order ──▶ Worker ──▶ session ──▶ autopilot.Work
//	            ▲                                    │          engine.Driver
//	            └──────── answer, request ───────────┘          supervisor, agent
//
// A session is one task's run in a worker. It lives from order to order, and ends
// when the run waits or rests; so the workspace, the supervisor and what the agent
// left are used again. What the worker is about to do is written to a file before
// it does it: a worker that starts adopts what one before left, under the engine's
// token, so an agent that works survives a restart of its worker.
//
// A worker beats for each order. When no beat is accepted for the length of the
// agents' lease, it ends the agent: the engine is about to give the order to
// another. It decides nothing, and keeps nothing of the board.
//
// Work goes from machine to machine by git. What an iteration left is a commit on the
// remote, under a ref of its own that is never moved; the iteration's record names it.
// A worker that has the next order makes the workspace anew from it, unless it did
// the last one itself. What is to land goes the same way to the autopilot.
//
// Only the program pawl-cluster has it.
package cluster
