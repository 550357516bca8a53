// Package powercut is a disk in memory whose power can fail: a file system for
// tests, which forgets what was not synced.
//
//	write      is seen at once, as on any disk
//	fsync      of a file makes its bytes safe, of a folder its names
//	power cut  keeps what is safe; of the rest it keeps what it likes: bytes
//	           are lost, half written or zeros, names are there or not,
//	           each folder for itself
//
// That is harder than any disk which people have: git, for one, never syncs a
// folder. What survives here survives everywhere.
//
// The disk is served to the kernel by a process of its own ([Main]), since a
// program that serves the folder in which it starts a child waits for itself.
// [Start] is the other end. The server ends, and its folder is unmounted, when
// its standard input does: whoever dies leaves nothing behind.
//
// It is used by tests only, on Linux, by root, where /dev/fuse is.
package powercut
