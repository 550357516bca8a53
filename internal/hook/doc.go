// Package hook tells programs and people what happens: hooks are commands by
// event, notifications go to a command, a webhook or the desktop.
//
// [Runner.Fire] hands an [Event] over and returns at once; what is to be told
// waits in a bounded queue and is carried out a few at a time, in order for
// each run and each receiver. A command runs under a supervisor of its own: it
// has a time limit, bounded output, and nothing that it started is left when
// it is over. [Runner.Close] waits a bounded time for what was fired.
//
// The package decides nothing about a run. A hook that fails is logged and
// said, and never holds a run up, stops it or changes what comes of it; only
// [Runner.Await] waits, for a hook that must be over before a deed. Nothing is
// sent anywhere but to what the configuration names: redirects are not
// followed, and addresses and headers, which hold secrets, are never logged.
package hook
