package shell

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/creack/pty"

	"github.com/pawl-dev/pawl/internal/do/process"
)

// open starts a server whose terminals run a script.
func open(t *testing.T, script string) (*Server, string) {
	t.Helper()
	ours, theirs, err := pty.Open()
	if err != nil {
		t.Skipf("this machine gives no terminals: %v", err)
	}
	_, _ = ours.Close(), theirs.Close()
	s := New(func(task string) (process.Command, error) {
		env := []string{"PATH=" + os.Getenv("PATH"), "TASK=" + task}
		return process.Command{Args: []string{"sh", "-c", script}, Env: env}, nil
	})
	t.Cleanup(s.Close)
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	return s, web.URL
}

// page is a browser's end of a terminal.
type page struct {
	t    *testing.T
	conn *websocket.Conn
	said string
	drew int64
}

func connect(t *testing.T, s *Server, url string) *page {
	t.Helper()
	pass, err := s.Ticket("task-007")
	if err != nil {
		t.Fatal(err)
	}
	conn, _, err := websocket.Dial(t.Context(), url+"?ticket="+pass, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.CloseNow() })
	return &page{t: t, conn: conn}
}

// until reads, and says what it has drawn, until text was printed.
func (p *page) until(text string) {
	p.t.Helper()
	for !strings.Contains(p.said, text) {
		_, data, err := p.conn.Read(p.t.Context())
		if err != nil {
			p.t.Fatalf("%v after %q, want %q", err, p.said, text)
		}
		p.said += string(data)
		p.drew += int64(len(data))
		p.say(word{Seen: p.drew})
	}
}

func (p *page) say(w word) {
	p.t.Helper()
	data, _ := json.Marshal(w)
	if err := p.conn.Write(p.t.Context(), websocket.MessageText, data); err != nil {
		p.t.Fatal(err)
	}
}

func (p *page) keys(text string) {
	p.t.Helper()
	if err := p.conn.Write(p.t.Context(), websocket.MessageBinary, []byte(text)); err != nil {
		p.t.Fatal(err)
	}
}

// ended draws all to the end, and returns the reason. The end of a command comes after all that it printed.
func (p *page) ended() (e websocket.CloseError) {
	for {
		_, data, err := p.conn.Read(p.t.Context())
		if err != nil {
			_ = errors.As(err, &e) // a connection that was cut has no reason
			return e
		}
		p.drew += int64(len(data))
		seen, _ := json.Marshal(word{Seen: p.drew})
		_ = p.conn.Write(p.t.Context(), websocket.MessageText, seen) // the other side may have ended meanwhile
	}
}

// TestShell: keys, a new size, and how it ended.
func TestShell(t *testing.T) {
	t.Parallel()
	s, url := open(t, `trap 'stty size; echo resized' WINCH; echo "ready $TASK"
		while :; do read -r word && break; done; echo "word: $word"; exit 7`)
	p := connect(t, s, url)
	p.until("ready task-007")
	p.say(word{Columns: 77, Rows: 33})
	p.until("33 77")
	p.until("resized")
	p.keys("hello\r")
	p.until("word: hello")
	if e := p.ended(); e.Code != websocket.StatusNormalClosure || e.Reason != "ended with status 7" {
		t.Errorf("it ended with %+v", e)
	}
}

// TestTickets: who has none, or one that was used, gets nothing; nor does another site.
func TestTickets(t *testing.T) {
	t.Parallel()
	s, url := open(t, `echo ready; read -r word`)
	pass, err := s.Ticket("task-007")
	if err != nil {
		t.Fatal(err)
	}
	dial := func(ticket, origin string) int {
		from := &websocket.DialOptions{HTTPHeader: http.Header{"Origin": {origin}}}
		_, res, err := websocket.Dial(t.Context(), url+"?ticket="+ticket, from)
		if err == nil {
			t.Errorf("a terminal is open with %q from %q", ticket, origin)
		}
		return res.StatusCode
	}
	if status := dial("", url); status != http.StatusForbidden {
		t.Errorf("without a ticket: %d", status)
	}
	if status := dial(pass, "http://attacker.example"); status != http.StatusForbidden {
		t.Errorf("from another site: %d", status)
	}
	if status := dial(pass, url); status != http.StatusForbidden {
		t.Errorf("with a ticket that another one has used: %d", status)
	}
	if s.open != 0 {
		t.Errorf("%d are open", s.open)
	}
}

// TestMost: there is a limit, and a place is free again when one has ended.
func TestMost(t *testing.T) {
	t.Parallel()
	s, url := open(t, `echo ready; read -r word`)
	var pages []*page
	for range maxOpen {
		p := connect(t, s, url)
		p.until("ready")
		pages = append(pages, p)
	}
	if _, err := s.Ticket("task-007"); err == nil {
		t.Error("there is a ticket for one too many")
	}
	pages[0].keys("bye\r")
	pages[0].ended()
	s.Close() // waits for all
	if s.open != 0 {
		t.Errorf("%d are open after the end", s.open)
	}
}

// TestGone: a page that goes, a server that ends, and one who only looks on end what runs.
func TestGone(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*Server, *page) string{
		"the page goes": func(_ *Server, p *page) string { _ = p.conn.CloseNow(); return "" },
		"the server ends": func(s *Server, p *page) string {
			go s.Close()
			return p.ended().Reason
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "pid")
			s, url := open(t, `echo $$ >`+file+`; echo ready; exec sleep 1000`)
			p := connect(t, s, url)
			p.until("ready")
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			pid, _ := strconv.Atoi(strings.TrimSpace(string(data)))
			if why := end(s, p); why != "" && why != errClosed.Error() {
				t.Errorf("the page hears %q", why)
			}
			s.left.Wait()
			if err := syscall.Kill(pid, 0); err == nil {
				t.Error("the command runs on")
			}
		})
	}
}

// TestIdle: a terminal that nobody uses ends.
func TestIdle(t *testing.T) {
	t.Parallel()
	s, url := open(t, `exec sleep 1000`)
	s.idle = time.Millisecond
	if e := connect(t, s, url).ended(); e.Reason != errIdle.Error() {
		t.Errorf("it ended with %+v", e)
	}
}

// TestFlood: a page that draws slowly gets no more than it can hold, and one that draws all
// gets all. A person is heard meanwhile.
func TestFlood(t *testing.T) {
	t.Parallel()
	s, url := open(t, `stty -echo; echo ready; read -r word; yes "$word"`)
	p := connect(t, s, url)
	p.until("ready")
	p.say(word{Seen: p.drew})
	p.keys("flood\r")
	// It prints as much as it may without a word of the page, and not more.
	var got int64
	for got <= window {
		_, data, err := p.conn.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got += int64(len(data))
	}
	if got > window+piece+p.drew {
		t.Errorf("%d bytes came to a page that draws none", got)
	}
	p.drew += got
	p.say(word{Seen: p.drew})
	p.until(strings.Repeat("flood\r\n", 100))
	p.keys("\x03")
	if e := p.ended(); !strings.HasPrefix(e.Reason, "ended with status") {
		t.Errorf("it ended with %+v", e)
	}
}

// TestRubbish: what a page may not say ends its terminal only.
func TestRubbish(t *testing.T) {
	t.Parallel()
	s, url := open(t, `echo ready; exec sleep 1000`)
	for name, send := range map[string]func(*page) error{
		"no JSON": func(p *page) error { return p.conn.Write(p.t.Context(), websocket.MessageText, []byte("{")) },
		"too long": func(p *page) error {
			return p.conn.Write(p.t.Context(), websocket.MessageBinary, make([]byte, maxMessage+1))
		},
		"more than is read": func(p *page) (err error) {
			for i := 0; i < 100*maxTyped && err == nil; i++ {
				err = p.conn.Write(p.t.Context(), websocket.MessageBinary, make([]byte, 1<<10))
			}
			return nil
		},
	} {
		p := connect(t, s, url)
		p.until("ready")
		if err := send(p); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		p.ended()
	}
	connect(t, s, url).until("ready")
}
