// Package web is pawl for browsers and scripts: a JSON API under /api/v1, live
// events over server-sent events, and the pages, which are embedded.
//
//	browser ── Server: host, origin, token, type, size ── handlers of a noun ── store, journal, run folders
//	                                                       │    │          └── action: what the command line does
//	                       rest: routes, addresses, problems    view: documents, made of what is stored
//
// [Server] lets in who may ask. Each noun has a type whose methods answer what is asked about
// it, in a file of its own, and all of them act by one core.
//
// It shows what is stored and hands over what a person asks for; it decides
// nothing about a run, and it never says more than the command line does. A
// request that cannot prove that it comes from the person who started the
// server is answered with an error and nothing else: see guard.go. A GET
// changes nothing. Texts of agents and cases go out as JSON or as plain text,
// never as HTML.
//
// Each reader of events has a bounded queue. One that is too slow gets a last event
// and is disconnected. It misses nothing: events have ids, and a reader that comes
// back names the last one that it saw.
package web
