package sandbox

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/lists"
)

// Place is where a run works. Paths are absolute; empty ones are left out.
type Place struct {
	Root    string   // the workspace
	Home    string   // the user's
	Moved   []string // parts of it that are elsewhere
	Temp    []string // folders for temporary files, besides /dev/shm
	Share   bool     // the level normal uses those that all programs share
	Sockets bool     // the level paranoid has Unix sockets
	Shown   []string // what of the machine is shown
	Asked   []string // what the user has shown besides, secrets too
	State   string   // pawl's own folder of the repository, out of reach
	Cache   string   // the tools' caches, in State
	Keep    []string // files that may not be changed, wherever they are
	Write   []string // what the user adds
	Hide    []string // further secrets: other agents' folders, sockets that variables name
	Shut    []int    // TCP ports that the level normal reaches on no machine
	UID     int
	Spare   []int // pawl and what it depends on
}

// Policy is what one sort of process of the run may touch: own is what it may
// write besides, its state folders say, and show what it may read in State.
func (p Place) Policy(level string, v Verdict, l Limits, own, show []string) Policy {
	pol := Policy{Level: level, Spare: p.Spare, Limits: l, Means: v.Means, Closed: level == Paranoid,
		Sockets: p.Sockets}
	if !pol.Closed {
		pol.Shut, pol.Own = p.Shut, v.Means.Tun
	}
	if v.Means.PID && pol.HasLoopback() && p.State != "" {
		pol.Inward = InwardFolder(p.State)
	}
	pol.Write = distinctAbsolute(slices.Concat([]string{p.Root, p.Cache}, p.Write, own))
	temp := distinctAbsolute(append([]string{"/dev/shm"}, p.Temp...))
	shared := p.Share && !pol.Closed
	if ownTemp := v.Means.Mounts && !shared; ownTemp {
		temp = slices.DeleteFunc(temp, func(dir string) bool {
			return dir == "/" || dir == p.Home || isWithin(p.Root, dir) || slices.Contains(p.Write, dir)
		})
		pol.Temp = append(pol.Temp, lists.Each(temp, func(dir string) Bind { return Bind{To: dir} })...)
	} else {
		pol.Write = distinctAbsolute(append(pol.Write, p.UsableTemp(v.Means, temp)...))
	}
	for i, dir := range append([]string{p.Home}, p.Moved...) {
		isPart := func(of string) bool { return i > 0 && of != "" && isWithin(of, dir) } // of another
		if v.Means.Mounts && p.isTheRuns(dir) && !isPart(p.Home) && !slices.ContainsFunc(temp, isPart) {
			pol.Temp = append(pol.Temp, Bind{To: filepath.Clean(dir)})
		}
	}
	pol.Keep = append(pol.Keep, p.Keep...)
	pol.Hide = distinctAbsolute(slices.Concat([]string{"/", p.State}, p.credentials(), p.terminalSockets(), p.Hide))
	named := slices.Concat(pol.Write, p.Asked)
	pol.Hide = slices.DeleteFunc(pol.Hide, func(path string) bool { return slices.Contains(named, path) })
	shown := slices.DeleteFunc(slices.Concat(p.Shown, p.Asked), func(path string) bool {
		return slices.ContainsFunc(pol.Write, func(w string) bool { return isWithin(w, path) })
	})
	pol.Show = distinctAbsolute(append(shown, show...))
	return pol
}

// UsableTemp are those of some shared folders for temporary files that a box may write. Without
// mounts all that lies in one could be read and written with it, so one with the user's home
// folder in it, or with pawl's state or the workspace, is none.
func (p Place) UsableTemp(m Means, temp []string) []string {
	return slices.DeleteFunc(slices.Clone(temp), func(dir string) bool {
		holdsIt := func(other string) bool {
			return other != "" && dir != "" && isWithin(linkTargetOf(dir), linkTargetOf(other))
		}
		return !m.Mounts && slices.ContainsFunc([]string{p.Root, p.Home, p.State}, holdsIt)
	})
}

// linkTargetOf is where a path leads to, or the path itself where there is nothing.
func linkTargetOf(path string) string {
	if to, err := filepath.EvalSymlinks(path); err == nil {
		return to
	}
	return filepath.Clean(path)
}

// isTheRuns asks whether the home folder, or a part of it that is elsewhere, is one of the
// run's own in a box. It is, unless the user's is shown as a whole: as the workspace, or by a setting.
func (p Place) isTheRuns(dir string) bool {
	shown := slices.Concat([]string{p.Root}, p.Write, p.Asked)
	holdsIt := func(other string) bool { return other != "" && isWithin(other, dir) }
	isFolder := filepath.IsAbs(dir) && filepath.Clean(dir) != "/"
	return isFolder && !slices.ContainsFunc(shown, holdsIt)
}

// distinctAbsolute leaves out empty and relative paths and those that are there twice.
func distinctAbsolute(paths []string) []string {
	var out []string
	for _, path := range paths {
		if filepath.IsAbs(path) && !slices.Contains(out, filepath.Clean(path)) {
			out = append(out, filepath.Clean(path))
		}
	}
	return out
}

// secrets are credentials of other programs, below the user's home folder, that stay hidden where the user
// shows a folder above them.
var secrets = strings.Fields(`
	.ssh .gnupg .aws .azure .config/gcloud .kube .docker .oci .netrc _netrc .git-credentials .config/git/credentials .config/gh
	.config/glab-cli .pypirc .cargo/credentials .cargo/credentials.toml .gem/credentials .terraform.d .vault-token .pgpass .postgresql .pg_service.conf .my.cnf
	.config/containers .config/doctl .config/hcloud .config/rclone .config/sops .config/age .cache/huggingface/token .password-store
	.config/op .local/share/keyrings .local/share/kwalletd .bash_history .zsh_history .python_history .Xauthority .mozilla
	.config/google-chrome .config/chromium .config/Code/User/globalStorage .thunderbird snap .var/app
`)

// secretsOfMachine can be read by root, and by everybody in many containers.
var secretsOfMachine = strings.Fields(`
	/etc/shadow /etc/shadow- /etc/gshadow /etc/gshadow- /etc/krb5.keytab /etc/ssl/private /etc/letsencrypt /etc/ssh /etc/kubernetes
	/etc/wireguard /etc/NetworkManager/system-connections /var/lib/kubelet /var/run/secrets /run/secrets /run/credentials
`)

func (p Place) credentials() []string {
	out := slices.Clone(secretsOfMachine)
	for _, name := range secrets {
		if filepath.IsAbs(p.Home) {
			out = append(out, filepath.Join(p.Home, name))
		}
	}
	return out
}

// terminalSockets are those among shared temporary files by which a program types into a
// terminal or a window.
func (p Place) terminalSockets() []string {
	if !p.Share {
		return nil
	}
	return []string{"/tmp/tmux-" + strconv.Itoa(p.UID), "/tmp/.X11-unix"}
}
