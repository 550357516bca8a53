// Package workspace knows the files that agents work in, in a user's own checkout or in a
// clone of it: a snapshot of the whole tree after every iteration, the difference between
// two, and a way back to each of them.
//
// A snapshot is a commit under refs/pawl/runs/<run>/ in a repository of pawl's own, which
// borrows the user's objects. Its tree is every file of the work tree, byte for byte, with
// execute bits and symbolic links. It is made through a private index, so it works during
// a merge and while the user's index is locked. Its parent is the commit that was checked
// out; it never has another snapshot as a parent, so that one can be dropped alone.
//
// The whole work tree is covered, also when the root of pawl is a folder in it: an agent
// may edit a sibling package, and a way back that leaves half of it is none.
//
// What is not in a snapshot:
//
//   - .pawl folders;
//   - a file that git does not track and that the ignore rules of the run's
//     start or of now ignore. The rules of the start are kept beside the
//     private index, so an agent that takes a line out of .gitignore brings
//     nothing in. A file that was tracked when the run started counts as
//     tracked for the whole run;
//   - nested repositories, submodules, files over a limit, devices and files
//     that cannot be read. They are left alone, listed in [Snapshot.Skipped],
//     and a way back passes them over;
//   - what a sparse checkout leaves out.
//
// [Checkout.Mirror] brings these into a clone, as the user has them.
//
// The .git of a clone is an agent's. No git obeys it: HEAD and objects are read as data,
// and each object is checked as it is taken over. When it cannot be read, what is checked
// out is what was read last, and [Checkout.Broken] says why.
//
// [Checkout.Carry] changes a path only if what is there is what its change begins with, so
// what is in no snapshot is never lost. [Checkout.Rewind] changes only paths that differ
// between the snapshot of now and the wanted one, and then what is checked out in the
// clone. Each step is safe to repeat, so a rewind that was killed is finished by running it again.
//
// The package never commits on a branch, never touches the stash, the index or a branch of
// the user's, never deletes an ignored file of the user's, and never writes through a
// symbolic link.
package workspace
