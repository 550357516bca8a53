package failure_test

import (
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/failure"
)

func gate(output, green string) failure.Analysis {
	return failure.Analyse(failure.Evidence{Source: "gate", Name: "check", ExitCode: 4, Output: output, Green: green})
}

const stackOfNode = `node:events:487
      throw er; // Unhandled 'error' event
      ^

Error: listen EADDRINUSE: address already in use :::4000
    at Server.setupListenHandle [as _listen2] (node:net:1940:16)
    at process.processTicksAndRejections (node:internal/process/task_queues:90:21) {
  code: 'EADDRINUSE',
  errno: -98,
  port: 4000
}

Node.js v24.15.0
`

// The headline of an output that no rule knows is the line that a person would
// pick: not a banner, progress, an echo, a frame or a field of an object.
func TestHeadlines(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, output, green, want string }{
		{"progress before it", "Building site…\nCopying assets (214 files)\nRendering 31 pages\n" +
			"quux: page \"about\" refers to layout \"wide\", which does not exist\n", "",
			`quux: page "about" refers to layout "wide", which does not exist`},
		{"steps", "==> Step 1/3: fetch schema\nschema has 12 tables\n==> Step 2/3: migrate\n" +
			"column \"foo\" does not exist\n==> failed after 2 steps\n", "", `column "foo" does not exist`},
		{"pip around the tool that it starts", "  error: subprocess-exited-with-error\n  \n  × pip subprocess to install build dependencies did not run successfully.\n" +
			"  │ exit code: 1\n  ╰─> [2 lines of output]\n      Looking in links: /opt/wheels\n      ERROR: No matching distribution found for hatch-vcs\n" +
			"      [end of output]\n  \n  note: This error originates from a subprocess, and is likely not a problem with pip.\nerror: subprocess-exited-with-error\n\n" +
			"× pip subprocess to install build dependencies did not run successfully.\n│ exit code: 1\n╰─> See above for output.\n\n" +
			"note: This error originates from a subprocess, and is likely not a problem with pip.\n", "",
			"ERROR: No matching distribution found for hatch-vcs"},
		{"an object behind a stack", stackOfNode, "", "address already in use :::4000"},
		{"the code of a module error", "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'yocto-queue' imported from /x/check.mjs\n" +
			"    at packageResolve (node:internal/modules/esm/resolve:768:81) {\n  code: 'ERR_MODULE_NOT_FOUND'\n}\n\nNode.js v24.15.0\n", "",
			"Cannot find package 'yocto-queue'"},
		{"echoes of npm and make", "> blog@1.0.0 check\n> node check.js\n\nsite check of blog, strict\n 31 pages\n" +
			"post 'hello' has no title\nmake: *** [Makefile:2: check] Error 4\n", "", "post 'hello' has no title"},
		{"what cargo says of itself", "     Running tests/cli.rs (target/debug/deps/cli-1)\n\nrunning 1 test\n" +
			"error: test failed, to rerun pass `--test cli`\n\nCaused by:\n" +
			"  process didn't exit successfully: `/w/cli-1` (signal: 11, SIGSEGV: invalid memory reference)\n", "",
			"process didn't exit successfully: `/w/cli-1` (signal: 11, SIGSEGV: invalid memory reference)"},
		{"curl's meter", "  % Total    % Received % Xferd  Average Speed   Time    Time     Time  Current\n" +
			"                                 Dload  Upload   Total   Spent    Left  Speed\n" +
			"  0     0    0     0    0     0      0      0 --:--:-- --:--:-- --:--:--     0\n" +
			"curl: (7) got nothing from the mirror\n", "", "curl: (7) got nothing from the mirror"},
		{"a log of JSON", `{"level":"info","msg":"loading 3 tenants"}` + "\n" +
			`{"level":"error","msg":"tenant 'acme' has no billing address","tenant":"acme"}` + "\n" +
			`{"level":"info","msg":"exiting"}` + "\n", "", "ERROR: tenant 'acme' has no billing address"},
		{"another language", "Prüfe Vorlagen ...\n  start.html ... ok\n  preise.html ... FEHLER: Platzhalter {{summe}} fehlt\n" +
			"1 von 2 Vorlagen fehlerhaft\n", "", "preise.html ... FEHLER: Platzhalter {{summe}} fehlt"},
		{"the end of a trace", "Traceback (most recent call last):\n  File \"/x/check.py\", line 12, in <module>\n    main()\n" +
			"  File \"/x/check.py\", line 7, in main\n    raise Odd(\"layout\")\n__main__.Odd: layout wide does not exist\n", "",
			"layout wide does not exist"},
		{"what is there when it is green", "probe: mirror error rate over the limit\nlayouts: 3\nabout wide\n",
			"probe: mirror error rate over the limit\nlayouts: 4\n", "about wide"},
		{"a newer npm", "\n> x@1.0.0 test\n> node check.js\n\nthe index is stale\nnpm notice\nnpm notice New minor version of npm available! 11.18.0 -> 11.21.2\n" +
			"npm notice To update run: npm install -g npm@11.21.2\nnpm notice\n", "", "the index is stale"},
		{"only a newer npm", "\n> test\n> test -f hello.txt\n\nnpm notice\nnpm notice New minor version of npm available! 11.18.0 -> 11.21.2\n" +
			"npm notice To update run: npm install -g npm@11.21.2\nnpm notice\n", "", "test -f hello.txt (exit status 4)"},
		{"a newer pip", "the index is stale\n[notice] A new release of pip is available: 24.0 -> 25.3\n[notice] To update, run: pip install --upgrade pip\n",
			"", "the index is stale"},
		{"a newer pnpm", "the index is stale\n   Update available! 9.1.0 → 10.2.0.\n", "", "the index is stale"},
		{"nothing but progress", "stage: plan ... done\nstage: apply ...\n", "", "stage: apply ..."},
	} {
		if a := gate(c.output, c.green); !strings.Contains(a.Summary, c.want) {
			t.Errorf("%s: %q, want %q", c.name, a.Summary, c.want)
		}
	}
}

// The same failure is one with the same telling lines; in doubt it is another.
func TestSameFailures(t *testing.T) {
	t.Parallel()
	const echo = "> blog@1.0.0 check\n> node check.js\n\n"
	for _, c := range []struct {
		name, one, other string
		same             bool
	}{
		{"behind the same banner", "site check of blog, strict\npost 'a' has no title\nmake: *** [Makefile:2: check] Error 4\n",
			"site check of blog, strict\npost 'b' has no date\nmake: *** [Makefile:2: check] Error 4\n", false},
		{"behind the same banner, without a word for it", "site check\nlayout wide\nmake: *** [Makefile:2: check] Error 4\n",
			"site check\nlayout narrow\nmake: *** [Makefile:2: check] Error 4\n", false},
		{"the same cause at the end", "error: a.md: bad link\nerror: check failed\n", "error: b.md: bad link\nerror: check failed\n", false},
		{"fewer of the same", "17 dead links\ncheck failed\n", "16 dead links\ncheck failed\n", false},
		{"fewer in all", "bad link\nproblems: 17\n", "bad link\nproblems: 16\n", false},
		{"the thirtieth of many", strings.Repeat("error: bad link\n", 30), strings.Repeat("error: bad link\n", 29), false},
		{"another first line", echo + "error: layout 'wide' is missing\n", "checking 31 pages\nerror: layout 'wide' is missing\n", true},
		{"another time and folder", "[10:11:12] Copying 17 files to /tmp/tmp.Xk3jQ9aa\nerror: layout 'wide' is missing in /tmp/tmp.Xk3jQ9aa/x (12 ms)\n",
			"[23:59:59] Copying 18 files to /tmp/tmp.9sKd02bb\nerror: layout 'wide' is missing in /tmp/tmp.9sKd02bb/x (3 ms)\n", true},
		{"another order", "error: a.md: bad link\nerror: b.md: no title\n", "error: b.md: no title\nerror: a.md: bad link\n", true},
		{"another error of the same test", "--- FAIL: TestA (0.00s)\n    a_test.go:3: no total\nFAIL\n",
			"--- FAIL: TestA (0.00s)\n    a_test.go:3: no tax\nFAIL\n", false},
		{"fewer in a test's words", "--- FAIL: TestA (0.00s)\n    a_test.go:3: not covered: 13 left\nFAIL\n",
			"--- FAIL: TestA (0.20s)\n    a_test.go:4: not covered: 12 left\nFAIL\n", false},
		{"another value of a test", "FAILED test_a.py::test_none_left - assert 14 == 0\n",
			"FAILED test_a.py::test_none_left - assert 13 == 0\n", false},
		{"the same value of a test", "--- FAIL: TestA (0.00s)\n    a_test.go:3: 13 left after 17 ms at port 4123\nFAIL\n",
			"--- FAIL: TestA (0.20s)\n    a_test.go:9: 13 left after 21 ms at port 5331\nFAIL\n", true},
		{"more of the lines", "ERROR: Coverage for lines (61%) does not meet global threshold (80%)\n",
			"ERROR: Coverage for lines (62%) does not meet global threshold (80%)\n", false},
		{"another temporary folder", "error: no title in /tmp/tmp.Xk3jQ9aa\n", "error: no title in /tmp/tmp.aB8dQ0zz\n", true},
		{"another date", "Mon Nov 23 05:41:44 2026 error: no title\n", "Tue Dec 01 15:01:02 2026 error: no title\n", true},
	} {
		if same := gate(c.one, "").Fingerprint == gate(c.other, "").Fingerprint; same != c.same {
			t.Errorf("%s: the same %v, want %v\n%+v\n%+v", c.name, same, c.same, gate(c.one, ""), gate(c.other, ""))
		}
	}
}
