package terminal

import (
	"bufio"
	"os"
	"strings"
	"testing"

	"github.com/creack/pty"

	"github.com/pawl-dev/pawl/internal/process"
)

// TestRun: a person types at a command that has a terminal of its own, with job control.
func TestRun(t *testing.T) {
	person, screen, err := pty.Open()
	if err != nil {
		t.Skipf("this machine gives no terminals: %v", err)
	}
	defer func() { _, _ = person.Close(), screen.Close() }()
	if err := pty.Setsize(person, &pty.Winsize{Rows: 33, Cols: 77}); err != nil {
		t.Fatal(err)
	}
	lines := make(chan string)
	go func() {
		defer close(lines)
		for in := bufio.NewScanner(person); in.Scan(); {
			lines <- strings.TrimSuffix(in.Text(), "\r")
		}
	}()
	ended := make(chan int)
	go func() {
		status, err := Run(t.Context(), process.Command{
			Args: []string{"sh", "-c", `stty size; echo ready; read -r word; echo "word: $word"; : </dev/tty && exit 7`},
			Env:  []string{"PATH=" + os.Getenv("PATH")},
		}, nil, screen)
		if err != nil {
			t.Error(err)
		}
		ended <- status
	}()
	var said []string
	for line := range lines {
		said = append(said, line)
		switch line {
		case "ready":
			if _, err := person.WriteString("hello\n"); err != nil {
				t.Fatal(err)
			}
		case "word: hello":
			if status := <-ended; status != 7 {
				t.Errorf("it ended with %d, not 7", status)
			}
			if said[0] != "33 77" {
				t.Errorf("the size of its terminal is %q", said[0])
			}
			return
		}
	}
	t.Errorf("it said %q", said)
}
