// Package dashboard is what a person sees in a terminal while the autopilot
// works: slots with what their agents do now, what needs a person, the board,
// the merge queue, what happened last; and keys to pause, stop, answer and read
// along.
//
// It reads a [autopilot.View] twice a second and whenever it is woken, and does
// nothing by itself: each [Action] is carried out by its caller, the same
// way as the command of that name. What it shows from agents and cases is cut to
// the screen and has lost its control characters.
package dashboard
