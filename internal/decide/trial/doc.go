// Package trial judges agents and settings by tasks that the history of a repository gives: which commits can be
// tasks and in which words, what attempts at them add up to, how sure that is, and which settings are proposed.
//
// Who attempted what, and what came of it, comes in as data. The package runs nothing, and no statement of it
// is stronger than its sample.
package trial
