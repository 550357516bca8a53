package command

import "testing"

// No program that pawl starts outside of a box is led to what an agent may have written.
func TestVariablesThatLeadIntoATree(t *testing.T) {
	t.Parallel()
	for kv, want := range map[string]bool{
		"PYTHONPATH=/work/tree": true, "PYTHONPATH=/usr/lib:/work/tree/lib": true, "PERL5OPT=-I/work/tree/lib": true, "LUA_PATH=/usr/?.lua;/work/tree/?.lua;;": true,
		"NODE_OPTIONS=--import file:///work/tree/x.mjs": true, "GIT_SSH_COMMAND=sh '/work/tree/ssh.sh' -v": true, "GIT_CONFIG_VALUE_0=!/work/tree/x": true,
		"BASH_ENV=./env": true, "NODE_PATH=../lib": true,
		"PYTHONPATH=/work/tree2": false, "PYTHONPATH=/work/tree-2/lib": false, "EDITOR=vi": false, "HOME=/work/tree": false, "PWD=/work/tree": false,
	} {
		if got := leadsInto(kv, []string{"/", "/work/tree/"}); got != want {
			t.Errorf("%s: %v", kv, got)
		}
	}
}
