package agent

import (
	"slices"
	"testing"
)

func TestInvocation(t *testing.T) {
	t.Parallel()
	if got := (Invocation{}).Program("x"); !slices.Equal(got, []string{"x"}) {
		t.Errorf("program is %q", got)
	}
	own := []string{"/opt/x", "-v"}
	got := Invocation{Command: own}.Program("x")
	_ = append(got[:1], "changed")
	if !slices.Equal(own, []string{"/opt/x", "-v"}) || got[0] != own[0] {
		t.Errorf("program is %q, the user's is %q", got, own)
	}
	home := func(name string) string { return map[string]string{"KEY": "k"}[name] }
	for _, test := range []struct {
		name   string
		env    []string
		getenv func(string) string
		want   bool
	}{
		{"nothing", nil, nil, false},
		{"inherited", nil, home, true},
		{"added", []string{"OTHER=1", "KEY=k"}, nil, true},
		{"taken away", []string{"KEY="}, home, false},
		{"the last counts", []string{"KEY=", "KEY=k"}, nil, true},
		{"another", []string{"KEYS=k"}, nil, false},
	} {
		if got := (Invocation{Env: test.env}).HasValue(test.getenv, "FIRST", "KEY"); got != test.want {
			t.Errorf("%s: %v", test.name, got)
		}
	}
}
