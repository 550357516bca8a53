// Package simulate plays loops against worlds whose failures have causes: a
// slow service, a rate limit, an exhausted pool, a flaky test, a wrong approach
// that only a rewind cures, a provider that is down, an error that only a
// person can cure. It compares the kernel's choices, in each mode, with a
// selector that goes by keywords.
//
// The kernel and the strategies are the real ones, loop.Step and package
// strategy. Time is virtual and chance comes from a seed, so the same seed
// gives the same table. Nothing is started, written or waited for, and no
// program imports the package.
package simulate
