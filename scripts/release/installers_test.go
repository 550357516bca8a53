package main

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/ask/cli"
)

// The test binary is pawl, too, where it was installed as that.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "pawl" {
		os.Exit(cli.Main(nil, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Environ()))
	}
	if err := os.Chdir("../.."); err != nil { // where the release is made
		panic(err)
	}
	os.Exit(m.Run())
}

const version = "v1.2.3"

// released is a release for this machine, and for one that it is not.
var released = sync.OnceValues(func() (map[string][]byte, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	binary, err := os.ReadFile(self)
	if err != nil {
		return nil, err
	}
	when := time.Unix(1_700_000_000, 0)
	docs, err := documents(cli.Root(), when)
	if err != nil {
		return nil, err
	}
	programs := []program{{runtime.GOOS, runtime.GOARCH, binary}, {"darwin", "arm64", []byte("another")}}
	made := map[string][]byte{}
	for _, p := range programs {
		name := fmt.Sprintf("pawl-%s-%s-%s", version, p.system, p.processor)
		files := maps.Clone(docs)
		files["pawl"] = p.binary
		if made[name+".tar.gz"], err = archive(name, files, when); err != nil {
			return nil, err
		}
	}
	more, err := installers(version, programs, made, docs, when)
	maps.Copy(made, more)
	made["SHA256SUMS"] = sums(made)
	return made, err
})

func releaseFor(t *testing.T, programs ...string) map[string][]byte {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("there is no %s", p)
		}
	}
	made, err := released()
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// serveFiles serves the files of a release on loopback.
func serveFiles(t *testing.T, files map[string][]byte) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if data, ok := files[strings.TrimPrefix(r.URL.Path, "/")]; ok {
			_, _ = w.Write(data)
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// sh runs a script with an environment of its own.
func sh(t *testing.T, script string, env ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
	cmd.Dir = t.TempDir()
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// The script installs what the release has, for the user alone, and nothing that is not it.
func TestInstallScript(t *testing.T) {
	made := releaseFor(t, "curl")
	home := t.TempDir()
	from := serveFiles(t, made)
	line := "curl -fsSL " + from + "/install.sh | sh"
	out, err := sh(t, line, "HOME="+home, "PAWL_FROM="+from)
	if err != nil || !strings.Contains(out, "Installed pawl ") || !strings.Contains(out, "is not on your PATH") {
		t.Fatalf("%v: %s", err, out)
	}
	for _, name := range []string{
		"bin/pawl", "share/man/man1/pawl-run.1", "share/bash-completion/completions/pawl",
		"share/zsh/site-functions/_pawl", "share/fish/vendor_completions.d/pawl.fish",
	} {
		if _, err := os.Stat(filepath.Join(home, ".local", name)); err != nil {
			t.Error(err)
		}
	}
	_, command, _ := strings.Cut(out, "Watch it work: ")
	if out, err := sh(t, strings.TrimSpace(command)+" --help", "HOME="+home); err != nil || !strings.Contains(out, "--web") {
		t.Errorf("%q does not work as printed: %v: %s", command, err, out)
	}

	other := filepath.Join(home, "tools")
	out, err = sh(t, line, "HOME="+home, "PAWL_FROM="+from, "PAWL_BIN="+other, "PATH="+other+":"+os.Getenv("PATH"))
	if err != nil || strings.Contains(out, "is not on your PATH") || !strings.Contains(out, "Watch it work: pawl demo") {
		t.Errorf("%v: %s", err, out)
	}

	for name, spoil := range map[string]func(files map[string][]byte){
		"has the checksum":   func(f map[string][]byte) { f[hostArchive()] = append(bytes.Clone(f[hostArchive()]), 0) },
		"has no checksum of": func(f map[string][]byte) { f["SHA256SUMS"] = nil },
		"cannot fetch":       func(f map[string][]byte) { delete(f, hostArchive()) },
		"SHA256SUMS":         func(f map[string][]byte) { delete(f, "SHA256SUMS") },
	} {
		files := maps.Clone(made)
		spoil(files)
		from, home := serveFiles(t, files), t.TempDir()
		out, err := sh(t, "curl -fsSL "+from+"/install.sh | sh", "HOME="+home, "PAWL_FROM="+from)
		if err == nil || !strings.Contains(out, name) {
			t.Errorf("%s: %v: %s", name, err, out)
		}
		if left, _ := os.ReadDir(home); len(left) > 0 {
			t.Errorf("%s: it leaves %v", name, left)
		}
	}

	half := made["install.sh"][:len(made["install.sh"])*9/10] // the connection breaks
	if out, _ := sh(t, string(half), "HOME="+home+"/half", "PAWL_FROM="+from); strings.Contains(out, "Installed") {
		t.Errorf("half a script installs: %s", out)
	}
}

func hostArchive() string {
	return fmt.Sprintf("pawl-%s-%s-%s.tar.gz", version, runtime.GOOS, runtime.GOARCH)
}

// npm takes the package of this machine's program, from a registry on loopback.
func TestNPM(t *testing.T) {
	made := releaseFor(t, "npm", "node")
	var url string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, "/")
		if data, ok := made[name]; ok {
			_, _ = w.Write(data)
			return
		}
		data, ok := made[packageFile(name, version)]
		if !ok {
			http.NotFound(w, r)
			return
		}
		texts, _ := unpack(t, data)
		var manifest map[string]any
		if err := json.Unmarshal([]byte(texts["package/package.json"]), &manifest); err != nil {
			t.Error(err)
		}
		sum := sha512.Sum512(data)
		manifest["dist"] = map[string]string{
			"tarball":   url + "/" + packageFile(name, version),
			"integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:]), "shasum": fmt.Sprintf("%x", sha1.Sum(data)),
		}
		_ = json.NewEncoder(w).Encode(map[string]any{
			"name": name, "dist-tags": map[string]string{"latest": "1.2.3"}, "versions": map[string]any{"1.2.3": manifest},
		})
	}))
	defer s.Close()
	url = s.URL
	home := t.TempDir()
	out, err := sh(t, "npm install -g --no-audit --no-fund --prefix "+home+" --registry "+url+" @pawl-dev/pawl", "HOME="+home)
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	pawl := filepath.Join(home, "bin", "pawl")
	if out, err := sh(t, pawl+" version", "HOME="+home); err != nil || !strings.HasPrefix(out, "pawl ") {
		t.Errorf("%v: %s", err, out)
	}
	if out, err := sh(t, pawl+" nothing; echo $?", "HOME="+home); err != nil || !strings.HasSuffix(out, "\n2\n") {
		t.Errorf("the exit status is lost: %v: %s", err, out)
	}
	if out, err := sh(t, "find "+home+" -path '*pawl-darwin-arm64*' -name pawl", "HOME="+home); err != nil || out != "" {
		t.Errorf("another machine's program is there: %s", out)
	}
	if err := os.RemoveAll(home + "/lib/node_modules/@pawl-dev/pawl/node_modules"); err != nil {
		t.Fatal(err)
	}
	if out, err := sh(t, pawl+" version", "HOME="+home); err == nil || !strings.Contains(out, "is not installed") {
		t.Errorf("without its program: %v: %s", err, out)
	}
}

// The formula names each archive of pawl with its checksum, and installs what is in them.
func TestFormula(t *testing.T) {
	made := releaseFor(t, "ruby")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "pawl.rb"), made["pawl.rb"], 0o600); err != nil {
		t.Fatal(err)
	}
	const brew = `
class Place
  def install(what) = puts("install #{Array(what).first.is_a?(Array) ? what.keys.first : Array(what).first}")
end
class Formula
  class << self
    %w[desc homepage version license depends_on].each { |m| define_method(m) { |*| } }
    def url(u) = puts("url #{u}")
    def sha256(s) = puts("sha256 #{s}")
    def test = nil
    %w[on_linux on_macos on_intel on_arm].each { |m| define_method(m) { |&b| puts m; b.call } }
  end
  %w[bin man1 bash_completion zsh_completion fish_completion].each { |m| define_method(m) { Place.new } }
end
load ARGV[0]
Pawl.new.install`
	cmd := exec.CommandContext(t.Context(), "ruby", "-e", brew, filepath.Join(dir, "pawl.rb"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	sumOf := map[string]string{}
	for line := range strings.Lines(string(made["SHA256SUMS"])) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		sumOf[name] = sum
	}
	archives := 0
	for name := range made {
		if !strings.HasSuffix(name, ".tar.gz") {
			continue
		}
		archives++
		want := "url " + from + version + "/" + name + "\nsha256 " + sumOf[name] + "\n"
		if !strings.Contains(string(out), want) {
			t.Errorf("%s is not in it:\n%s", name, out)
		}
	}
	texts, _ := unpack(t, made[hostArchive()])
	installed := 0
	for line := range strings.Lines(string(out)) {
		name, is := strings.CutPrefix(strings.TrimSpace(line), "install ")
		if !is || name == "" {
			continue
		}
		installed++
		if _, ok := texts[strings.TrimSuffix(hostArchive(), ".tar.gz")+"/"+name]; !ok {
			t.Errorf("it installs %q, which is in no archive", name)
		}
	}
	if archives != 2 || installed < 4 {
		t.Errorf("%d archives, %d files installed:\n%s", archives, installed, out)
	}
}

// What the image is made of is in the release: its steps are played in a folder.
func TestContainer(t *testing.T) {
	made := releaseFor(t, "tar", "install")
	root := t.TempDir()
	text := strings.ReplaceAll(string(made["Containerfile"]), "${TARGETARCH}", runtime.GOARCH)
	if runtime.GOOS != "linux" {
		t.Skip("the image is for linux")
	}
	text = strings.ReplaceAll(text, "\\\n", " ")
	added := ""
	for line := range strings.Lines(text) {
		instruction, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case instruction == "ADD":
			name, _, _ := strings.Cut(rest, " ")
			added = name
			if err := os.WriteFile(filepath.Join(root, name), made[name], 0o600); err != nil {
				t.Fatal(err)
			}
			if out, err := sh(t, "cd "+root+" && mkdir -p opt usr/local/bin usr/local/share && tar -xzf "+name+" -C opt"); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		case instruction == "RUN" && strings.Contains(rest, "/opt/"):
			steps := strings.NewReplacer("/opt/", root+"/opt/", " /usr/", " "+root+"/usr/").Replace(rest)
			if out, err := sh(t, steps); err != nil {
				t.Fatalf("%s: %v: %s", rest, err, out)
			}
		}
	}
	if added != hostArchive() {
		t.Errorf("it adds %q", added)
	}
	if out, err := sh(t, root+"/usr/local/bin/pawl version && ls "+root+"/opt", "HOME="+root); err != nil || strings.Count(out, "\n") != 1 {
		t.Errorf("%v: %s", err, out)
	}
}
