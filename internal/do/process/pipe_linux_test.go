package process

import (
	"os"
	"os/exec"
	"testing"
)

// What a child starts writes nothing in the child's name.
func TestNobodyOpensAChannel(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(int) (*os.File, *os.File, error)
		want string
	}{{"pipe", Pipe, "own\nforged\n"}, {"channel", Channel, "own\n"}} {
		r, w, err := c.make(1 << 16)
		if err != nil {
			t.Fatal(err)
		}
		const forge = `echo own; bash -c "echo forged >/proc/$$/fd/1" >&2; true`
		cmd := exec.Command("bash", "-c", forge)
		cmd.Stdout = w
		err = cmd.Run()
		_ = w.Close()
		var got []byte
		Drain(r, make([]byte, 4096), func(part []byte) { got = append(got, part...) })
		_ = r.Close()
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %q, %v, want %q", c.name, got, err, c.want)
		}
	}
}
