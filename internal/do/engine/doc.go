// Package engine is the home of one run: it stores what loop.Step decides, and
// carries its commands out. Package drive is the loop around both.
//
//	        ┌────────────── event ──────────────┐
//	        ▼                                   │
//	loop.Step ─ state ─▶ store ─ command ─▶ perform: agent, snapshot, gates, record
//	                                            ▲
//	signals, pawl stop | pause ─────────────────┘ only end it earlier
//
// The event and the state after it are stored before the command is carried
// out, and what a command does is found again by its place (run, iteration,
// attempt): after a crash the next engine adopts the agent that still runs,
// reads the result of one that ended, or records that it was lost. The engine
// decides nothing: every choice is loop.Step's.
//
// Two goroutines work on a run. [Driver] owns its state; the worker carries out
// one command at a time. What both use is in session.
package engine
