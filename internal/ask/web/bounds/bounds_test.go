package bounds

import (
	"errors"
	"io"
	"net"
	"testing"
)

// Where there are more connections than allowed the one goes that asked nothing for
// the longest time; none that is being answered.
func TestConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	inner, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := New(inner, 3)
	dial := func() net.Conn {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	var theirs []net.Conn
	var ours []*counted
	accept := func() {
		theirs = append(theirs, dial())
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		ours = append(ours, c.(*counted))
	}
	gone := func(c net.Conn) bool {
		_, err := c.Read(make([]byte, 1))
		return errors.Is(err, io.EOF)
	}
	for range 3 {
		accept()
	}
	ours[0].countRequest(1)
	accept()
	if !gone(theirs[1]) {
		t.Error("the second one, which is quiet the longest, is still open")
	}
	ours[0].countRequest(-1) // now the third is
	accept()
	if !gone(theirs[2]) {
		t.Error("the third one is still open")
	}
	for _, i := range []int{0, 3, 4} {
		ours[i].countRequest(1)
	}
	refused, ended := dial(), make(chan error, 1)
	go func() { _, err := l.Accept(); ended <- err }()
	if !gone(refused) {
		t.Error("one too many was accepted while all were answered")
	}
	_ = ours[0].Close()
	_ = ours[0].Close() // counts once
	accepted := dial()
	if err := <-ended; err != nil || len(l.open) != 3 {
		t.Errorf("after one was closed: %v, %d are open", err, len(l.open))
	}
	_ = l.Close()
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
	_ = accepted.Close()
}
