package command

import "testing"

// No program that pawl starts outside of a box is led to what an agent may have written.
func TestVariablesThatLeadIntoATree(t *testing.T) {
	t.Parallel()
	for kv, want := range map[string]bool{
		"PYTHONPATH=/home/ann/tree": true, "PYTHONPATH=/usr/lib:/home/ann/tree/lib": true, "PERL5OPT=-I/home/ann/tree/lib": true, "LUA_PATH=/usr/?.lua;/home/ann/tree/?.lua;;": true,
		"NODE_OPTIONS=--import file:///home/ann/tree/x.mjs": true, "GIT_SSH_COMMAND=sh '/home/ann/tree/ssh.sh' -v": true, "GIT_CONFIG_VALUE_0=!/home/ann/tree/x": true,
		"BASH_ENV=./env": true, "NODE_PATH=../lib": true,
		"PYTHONPATH=/home/ann/tree2": false, "PYTHONPATH=/home/ann/tree-2/lib": false, "EDITOR=vi": false, "HOME=/home/ann/tree": false, "PROJECT=/home/ann/tree": false, "PROJECT=/home/ann/tree/": false, "PWD=/home/ann/tree": false,
	} {
		if got := leadsInto(kv, []string{"/", "/home/ann/tree/"}); got != want {
			t.Errorf("%s: %v", kv, got)
		}
	}
}
