package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What people let agents and gates run, at both levels.
func TestOrdinaryProgramsWork(t *testing.T) {
	programs := []struct{ needs, script string }{
		{"go", `cat >go.mod <<E
module x
go 1.21
E
cat >x_test.go <<E
package x
import ("os"; "os/exec"; "testing")
func Test(t *testing.T) {
	if out, err := exec.Command("sh", "-c", "echo a | cat").Output(); err != nil || string(out) != "a\n" { t.Fatal(err) }
	if err := os.WriteFile(t.TempDir()+"/f", nil, 0o600); err != nil { t.Fatal(err) }
	r, err := os.OpenRoot("."); if err != nil { t.Fatal(err) }
	if _, err := r.ReadFile("go.mod"); err != nil { t.Fatal(err) }
}
E
GOTOOLCHAIN=local GOFLAGS=-mod=mod GO111MODULE=on go test -vet=off ./...`},
		{"node", `cat >x.js <<E
const {fork, execSync} = require('child_process'), {Worker} = require('worker_threads'), fs = require('fs');
if (process.send) { process.send('hello'); process.disconnect(); return }
execSync('echo a | cat');
fs.mkdtempSync(require('os').tmpdir() + '/x-');
fork(__filename).on('message', m => new Worker('1', {eval: true}).on('exit', () => fs.writeFileSync('done', m)));
E
node x.js; cat done`},
		{"npm", `echo '{"name":"x","version":"1.0.0","scripts":{"test":"node -e 0"}}' >package.json
npm test --silent --cache "$PWD/cache" --update-notifier=false`},
		{"python3", `cat >x.py <<E
import multiprocessing as m, subprocess, tempfile, asyncio, threading
def f(x): return x * x
async def g():
    p = await asyncio.create_subprocess_exec('true'); return await p.wait()
if __name__ == '__main__':
    assert m.get_context('fork').Pool(2).map(f, [2]) == [4]
    assert m.get_context('spawn').Pool(1).map(f, [3]) == [9]
    assert subprocess.run(['sh', '-c', 'echo a | cat'], capture_output=True).stdout == b'a\n'
    assert asyncio.run(g()) == 0
    threading.Thread(target=print).start()
    tempfile.NamedTemporaryFile().write(b'x')
E
python3 x.py`},
		{"cargo", `cargo init -q --vcs none --name x --lib . && cargo test -q --offline`},
		{"gcc", `printf 'int main(){return 0;}' >x.c && gcc -o x x.c && ./x`},
	}
	for _, level := range []string{Normal, Paranoid} {
		v := Judge(level, offer(), false)
		if !v.Boxed {
			t.Logf("not at %s: %s", level, v.Refused)
			continue
		}
		for _, prog := range programs {
			t.Run(level+"/"+prog.needs, func(t *testing.T) {
				if _, err := exec.LookPath(prog.needs); err != nil {
					t.Skip(err)
				}
				p := newPlace(t)
				pol := p.policy(v.Means)
				pol.Closed, pol.Show = level == Paranoid, nil
				pol.Write = append(pol.Write, goCache(t), os.TempDir(), "/dev/shm")
				dir := filepath.Join(p.work, "program")
				if err := os.Mkdir(dir, 0o755); err != nil {
					t.Fatal(err)
				}
				if r := run(t, pol, dir, "sh", "-ec", prog.script); r.code != 0 {
					t.Errorf("exit %d: %s", r.code, r.out)
				}
			})
		}
	}
}

func goCache(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		return t.TempDir()
	}
	return strings.TrimSpace(string(out))
}
