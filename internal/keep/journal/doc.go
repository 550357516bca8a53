// Package journal is the story of every run: its events in the order in
// which they happened, as the web pages, the logs and the command line see
// them. It names the kinds of event and their data, and reads them.
//
// The journal never decides anything and never changes a stored event. It
// holds no data itself: a [Source] does. An event that belongs to a change
// of a run's state is stored by the engine together with that state, in one
// transaction; [Append] is only for what happens beside it.
package journal
