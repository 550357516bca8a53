// Package survey looks at a repository that pawl does not know yet: what builds,
// tests and lints it, what a fresh clone needs, and which files no agent should
// change. It makes a first pawl.yaml of that. It runs and writes nothing.
package survey
