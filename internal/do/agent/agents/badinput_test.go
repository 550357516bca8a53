package agents

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/test/reading"
)

// structured are the formats with lines of JSON and an end of their own.
func structured() []string {
	var names []string
	for _, name := range sampled() {
		if name != "text" {
			names = append(names, name)
		}
	}
	return names
}

// long is a line of 300 kB in the middle of a stream: a tool's output.
func long(t *testing.T, name string) string {
	t.Helper()
	for _, l := range reading.Stream(name) {
		if len(l) > 20_000 {
			return strings.Replace(string(l), "line of code", "line of code"+strings.Repeat("x", 300_000), 1)
		}
	}
	return strings.Repeat("x", 300_000)
}

// Whatever happens to a stream on the way, each format reads what is whole,
// keeps what is not, and ends as the stream did.
func TestBadInput(t *testing.T) {
	t.Parallel()
	for _, name := range structured() {
		stream := samples[name]
		whole := strings.Join(stream, "\n")
		good := collect(t, name, []byte(whole))
		last := stream[len(stream)-1]
		for _, test := range []struct {
			name    string
			stream  string
			unknown int // more than the whole stream has
			cut     bool
		}{
			{"with a newline at its end", whole + "\n", 0, false},
			{"with CR LF", strings.ReplaceAll(whole, "\n", "\r\n"), 0, false},
			{"with blank lines", strings.ReplaceAll(whole, "\n", "\n\n \n"), len(stream) - 1, false},
			{"with a line of 300 kB", strings.Join([]string{stream[0], long(t, name), strings.Join(stream[1:], "\n")}, "\n"), 0, false},
			{"with a line over the cap", stream[0] + "\n" + `{"type":"novelty","x":"` + strings.Repeat("y", agent.LineCap) + `"}` + "\n" + strings.Join(stream[1:], "\n"), 1, false},
			{"between words of another program", "npm warn deprecated\n" + strings.Join(stream, "\nWarning: noise\n"), len(stream), false},
			{"with NUL bytes", "\x00\x00\n" + whole + "\n\x00", 2, false},
			{"with bytes that are no UTF-8", "\xff\xfe{}\n" + whole, 1, false},
			{"with deep nesting", strings.Repeat(`{"a":[`, 50_000) + "\n" + whole, 1, false},
			{"with an event of an unknown type", `{"type":"novelty_of_2027","data":{"x":[1]}}` + "\n" + whole, 1, false},
			{"with JSON that is no object", "[1,2]\n\"x\"\n17\nnull\n" + whole, 4, false},
			{"with its end twice", whole + "\n" + last, 0, false},
			{"without its end", strings.Join(stream[:len(stream)-1], "\n"), 0, true},
			{"cut off in its end", whole[:len(whole)-len(last)/2], 1, true},
		} {
			t.Run(name+"/"+test.name, func(t *testing.T) {
				t.Parallel()
				got := collect(t, name, []byte(test.stream))
				if got.Unknown != good.Unknown+test.unknown {
					t.Errorf("%d unknown events, want %d", got.Unknown, good.Unknown+test.unknown)
				}
				if test.cut {
					if got.Terminal == ok {
						t.Errorf("a stream without its end is a success: %+v", got)
					}
					return
				}
				if got.Terminal != good.Terminal || got.Message != good.Message || got.Usage != good.Usage || got.Cost != good.Cost {
					t.Errorf("read as %+v, want %+v", got, good)
				}
			})
		}
	}
}

// Numbers that cannot be are none: a total never falls, and is never absurd.
func TestAbsurdNumbersInAnyFormat(t *testing.T) {
	t.Parallel()
	for _, name := range structured() {
		stream := strings.Join(samples[name], "\n")
		good := collect(t, name, []byte(stream))
		for _, n := range []string{"-1", "-9223372036854775808", "9223372036854775808", "1e300", "-1e300", "1e-300", "NaN", "Infinity", "null", `"5"`, "true", "[]", "{}", "0x10", "1.7e308"} {
			bad := collect(t, name, []byte(digits(stream, n)))
			if u := bad.Usage; u.Input < 0 || u.Output < 0 || u.CacheRead < 0 || u.CacheWrite < 0 || bad.Cost < 0 || bad.Calls < 0 || bad.Turns < 0 ||
				u.Input+u.Output > 2_000_000_000_000 || bad.Cost > 1_000_000_000_000 {
				t.Errorf("%s with %s: %+v", name, n, bad)
			}
			both := collect(t, name, []byte(stream+"\n"+digits(samples[name][len(samples[name])-1], n)))
			if both.Usage.Input < good.Usage.Input || both.Usage.Output < good.Usage.Output || both.Cost < good.Cost {
				t.Errorf("%s with %s at its end: %+v, before it %+v", name, n, both.Usage, good.Usage)
			}
		}
	}
}

// digits puts another value where a stream has a number.
func digits(stream, value string) string {
	var b strings.Builder
	for i := 0; i < len(stream); i++ {
		b.WriteByte(stream[i])
		if stream[i] != ':' || i+1 >= len(stream) || stream[i+1] < '0' || stream[i+1] > '9' {
			continue
		}
		b.WriteString(value)
		for i+1 < len(stream) && (stream[i+1] >= '0' && stream[i+1] <= '9' || stream[i+1] == '.') {
			i++
		}
	}
	return b.String()
}

// A stream arrives in pieces of any size and means the same.
func TestPieces(t *testing.T) {
	t.Parallel()
	for i, name := range sampled() {
		stream := []byte(strings.Join(samples[name], "\n"))
		want := fmt.Sprintf("%+v", collect(t, name, stream))
		random := rand.New(rand.NewPCG(1, uint64(i))) //nolint:gosec // the same pieces at each run
		p, err := Parser(name, ParserOptions{})
		if err != nil {
			t.Fatal(err)
		}
		c := agent.NewCollector()
		lines := agent.NewLines(0, func(b []byte, cut bool) { p.Line(b, cut, c.Add) })
		for rest := stream; len(rest) > 0; {
			n := min(1+random.IntN(7), len(rest))
			if _, err := lines.Write(bytes.Clone(rest[:n])); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		lines.Flush()
		p.Close(c.Add)
		if got := fmt.Sprintf("%+v", c.Outcome()); got != want {
			t.Errorf("%s: in pieces %s\nwhole %s", name, got, want)
		}
	}
}
