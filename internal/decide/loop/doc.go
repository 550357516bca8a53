// Package loop is the kernel: what a run does next.
//
// [Step] takes a [State] and an [Event] and returns the state after it and
// one [Command]. It reads no clock, file, process or random source; time and
// the seed come in with the event. The same code drives a loop on this
// machine, inside a distributed engine and in a simulation.
//
// A guard is a count in [Guards] that Observe keeps, a method that says whether
// it trips, and a threshold in [Policy]. State.endByGuard asks them in their order.
// Scores, trees and files come to it as a [Sight], which State.recordIteration makes.
package loop
