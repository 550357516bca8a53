package sandbox

import (
	"cmp"
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawl-dev/pawl/internal/do/process"
)

// Probe finds out what this machine offers, by making a box and ending it.
// The process must be pawl, or answer to [Command] like it.
func Probe(ctx context.Context) Offer {
	o := Offer{System: "linux", Root: os.Geteuid() == 0, Frozen: isRootReadOnly()}
	o.Landlock, o.Seccomp = landlockABI(), hasSeccomp()
	o.Groups = groupsWork()
	tries := []Means{{Mounts: true, Net: true, Tun: true}, {Mounts: true, Net: true}, {Mounts: true}}
	for i := range tries {
		if o.Root {
			tries = append(tries, tries[i])
		}
		tries[i].User = true
	}
	for _, m := range tries {
		m.PID = true
		why := reasonBoxFails(ctx, m)
		if why != "" && !m.Tun {
			m.PID = false
			why = reasonBoxFails(ctx, m)
		}
		if why == "" {
			o.User, o.Mounts, o.PID, o.Net, o.Tun, o.Missing = m.User, m.Mounts, m.PID, m.Net, m.Tun, ""
			break
		}
		o.Missing = cmp.Or(o.Missing, why)
	}
	if !o.Mounts {
		o.Missing = strings.TrimSpace(o.Missing + restricted())
	}
	return o
}

// reasonBoxFails makes a box with these means and says why it could not; "" when it could.
func reasonBoxFails(ctx context.Context, m Means) string {
	p := Policy{Write: []string{"/tmp"}, Hide: []string{"/var/empty"}, Means: m, Closed: m.Net && !m.Tun, Own: m.Tun}
	probe := process.Command{Args: []string{"probe"}, Env: os.Environ()}
	c, e, err := prepareBoxed(probe, order{Policy: p, Dir: "/", Probe: true})
	if err != nil {
		return err.Error()
	}
	defer e.Close()
	child, err := process.StartDetached(c)
	if err != nil {
		return explainStart(c.Args[0], err)
	}
	err = e.Wait()
	for _, l := range e.Listeners {
		_ = l.Close()
	}
	_ = e.Tun.Close()
	select {
	case <-child.Done():
	case <-ctx.Done():
	case <-time.After(enterBound):
	}
	if err != nil {
		return strings.TrimPrefix(err.Error(), "cannot start probe: no sandbox: ")
	}
	return ""
}

// explainStart says why a box could not be started. That pawl itself may not
// be executed means that the kernel refuses namespaces: it runs already.
func explainStart(name string, err error) string {
	if s, ok := errors.AsType[*process.StartError](err); ok && s.Code == 126 {
		return "the kernel does not permit them here"
	}
	return strings.TrimPrefix(err.Error(), "cannot start "+name+": ")
}

// isRootReadOnly is whether the root file system is mounted read-only.
func isRootReadOnly() bool {
	var st unix.Statfs_t
	return unix.Statfs("/", &st) == nil && st.Flags&unix.ST_RDONLY != 0
}

// restricted names what commonly forbids user namespaces.
func restricted() string {
	data, err := os.ReadFile("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
	if err == nil && strings.TrimSpace(string(data)) == "1" {
		return "; AppArmor restricts user namespaces: kernel.apparmor_restrict_unprivileged_userns"
	}
	return ""
}
