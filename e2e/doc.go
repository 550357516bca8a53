// Package e2e drives real agent programs against pawl's own model server: the
// pinned program of scripts/install-claude, an empty home, a key that is
// none, and nothing but loopback. It never talks to a real model, and is
// built with the tag e2e only:
//
//	go test -tags e2e ./e2e
//
// Where the program cannot be installed the tests are skipped, and say why.
package e2e
