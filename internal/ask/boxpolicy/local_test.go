package boxpolicy

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/do/agent/claude"
	"github.com/pawl-dev/pawl/internal/do/agent/program"
	"github.com/pawl-dev/pawl/internal/do/engine/runplan"
	"github.com/pawl-dev/pawl/internal/do/sandbox"
)

func TestLoopbackPorts(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]int{
		"http://localhost:11434/v1":                                      {11434},
		"localhost:3128":                                                 {3128},
		"HTTP://LOCALHOST:3128":                                          {3128},
		"http://ann:key@127.0.0.1:8080":                                  {8080},
		"socks5://127.1.2.3:1080, [::1]:9":                               {1080},
		"registry=http://[::1]:4873/":                                    {4873},
		`"a": "http://localhost:1234", "b": "http://127.0.0.1:1235"`:     {1234, 1235},
		"http://localhost/":                                              nil,
		"http://localhost:99999":                                         nil,
		"http://notlocalhost:8080 localhost.example:8080 localhost:10.0": nil,
	} {
		if got := loopbackPorts(text); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

// A box whose loopback is its own has doors to what the person names in settings, variables and arguments,
// and else none; none leads to pawl itself, nor to what is shut.
func TestDoorsOfAnOwnLoopback(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	own := r.folder("home/.claude")
	for path, text := range map[string]string{
		filepath.Join(own, "settings.json"): `{"env": {"X": "http://localhost:4001"}}`,
		r.path("home/.npmrc"):               "registry=http://localhost:4873/\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r.o.Config.Safety.LocalPorts = []int{5432, 7295, 7233}
	r.o.Config.Server.Address = "127.0.0.1:7295"
	r.o.Config.Cluster.Engine = "engine.example:7233"
	r.o.Plan.Environ = append(r.o.Plan.Environ, "HTTPS_PROXY=http://127.0.0.1:3128")
	r.o.Plan.Agents = map[string]runplan.Agent{"claude": {
		Adapter: program.Adapter{Program: claude.Program(false)}, Endpoints: []string{"127.0.0.1:4002"},
		Command: []string{"claude", "--url", "http://localhost:4003"}, Env: []string{"MODEL=ollama/x"},
	}}
	v := sandbox.Verdict{Boxed: true, Means: sandbox.Means{Mounts: true, PID: true, Net: true, Tun: true}}
	boxes := Make(t.Context(), r.o, v)
	common := []int{3128, 4873, 5432}
	if g, s := boxes.Run.Gates.Doors, boxes.Run.Setup.Doors; !slices.Equal(g, common) || !slices.Equal(s, common) {
		t.Errorf("gates have doors %v, the set-up %v", g, s)
	}
	a := boxes.Run.Agents["claude"]
	if want := []int{3128, 4001, 4002, 4003, 4873, 5432, 11434}; !slices.Equal(a.Doors, want) {
		t.Errorf("the agent has doors %v", a.Doors)
	}
	if off := boxes.Run.Gates.Offline(); len(off.Doors) > 0 || off.Own {
		t.Errorf("a box without a network has doors %v", off.Doors)
	}
	at := slices.IndexFunc(a.Binds, func(b sandbox.Bind) bool { return b.To == "/etc/resolv.conf" })
	if _, err := os.Stat("/etc/resolv.conf"); err == nil && at < 0 {
		t.Errorf("names are not looked up: %v", lists.Each(a.Binds, func(b sandbox.Bind) string { return b.To }))
	} else if at >= 0 {
		text, err := os.ReadFile(a.Binds[at].From)
		if err != nil || strings.Count(string(text), "nameserver ") != 3 || !strings.Contains(string(text), "nameserver 192.0.0.3\n") {
			t.Errorf("the resolvers of the box are %q, %v", text, err)
		}
	}
	v.Means.Tun = false
	if g := Make(t.Context(), r.o, v).Run.Gates; g.Own || len(g.Doors) > 0 {
		t.Errorf("on the machine's loopback there are doors %v", g.Doors)
	}
}
