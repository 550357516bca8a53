package failure

import "slices"

var classes = []Class{
	Timeout, RateLimit, QuotaExhausted, Network, Auth, Permission, Validation, ContextLength, ResourceExhausted, ServiceUnavailable,
	Crash, TestFailure, CompileError, Lint, Dependency, MergeConflict, GitState, MissingCommand, PortConflict, NoProgress, LimitExceeded,
	Tampering, Unknown,
}

// Classes lists all classes, in the order in which documents name them.
func Classes() []Class { return slices.Clone(classes) }
