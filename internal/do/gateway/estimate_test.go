package gateway

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/test/modelserver"
)

// streaming runs a test for every kind of streamed call.
func streaming(t *testing.T, test func(t *testing.T, path, header, body string)) {
	t.Helper()
	each(t, func(t *testing.T, path, header, body string, stream bool) {
		if stream {
			test(t, path, header, body)
		}
	})
}

// An answer that breaks off is counted by what came of it, and by what the provider
// counted for the input of the last call.
func TestBrokenStreamIsCountedByWhatCame(t *testing.T) {
	t.Parallel()
	streaming(t, func(t *testing.T, path, header, body string) {
		text, cut := strings.Repeat("many words ", 100), 4
		if header == "X-Goog-Api-Key" {
			cut = 2
		}
		used := modelserver.Usage{Input: 1000, Output: 10, CacheRead: 9000}
		r := with(t, modelserver.Scenario{Replies: []modelserver.Reply{
			{Text: "good", Usage: used}, {Text: text, Usage: used, Cut: cut}, {Text: text, Usage: used, Cut: 1},
		}}, nil)
		body = strings.Replace(body, "hello", strings.Repeat("hello ", 10_000), 1)
		for range 3 {
			_, _, _ = r.post(path, header, body)
		}
		out := r.outcome()
		if u := out.Usage; out.Calls != 3 || u.Input != 3000 || u.CacheRead != 27_000 || u.Output < 10+int64(len(text))/8 || u.Output > 10+int64(len(text))/2 {
			t.Errorf("%d calls used %+v", out.Calls, u)
		}
	})
}

// Before the provider has counted anything, four characters are a token, and an image
// is what providers make of it.
func TestFirstBrokenStream(t *testing.T) {
	t.Parallel()
	image := `iVBORw0KGgo` + strings.Repeat("Abc/", 250_000)
	for name, test := range map[string]struct {
		content   string
		from, to_ int64
	}{
		"text":         {`"` + strings.Repeat("hello ", 2_000) + `"`, 3_000, 3_100},
		"an image":     {`[{"type":"image_url","image_url":{"url":"data:image/png;base64,` + image + `"}}]`, 1_000, 2_500},
		"three images": {`["` + image + `","` + image + `","` + image + `"]`, 3_000, 6_000},
		"broken off":   {`"/9j/`, 0, 100},
	} {
		r := with(t, modelserver.Scenario{Replies: []modelserver.Reply{{Text: "this breaks", Cut: 1}}}, nil)
		_, _, _ = r.post("/openai/chat/completions", "Authorization", `{"model":"m","stream":true,"messages":[{"role":"user","content":`+test.content+`}]}`)
		if u := r.outcome().Usage; u.Input < test.from || u.Input > test.to_ {
			t.Errorf("%s: it counts as %+v", name, u)
		}
	}
}

// A server that says things whole, and not in pieces, is counted too, and has answered.
func TestItemsWithoutPieces(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("word", 100)
	for name, test := range map[string]struct {
		end    string
		output int64
		flaw   string
	}{
		"broken off": {"", 100, BrokenStream},
		"ended":      {`{"type":"response.completed","response":{"usage":{"input_tokens":5,"output_tokens":90}}}`, 90, ""},
	} {
		url := provider(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for _, e := range []string{
				`{"type":"response.output_item.done","item":{"type":"message","content":[{"type":"output_text","text":"` + text + `"}]}}`, test.end,
			} {
				_, _ = fmt.Fprintf(w, "data: %s\n\n", e)
			}
		})
		r := before(t, url.URL, nil)
		_, _, _ = r.post(kinds[2].path, kinds[2].header, kinds[2].stream)
		flaw := ""
		if f := r.gateway.Flaw(); f != nil {
			flaw = f.Type
		}
		if u := r.outcome().Usage; u.Output != test.output || flaw != test.flaw {
			t.Errorf("%s: it counts as %+v, with the flaw %q", name, u, flaw)
		}
	}
}

// A provider that says again and again what was used so far has said all of it only at
// the end.
func TestUsageWhileItStreams(t *testing.T) {
	t.Parallel()
	url := provider(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range []string{
			`{"choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":70,"completion_tokens":1}}`,
			`{"choices":[{"delta":{"content":"` + strings.Repeat("word", 50) + `"}}]}`,
		} {
			_, _ = fmt.Fprintf(w, "data: %s\n\n", e)
		}
	})
	r := before(t, url.URL, nil)
	_, _, _ = r.post(kinds[1].path, kinds[1].header, kinds[1].stream)
	if u := r.outcome().Usage; u.Input != 70 || u.Output != 51 {
		t.Errorf("it counts as %+v", u)
	}
}

// What a provider has not counted is estimated: the input as a whole, and four bytes of
// what was said for a token, the last one begun. What it counted is no less.
func TestEstimated(t *testing.T) {
	t.Parallel()
	input := usage{Usage: agent.Usage{Input: 100, CacheRead: 900}}
	counted := usage{Usage: agent.Usage{Input: 70, Output: 3}}
	for _, c := range []struct {
		r    reading
		want agent.Usage
	}{
		{reading{}, agent.Usage{Input: 100, CacheRead: 900}},
		{reading{said: 1}, agent.Usage{Input: 100, CacheRead: 900, Output: 1}},
		{reading{said: 4}, agent.Usage{Input: 100, CacheRead: 900, Output: 1}},
		{reading{said: 5}, agent.Usage{Input: 100, CacheRead: 900, Output: 2}},
		{reading{said: 5, usage: counted}, agent.Usage{Input: 70, Output: 3}},
		{reading{said: 40, usage: counted}, agent.Usage{Input: 70, Output: 10}},
		{reading{said: 40, usage: counted, final: true}, agent.Usage{Input: 70, Output: 3}},
		{reading{said: 40, page: true}, agent.Usage{}},
		{reading{usage: usage{Usage: agent.Usage{CacheRead: 5}}}, agent.Usage{CacheRead: 5}},
		{reading{usage: usage{Usage: agent.Usage{Input: 1, CacheWrite: 5}}}, agent.Usage{Input: 1, CacheWrite: 5}},
	} {
		if got := c.r.estimatedUsage(input).Usage; got != c.want {
			t.Errorf("%d bytes, with %+v counted, are estimated as %+v, want %+v", c.r.said, c.r.usage.Usage, got, c.want)
		}
	}
}
