// Package boxnet is what a box with a loopback of its own has for a network: the ways
// out, and the way in.
//
//	127.0.0.1:door, in the box ── doors ──▶ 127.0.0.1:door, of the machine
//	127.0.0.1:47128, if closed ── proxy ──▶ the model's endpoint
//	packets of its tun device ─── stack ──▶ other machines
//	127.0.0.1:20001 ◀── its init, at a socket ── preview
//
// It knows neither the proxy nor the stack: both are large, most boxes need none, and
// they are handed in when they are needed.
package boxnet
