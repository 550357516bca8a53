// Package benchmark measures pawl as a whole: the loop against a bash loop with
// the same agent, the start, the decisions, snapshots, and the memory that a
// noisy agent costs. Its benchmarks print one table, which docs/benchmarks.md
// keeps with the machine that it comes from.
//
// What is compared runs in turn, round after round, so that a busy machine
// slows both sides; the table shows medians. The package is in no program, and
// no test of it depends on a time.
package benchmark
