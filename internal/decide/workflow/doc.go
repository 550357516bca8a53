// Package workflow is what a workflow file means: its steps are checked against
// each other, matrices are expanded, expressions are compiled, and the order in
// which steps may run is found. [New] makes a [Plan] of a [File]; what a step
// says is filled in later with [Text.Fill] and [Condition.Holds], from [Values].
//
// The package reads no file, runs nothing, and knows no clock: the same file
// gives the same plan with the same hashes, on every machine. Config reads the
// file and puts a [Fault] back to its line and column.
package workflow
