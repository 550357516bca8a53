// Package e2e drives real agent programs against pawl's own model server: the
// pinned programs of scripts/install-agent, an empty home, a key that is
// none, and nothing but loopback. It never talks to a real model, and is
// built with the tag e2e only, and with e2e_all for every scenario:
//
//	go test -tags e2e ./e2e
//	go test -tags e2e,e2e_all ./e2e
//
// Where a program cannot be installed its tests are skipped, and say why.
package e2e
