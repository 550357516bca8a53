// Package acp runs any program that speaks the Agent Client Protocol: JSON-RPC
// 2.0, one message a line, on its stdin and stdout. It is the fallback for
// programs that pawl has no adapter for.
//
//	supervisor ─▶ pawl __acp (this bridge) ─▶ program
//	   ◀── lines of its own, for [Parser] ──     ◀── ACP ──▶
//
// The bridge opens one session in the working folder, sends the prompt, answers
// what the program asks for, and writes what happens as lines that [Parser]
// reads. At TERM it sends session/cancel and waits for the answer before the
// program gets any signal; the supervisor sends TERM to it alone at first
// (agent.Start.Ask).
//
// What is not in the protocol, pawl does not know: when a rate limit ends,
// what a turn cost where the program reports nothing, and some programs pass a
// failed call off as an answer (`Error: …`, which is read as the failure it is).
//
// Permissions are granted one by one, since the sandbox holds the program and not
// its good will: for a review only those to read, and none for what the level calls
// dangerous: such a request is refused, and ends the program as a call does that has
// begun. Files and terminals of the client are not offered: the program uses its own.
// The bridge never logs in: a program that asks for it is reported as such.
package acp
