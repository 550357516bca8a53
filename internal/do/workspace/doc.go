// Package workspace is the folder that agents work in: here the user's own
// checkout, with a snapshot of the whole tree after every iteration and a way
// back to each of them.
//
// A snapshot is a commit under refs/pawl/runs/<run>/ whose tree is every file
// of the work tree, byte for byte, with execute bits and symbolic links. It is
// made through a private index, so it works during a merge and while the
// user's index is locked. Its parent is the commit that was checked out; it
// never has another snapshot as a parent, so that one can be dropped alone.
//
// The whole work tree is covered, also when the root of pawl is a folder in
// it: an agent may edit a sibling package, and an undo that leaves half of it
// is none.
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
//     and a rollback passes them over.
//   - what a sparse checkout leaves out.
//
// A rollback changes only paths that differ between the snapshot of now and
// the wanted one, and each only if its content on disk is what the snapshot of
// now has: what is in no snapshot is never lost. Before it, everything is kept
// under refs/pawl/recovery/<run>/: the tree, HEAD as first parent, and a
// commit with the user's index as second parent (the file itself as "index",
// and its entries by stage, so that no staged object can be collected).
//
// The branch goes back only if it is still checked out and every commit that
// goes was made during the run; otherwise only files change, and a note says
// why. The user's index follows a branch that is moved, as in a checkout:
// staged work stays staged, and if it stands in the way, the index is left as
// it is. Without a moved branch it is never written. Files come first, then
// the index, then the branch; each step is safe to repeat, so a rollback that
// was killed is finished by running it again.
//
// The package never commits on a branch, never touches the stash, never
// deletes an ignored file, and never writes through a symbolic link.
package workspace
