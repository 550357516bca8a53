// Package spool keeps a stream of any length on the disk, its beginning and its
// end, so that any place of it can be read by its offset in the stream, while
// it is written and afterwards.
//
//	agent.out             the beginning, as it comes
//	agent.out.parts       once that is full: where the rest is
//	agent.out.67108864 …  the rest in parts, each named by where it begins; the oldest
//	                      go when there are more than are to be kept
//
// When the stream has ended it is one file: beginning, a line that says how
// much was left out, end. The offsets stay those of the stream: agent.out.parts
// is kept when something was left out, and says how to find them.
//
// Nothing is written twice in place, and the layout is replaced in one step, so
// a reader in another process needs no lock: it looks at the layout before and
// after it has read, and reads again when that has changed.
package spool
