package pool

import "github.com/pawl-dev/pawl/internal/process"

// used names a process other than this one whose working folder is in dir, and
// is empty when there is none, or the machine does not say. A loop that was
// killed may have left its agent, and a person a shell.
func used(dir string) string { return process.Within(dir) }
