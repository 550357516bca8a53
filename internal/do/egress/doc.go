// Package egress is the one way out of a sandboxed agent: a proxy that lets it
// reach the endpoints it was allowed, and nothing else.
//
// Its clients come through a listener that a sandbox handed out. A request
// passes when
//
//   - its host and port are on the list ([Endpoint]);
//   - the host's address, which the proxy looks up itself, is a public one, or
//     was allowed by that very address. The address that was checked is the one
//     that is dialled, so a name that changes its mind gains nothing;
//   - what follows a CONNECT is TLS, and its ClientHello names the same host.
//
// Names that are not on the list are never looked up: a lookup would be a way
// out too. Everything else gets an answer that says why, and is reported to
// [Config.Refused].
//
// TLS is not intercepted, so what is said inside of it stays unknown: that one
// host may serve others under its certificate (domain fronting), or hide the
// inner name of an encrypted ClientHello, is beyond this package. To an endpoint
// that is listed as plain http all that a client sends is passed on: in a tunnel
// as it is, else request by request.
//
// The package never logs, keeps or reports a path, a query, a header or a
// credential. It does not confine a process: that this has no other way out
// is the sandbox's business.
package egress
