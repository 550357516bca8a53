// Package supervisor is the small process that owns what a run starts while
// pawl itself may come and go.
package supervisor
