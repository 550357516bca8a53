// Package schedule decides what the autopilot does next: which slots are
// filled, when it pauses, what becomes of a task whose run ended, when a
// sprint has reached its target, and when all is over and with which status.
//
//	            ┌────────── pause, errors in a row ──────────┐
//	            │                                            ▼
//	Began ─▶ running ─── nothing ready, target reached ─▶  paused ─┐
//	            │  ▲                    │                    │     │ stop
//	            │  └──────── resume ────┼────────────────────┘     │
//	            │ stop                  ▼                          │
//	            └─▶ stopping ──────▶ ended ◀── stopping ◀──────────┘
//
// State and event go into [Step], state and one command come out, with its
// reason in words. Who carries the command out answers with an event, so that
// there is never more than one command in the air; only [Rest] waits for
// any event. Times and what the board holds come in with events.
//
// The package never reads a clock, a file or the database, never starts
// anything, and knows nothing of workspaces and queues but that they exist.
package schedule
