//go:build e2e && !e2e_all

package e2e

// keyedOnly: make e2e-all has them.
var keyedOnly []program
