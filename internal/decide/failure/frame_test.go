package failure

import (
	"strconv"
	"testing"
)

// The place of an exception is the innermost call of the repository's own files, in each language.
func TestInnermostFrame(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, output, want string }{
		{"python", "Traceback (most recent call last):\n  File \"/app/src/cli.py\", line 12, in <module>\n    main()\n  File \"/app/src/cli.py\", line 8, in main\n    cfg = load(\"config.toml\")\n  File \"/app/src/config.py\", line 33, in load\n    return data[\"server\"][\"port\"]\n           ~~~~^^^^^^^^^^\nKeyError: 'server'\n", "/app/src/config.py:33"},
		{"python, in a library", "Traceback (most recent call last):\n  File \"/app/main.py\", line 4, in <module>\n    go()\n  File \"/app/net.py\", line 9, in go\n    json.loads('')\n  File \"/usr/lib/python3.11/json/__init__.py\", line 346, in loads\n    return _default_decoder.decode(s)\nRuntimeError: no data\n", "/app/net.py:9"},
		{"python, of a chain", "Traceback (most recent call last):\n  File \"/app/db.py\", line 3, in connect\n    return int(url)\nValueError: nope\n\nThe above exception was the direct cause of the following exception:\n\nTraceback (most recent call last):\n  File \"/app/run.py\", line 2, in <module>\n    connect('x')\n  File \"/app/db.py\", line 5, in connect\n    raise RuntimeError('bad url') from e\nRuntimeError: bad url\n", "/app/db.py:5"},
		{"node", "/app/src/server.js:14\n    throw new TypeError(\"db is not a function\");\n    ^\n\nTypeError: db is not a function\n    at start (/app/src/server.js:14:11)\n    at Object.<anonymous> (/app/src/index.js:3:1)\n    at Module._compile (node:internal/modules/cjs/loader:1105:14)\n\nNode.js v18.0.0\n", "/app/src/server.js:14"},
		{"node, in a library", "TypeError: cb is not a function\n    at run (/app/node_modules/q/index.js:9:3)\n    at load (/app/src/load.js:22:5)\n    at main (/app/src/main.js:7:1)\n", "/app/src/load.js:22"},
		{"go", "panic: runtime error: index out of range [5] with length 3\n\ngoroutine 1 [running]:\nmain.pick(...)\n\t/app/main.go:10\nmain.main()\n\t/app/cmd.go:22 +0x1d\nexit status 2\n", "/app/main.go:10"},
		{"java", "Exception in thread \"main\" java.lang.NullPointerException: Cannot invoke \"String.length()\"\n\tat java.base/java.util.Objects.requireNonNull(Objects.java:233)\n\tat com.acme.App.size(App.java:17)\n\tat com.acme.Main.main(Main.java:9)\n", "App.java:17"},
		{"kotlin", "Exception in thread \"main\" java.lang.IllegalStateException: no port\n\tat app.ConfKt.port(Conf.kt:4)\n\tat app.MainKt.main(Main.kt:2)\n", "Conf.kt:4"},
		{"c#", "Unhandled exception. System.InvalidOperationException: no port\n   at System.ThrowHelper.Throw()\n   at App.Conf.Port(Dictionary`2 c) in /src/App/Conf.cs:line 12\n   at App.Program.Main(String[] args) in /src/App/Program.cs:line 5\n", "/src/App/Conf.cs:12"},
		{"ruby", "lib/conf.rb:2:in `fetch': key not found: :port (KeyError)\n\tfrom lib/conf.rb:2:in `load_conf'\n\tfrom run.rb:3:in `main'\n\tfrom run.rb:5:in `<main>'\n", "lib/conf.rb:2"},
		{"ruby, in a gem", "/usr/lib/ruby/gems/3.1.0/gems/rack-2.2/lib/rack/builder.rb:125:in `call': no app (RuntimeError)\n\tfrom /app/lib/web.rb:7:in `start'\n\tfrom /app/run.rb:3:in `<main>'\n", "/app/lib/web.rb:7"},
		{"php", "PHP Fatal error:  Uncaught RuntimeException: no port in /app/lib/Conf.php:7\nStack trace:\n#0 /app/public/index.php(4): Conf->port()\n#1 {main}\n  thrown in /app/lib/Conf.php on line 7\n", "/app/lib/Conf.php:7"},
		{"rust", "thread 'main' panicked at src/conf.rs:2:13:\ncalled `Option::unwrap()` on a `None` value\nnote: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n", "src/conf.rs:2"},
		{"rust, with calls", "thread 'main' panicked at /rustc/90b35a/library/core/src/option.rs:1972:5:\nno port\nstack backtrace:\n   0: rust_begin_unwind\n             at /rustc/90b35a/library/std/src/panicking.rs:645:5\n   1: app::conf::port\n             at ./src/conf.rs:9:5\n   2: app::main\n             at ./src/main.rs:4:5\n", "src/conf.rs:9"},
		{"elixir", "** (KeyError) key :port not found in: %{}\n    (stdlib 4.2) maps.erl:1: :maps.get/2\n    lib/conf.ex:3: Conf.port/1\n    lib/app.ex:9: App.main/1\n", "lib/conf.ex:3"},
		{"lua", "lua: conf.lua:3: attempt to index a nil value (field 'server')\nstack traceback:\n\tconf.lua:3: in function 'conf.port'\n\trun.lua:2: in main chunk\n\t[C]: in ?\n", "conf.lua:3"},
		{"perl", "no port at lib/Conf.pm line 4.\n\tConf::port(HASH(0x55)) called at run.pl line 3\n", "lib/Conf.pm:4"},
		{"dart", "Unhandled exception:\nBad state: no port\n#0      port (package:app/conf.dart:4:3)\n#1      main (file:///src/app/bin/main.dart:6:9)\n", "app/conf.dart:4"},
		{"julia", "ERROR: LoadError: KeyError: key \"port\" not found\nStacktrace:\n [1] getindex(h::Dict{Any, Any}, key::String)\n   @ Base ./dict.jl:498\n [2] port(c::Dict{Any, Any})\n   @ Main /src/conf.jl:2\n [3] top-level scope\n   @ /src/run.jl:3\n", "/src/conf.jl:2"},
		{"haskell", "app: no port\nCallStack (from HasCallStack):\n  error, called at src/Conf.hs:9:12 in main:Conf\n  port, called at app/Main.hs:5:3 in main:Main\n", "src/Conf.hs:9"},
		{"ocaml", "Fatal error: exception Failure(\"no port\")\nRaised at Stdlib.failwith in file \"stdlib.ml\", line 29, characters 17-33\nCalled from Conf.port in file \"lib/conf.ml\", line 4, characters 2-20\nCalled from Dune__exe__Main in file \"bin/main.ml\", line 2, characters 9-20\n", "lib/conf.ml:4"},
		{"nim", "/src/run.nim(3) run\n/src/conf.nim(7) port\nError: unhandled exception: no port [ValueError]\n", "/src/conf.nim:7"},
		{"crystal", "Unhandled exception: no port (Exception)\n  from src/conf.cr:3:5 in 'port'\n  from src/app.cr:8:1 in '__crystal_main'\n", "src/conf.cr:3"},
		{"swift", "conf/Conf.swift:9: Fatal error: Unexpectedly found nil while unwrapping an Optional value\n", "conf/Conf.swift:9"},
		{"r", "Error in port(cfg) : no port\nCalls: main -> port\nExecution halted\n", ""},
		{"deno", "error: Uncaught (in promise) Error: no port\n    throw new Error(\"no port\");\n          ^\n    at port (file:///src/conf.ts:3:9)\n    at file:///src/main.ts:2:1\n", "/src/conf.ts:3"},
		{"scala", "Exception in thread \"main\" java.util.NoSuchElementException: None.get\n\tat scala.None$.get(Option.scala:627)\n\tat app.Conf$.port(Conf.scala:5)\n\tat app.Main$.main(Main.scala:3)\n", "Conf.scala:5"},
	} {
		a := Analyse(Evidence{Source: "gate", Name: "run", ExitCode: 1, Output: c.output})
		got := ""
		if len(a.Items) > 0 && a.Items[0].Line > 0 {
			got = a.Items[0].File + ":" + strconv.Itoa(a.Items[0].Line)
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q (%s: %s)\n%+v", c.name, got, c.want, a.Class, a.Summary, a.Items)
		}
	}
}
