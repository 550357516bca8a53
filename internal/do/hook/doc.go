// Package hook notifies programs and people: hooks are commands by
// event, notifications go to a command, a webhook or the desktop.
//
// [Runner.Fire] takes an [Event] and returns at once. Events wait in a bounded
// queue. A few are carried out at a time, in order for each run and each
// receiver. A command runs under a supervisor of its own: it
// has a time limit, bounded output, and nothing that it started is left when
// it is over. [Runner.Close] waits a bounded time for what was fired.
//
// The package decides nothing about a run. A hook that fails is logged and
// reported. It never delays a run, stops it or changes its result. Only
// [Runner.Await] waits, for a hook that must end before an action. Nothing is
// sent anywhere but to what the configuration names: redirects are not
// followed, and addresses and headers, which hold secrets, are never logged.
package hook
