//go:build e2e && e2e_record

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/test/modelserver"
)

// takes are what is recorded of each program: what the model answers, in turn.
func takes(p program, dir string) map[string][]modelserver.Reply {
	work := modelserver.Reply{Text: "I write the file.", Tools: []modelserver.Tool{p.write(filepath.Join(dir, "hello.txt"), "hello\n")}, Usage: modelserver.Usage{Input: 1200, Output: 40, CacheRead: 300}}
	fails := modelserver.Reply{Text: "I look.", Tools: []modelserver.Tool{p.shell("cat missing.txt")}}
	end := modelserver.Reply{Text: complete, Usage: modelserver.Usage{Input: 1300, Output: 20}}
	return map[string][]modelserver.Reply{
		"tool":         {work, end},
		"tool-fails":   {fails, end},
		"plain":        {end},
		"empty":        {{Text: ""}},
		"limited-once": {p.limited, work, end},
		"limited":      {p.limited},
		"bad-key":      {p.badKey},
		"overloaded":   {p.overloaded},
		"context":      {p.tooLong},
		"cut":          {{Text: "this stream breaks", Cut: 1}, work, end},
	}
}

// TestRecord is no test of pawl: it drives the program PAWL_RECORD through
// every take and writes what it printed, and what pawl reads in it, to
// PAWL_RECORD_DIR. scripts/record-agent compares two versions so.
func TestRecord(t *testing.T) {
	name, dir := os.Getenv("PAWL_RECORD"), os.Getenv("PAWL_RECORD_DIR")
	i := slices.IndexFunc(programs, func(p program) bool { return p.name == name })
	if i < 0 || dir == "" {
		t.Fatalf("PAWL_RECORD is %q and PAWL_RECORD_DIR %q: name a program and a folder", name, dir)
	}
	p := programs[i]
	for take := range takes(p, "") {
		t.Run(take, func(t *testing.T) {
			t.Parallel()
			work := t.TempDir()
			server := serve(t, modelserver.Scenario{Asides: take != "context", Replies: takes(p, work)[take]})
			var raw bytes.Buffer
			got, code, stderr := session{program: p, dir: work, server: server, raw: &raw}.run(t)
			plain := func(s string) string { return steady(s, server.URL(), os.Getenv("TMPDIR")) }
			keep(t, filepath.Join(dir, take+".out"), raw.String())
			keep(t, filepath.Join(dir, take+".err"), stderr)
			keep(t, filepath.Join(dir, take+".events"), shapes(raw.Bytes()))
			keep(t, filepath.Join(dir, take+".reading"), plain(reading(t, got, code, len(server.Calls()))))
		})
	}
}

// reading is what pawl makes of a run, as lines that can be compared.
func reading(t *testing.T, o agent.Outcome, code, calls int) string {
	t.Helper()
	o.Session = map[bool]string{true: "some"}[o.Session != ""]
	b, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("exit %d, %d requests to the model\n%s\n", code, calls, b)
}

var changing = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+(Z|[+-]\d\d:\d\d)?|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}|\b[0-9]{9,}\b|(req|msg|resp|ses|call)_[A-Za-z0-9]+`)

// steady takes out what differs from run to run.
func steady(s, url, tmp string) string {
	s = strings.ReplaceAll(s, url, "URL")
	if tmp != "" {
		s = regexp.MustCompile(regexp.QuoteMeta(tmp)+`[^\s"']*`).ReplaceAllString(s, "PATH")
	}
	return changing.ReplaceAllString(s, "VARIES")
}

// shapes lists the kinds of events in a stream with the paths of their
// fields, each once: what is new or gone in a version shows as a line.
func shapes(stream []byte) string {
	seen := map[string]bool{}
	for line := range bytes.Lines(stream) {
		var event map[string]any
		if json.Unmarshal(line, &event) != nil {
			seen["(no JSON)"] = true
			continue
		}
		kind := ""
		for _, key := range []string{"type", "subtype", "event"} {
			if v, ok := event[key].(string); ok {
				kind += " " + v
			}
		}
		fields(strings.TrimSpace(kind)+": ", event, 0, seen)
	}
	all := make([]string, 0, len(seen))
	for s := range seen {
		all = append(all, s)
	}
	slices.Sort(all)
	return strings.Join(all, "\n") + "\n"
}

// maxDepth keeps the inputs of tools and the like out of the list.
const maxDepth = 3

func fields(path string, v any, depth int, seen map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		if depth == maxDepth {
			seen[path+" {…}"] = true
			return
		}
		for key, value := range v {
			fields(path+"."+key, value, depth+1, seen)
		}
	case []any:
		for _, value := range v {
			fields(path+"[]", value, depth, seen)
		}
	default:
		seen[fmt.Sprintf("%s %T", path, v)] = true
	}
}
