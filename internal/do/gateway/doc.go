// Package gateway stands between one attempt of an agent and its models. The
// agent gets the gateway's address and a token that is good for this attempt
// only; the provider's key never enters the box, it is added on the way out.
//
//	agent ──request, token──▶ Gateway ──request, key──▶ provider
//	      ◀──── answer ──────    │    ◀───── answer ────
//	                             ├─▶ Emit: what each call used and cost, trouble of the provider
//	                             └─▶ End: a limit was reached, or the provider is gone for longer
//
// A request passes when
//
//   - it has the token;
//   - its first path element names an [agent.Route], and the rest is an endpoint of that
//     protocol for asking a model, counting tokens or listing models ([agent.Protocol]);
//   - the limits leave room for it ([Limits]).
//
// Requests and answers pass as they are: nothing is translated. Headers and
// query parameters pass by short lists. A stream stays a stream, and is cut
// when what it costs passes the limit. A call that fails for a short while is
// held and tried again, at most [HoldTime] long; longer trouble is reported, and
// the agent's loop waits for its end.
//
// The package reads of an answer what it needs to count. What it cannot read
// passes all the same, and is counted by its length. It never logs or reports a
// key, a prompt or an answer.
package gateway
