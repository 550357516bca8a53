// Package run runs the steps of a workflow: one iteration is one pass over the
// steps that are not done yet.
//
//	            needs are over
//	pending ─────────────────────▶ kept      done before, with the same input
//	                         ├───▶ skipped   by its condition, or as optional
//	                         ├───▶ asking    waits for a person
//	                         └───▶ running ─▶ success | failure | cancelled
//
// Every execution of a step is stored before it starts and when it has ended,
// so that a later pass repeats nothing that is done: a result counts as long as
// the step's hash and what it is given stay the same. A step that ran while
// pawl was gone is adopted, or reported as interrupted and run again.
//
// The package decides nothing about the run: whether there is another
// iteration, with which strategy and within which limits, is the kernel's to
// say. It never repeats a step that is done, and starts nothing after a stop.
package run
