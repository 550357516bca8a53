// Package archtest is the project's map as a test: which room may import
// which, what is pure, who may start goroutines, read the environment, run
// git or write SQL, and how long a file may be. The tables are in rooms.go,
// each line with its reason. The figures of the code as a whole, which may
// only get better, are in figures.go.
//
// It reads the source files itself. It never asks the go command, whose
// answers are cached and go stale, and it never changes a file. No program
// imports it.
package archtest
