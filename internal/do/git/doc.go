// Package git is the git command (2.38 or newer), typed. Package command runs it, for
// this room and those below it alone.
//
// Every call sets what git would otherwise take from its surroundings: hooks,
// the file-system monitor, external diff, text conversion and network
// transports are off, GIT_* variables of the caller are dropped except those
// that say where configuration is read, messages are in English, nothing asks
// on a terminal, and no lock is taken that a reader does not need. A call has
// its own process group, which ends with its context.
//
// Two git directories are in play:
//
//   - A [Repo] is the user's repository. It is asked for HEAD, refs, the list
//     of its index, its attributes and its configuration, and to move a ref.
//     Its work tree is never read or written through it.
//   - A [Shadow] is a git directory of pawl's own that borrows the object
//     store of a Repo. Files are read into its private indexes. It has its own
//     configuration and an info/attributes that switches every conversion
//     off: line endings, encodings, keyword expansion and clean and smudge
//     filters (LFS and the like). So what it stores is the bytes of the file,
//     what comes back is byte for byte the same, and no program that the
//     repository's own configuration names is ever run. The price is that a
//     file with a filter is stored as it is on disk, a large one in full.
//
// The files of a git directory are read by git alone, with one exception: the
// .git of a [Clone] is an agent's, so HEAD and refs are taken from it as data.
//
// Paths are bytes: they may hold spaces, newlines and text that is not UTF-8.
// Only [Clone] and package checkout write files of a work tree. Only [Repo.Fetch],
// [Repo.PushFrom] and [Repo.PushOwn] touch the network.
package git
