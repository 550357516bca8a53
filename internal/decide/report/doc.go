// Package report is a run as a person reads it afterwards: how it ended and what
// to do next, where the time went, the iterations with their strategies and
// gates, what failed most, what was changed. [New] makes a [Report] of what is
// stored, [Report.Markdown] and [Report.HTML] write it.
//
// The words of agents, gates and repositories are hostile: they reach a page as
// text and as nothing else. A page holds no script, and loads nothing. Lists are
// cut, and say so.
//
// The package reads no clock and no file: times come with what it is given, in
// the zone in which they are to be shown.
package report
