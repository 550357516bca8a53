// Package dashboard draws the autopilot in a terminal: its slots, what needs a
// person with the command that helps, the board, the merge queue and the latest
// events. It is looked at only: whatever a person wants done is a command in
// another terminal, or a button in the browser.
package dashboard
