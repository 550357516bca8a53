package sandbox

import (
	"errors"
	"testing"

	"github.com/pawl-dev/pawl/internal/do/process"
)

func TestExplainStart(t *testing.T) {
	denied := &process.StartError{Code: 126, Message: "cannot start probe: /proc/self/exe is not executable (chmod +x?)"}
	if got, want := explainStart("probe", denied), "the kernel does not permit them here"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := explainStart("probe", errors.New("cannot start probe: no space")), "no space"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
