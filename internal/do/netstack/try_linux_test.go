package netstack

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/do/sandbox"
)

// The test binary is the hidden command, and what works in a box.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && os.Args[1] == sandbox.Command:
		os.Exit(sandbox.Main(os.Stderr))
	case len(os.Args) > 2 && os.Args[1] == machineCommand:
		beMachine(os.Args[2])
		os.Exit(0)
	case len(os.Args) > 2 && os.Args[1] == tryCommand:
		fmt.Println(answerOf(tries[os.Args[2]](os.Args[3:])))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const tryCommand = "__try"

func answerOf(said string, err error) string {
	var d *net.DNSError
	switch {
	case err == nil:
		return said
	case errors.As(err, &d):
		return "not found: " + d.Err
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refused"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "unreachable"
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "no answer"
	}
	return err.Error()
}

// tries are what a program does with a network. Each says what came of it.
var tries = map[string]func(a []string) (string, error){
	"ask": func(a []string) (string, error) { return askAt(a[0], a[1], "hello") },
	"download": func(a []string) (string, error) {
		c, err := net.Dial("tcp", a[0])
		if err != nil {
			return "", err
		}
		sum := newSum()
		n, err := io.Copy(sum, c)
		return fmt.Sprintf("%d %x", n, sum.Sum(nil)), err
	},
	"upload": func(a []string) (string, error) {
		n, _ := strconv.ParseInt(a[1], 10, 64)
		c, err := net.Dial("tcp", a[0])
		if err != nil {
			return "", err
		}
		if _, err := io.Copy(c, pattern(n)); err != nil {
			return "", err
		}
		_ = c.(*net.TCPConn).CloseWrite() // the other end answers when it has all
		sum, err := io.ReadAll(c)
		return string(sum), err
	},
	"many": func(a []string) (string, error) {
		n, _ := strconv.Atoi(a[1])
		var all sync.WaitGroup
		failed := make([]error, n)
		for i := range n {
			all.Go(func() {
				text := fmt.Sprintf("number %d", i)
				got, err := askAt("tcp", a[0], text)
				if failed[i] = err; err == nil && got != text {
					failed[i] = fmt.Errorf("got %q for %q", got, text)
				}
			})
		}
		all.Wait()
		return "all", errors.Join(failed...)
	},
	"look up": func(a []string) (string, error) {
		found, err := (&net.Resolver{PreferGo: true}).LookupHost(context.Background(), a[0])
		return strings.Join(found, " "), err
	},
	"serve": func(a []string) (string, error) {
		l, err := net.Listen("tcp", a[0])
		if err != nil {
			return "", err
		}
		fmt.Println("serving")
		echoAll(l)
		return "", nil
	},
	"both": func(a []string) (string, error) { // a server, and who asks it
		l, err := net.Listen("tcp", a[0])
		if err != nil {
			return "", err
		}
		go echoAll(l)
		return askAt("tcp", l.Addr().String(), "own")
	},
	"namespace": func([]string) (string, error) { return os.Readlink("/proc/self/ns/net") },
}

func echoAll(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			_, _ = io.Copy(c, c)
			_ = c.Close()
		}()
	}
}

// askAt says a text to a server that says it again.
func askAt(network, address, text string) (string, error) {
	c, err := net.DialTimeout(network, address, 10*time.Second)
	if err != nil {
		return "", err
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := c.Write([]byte(text)); err != nil {
		return "", err
	}
	buf := make([]byte, len(text))
	_, err = io.ReadFull(c, buf)
	return string(buf), err
}

// pattern is bytes that look like no others.
func pattern(n int64) io.Reader { return io.LimitReader(rand.NewChaCha8([32]byte{1}), n) }

// sumOf what a pattern has.
func sumOf(n int64) string {
	sum := newSum()
	_, _ = io.Copy(sum, pattern(n))
	return fmt.Sprintf("%x", sum.Sum(nil))
}

func newSum() hash.Hash { return sha256.New() }
