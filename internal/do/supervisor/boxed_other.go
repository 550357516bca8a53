//go:build !linux

package supervisor

// Boxed is false: there are no boxes here.
func Boxed(int) bool { return false }

// Ours is true: this is not asked here.
func Ours(int) bool { return true }
