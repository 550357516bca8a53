package agent

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestLines(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, in string
		limit    int
		want     []string // a cut line ends with "…"
	}{
		{"nothing", "", 10, nil},
		{"one", "a\n", 10, []string{"a"}},
		{"no newline at the end", "a\nb", 10, []string{"a", "b"}},
		{"empty lines", "\n\na\n\n", 10, []string{"", "", "a", ""}},
		{"crlf", "a\r\nb\r\n", 10, []string{"a", "b"}},
		{"cr inside stays", "a\rb\n", 10, []string{"a\rb"}},
		{"last cr", "a\r", 10, []string{"a"}},
		{"nul", "a\x00b\n", 10, []string{"a\x00b"}},
		{"at the cap", "12345\n", 5, []string{"12345"}},
		{"at the cap with crlf", "12345\r\n", 5, []string{"12345"}},
		{"over the cap", "123456\nx\n", 5, []string{"12345…", "x"}},
		{"far over the cap", strings.Repeat("y", 100) + "\nx", 5, []string{"yyyyy…", "x"}},
		{"over the cap without a newline", "123456789", 5, []string{"12345…"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			for chunk := 1; chunk <= len(test.in)+1; chunk++ {
				if got := split(test.in, test.limit, chunk); !slices.Equal(got, test.want) {
					t.Errorf("in chunks of %d: %q, want %q", chunk, got, test.want)
				}
			}
		})
	}
}

func split(in string, limit, chunk int) []string {
	var got []string
	l := NewLines(limit, func(b []byte, cut bool) {
		s := string(b)
		if cut {
			s += "…"
		}
		got = append(got, s)
	})
	for part := range slices.Chunk([]byte(in), chunk) {
		fmt.Fprintf(l, "%s", part)
	}
	l.Flush()
	return got
}

// A line of 200 MB costs the cap, and is given back after it.
func TestLinesMemory(t *testing.T) {
	t.Parallel()
	lengths := []int{}
	l := NewLines(1<<20, func(b []byte, cut bool) {
		if cut {
			lengths = append(lengths, len(b))
		}
	})
	chunk := bytes.Repeat([]byte("x"), 1<<20)
	for range 200 {
		if _, err := l.Write(chunk); err != nil {
			t.Fatal(err)
		}
		if cap(l.rest) > 3<<20 {
			t.Fatalf("the splitter holds %d bytes", cap(l.rest))
		}
	}
	if _, err := l.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(lengths, []int{1 << 20}) || l.rest != nil {
		t.Errorf("lines of %v bytes, %d held", lengths, cap(l.rest))
	}
}

func FuzzLines(f *testing.F) {
	f.Add([]byte("a\r\nbb\n\ncccccccccc\nd"), 4, 3)
	f.Add([]byte("\r\r\n\r"), 1, 1)
	f.Fuzz(func(t *testing.T, in []byte, limit, chunk int) {
		limit, chunk = 1+abs(limit)%64, 1+abs(chunk)%64
		got := split(string(in), limit, chunk)
		if whole := split(string(in), limit, len(in)+1); !slices.Equal(got, whole) {
			t.Fatalf("chunks change the lines: %q, %q", got, whole)
		}
		want := bytes.Split(in, []byte("\n"))
		if len(want[len(want)-1]) == 0 {
			want = want[:len(want)-1]
		}
		if len(got) != len(want) {
			t.Fatalf("%d lines, want %d", len(got), len(want))
		}
		for i, line := range want {
			head := strings.TrimSuffix(got[i], "…")
			if len(head) > limit || !bytes.HasPrefix(line, []byte(head)) {
				t.Fatalf("line %d is %q of %q", i, head, line)
			}
		}
	})
}

func abs(n int) int {
	if n < 0 {
		return -(n + 1)
	}
	return n
}

func BenchmarkLines(b *testing.B) {
	chunk := bytes.Repeat([]byte(strings.Repeat("x", 120)+"\n"), 500)
	l := NewLines(0, func([]byte, bool) {})
	b.SetBytes(int64(len(chunk)))
	for b.Loop() {
		if _, err := l.Write(chunk); err != nil {
			b.Fatal(err)
		}
	}
}
