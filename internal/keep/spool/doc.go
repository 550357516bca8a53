// Package spool keeps a stream of any length on the disk, its beginning and its
// end, so that any place of it can be read by its offset in the stream, while
// it is written and afterwards.
//
//	agent.out             the beginning, as it comes
//	agent.out.33554432 …  once that is full the rest in parts, each named by where it
//	                      begins; the oldest go when there are more than are to be kept
//	agent.out.gz          all of it, once it has ended and was packed
//
// Nothing is written twice in place, so a reader in another process needs no
// lock: where a part has gone meanwhile, it looks at what is there again.
package spool
