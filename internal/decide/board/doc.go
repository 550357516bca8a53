// Package board decides about cases: what a valid one is, which status may
// follow which and who may say so, which dependencies can be met, what a list
// of tasks in a file means, and which ready task is next and why.
//
// A case is an operation, which groups, or a task, which one loop does. It
// waits for what it needs, an operation waits for what it holds, and what an
// operation needs is needed by all that it holds. Done means landed.
//
// The package never reads a clock, a file or the database, and never starts
// anything: data in, data and a reason in words out. Who stores cases keeps
// their counters ([Case].Unmet and the like) as rows change; [Case.IsReady]
// and [Score] then need nothing but the case.
package board
