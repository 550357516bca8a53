// Package stats is what the work of a repository came to, by day, agent,
// sprint or in all: how many tasks landed and after how many iterations, what
// was tried again and what that brought, how long was waited and for whom, and
// what it cost. It also says where the days of a zone begin.
//
// The package adds up and divides. It never reads the history, a clock or the
// files of zones: what is added up comes in, summed up by day, and a zone is
// given.
package stats
