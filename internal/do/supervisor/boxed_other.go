//go:build !linux

package supervisor

// Boxed: there are no boxes here.
func Boxed(int) bool { return false }

// Ours: this is not asked here.
func Ours(int) bool { return true }
