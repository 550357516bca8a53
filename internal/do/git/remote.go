package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/do/git/command"
)

// overNetwork allows what every other call forbids: git's own transports, with
// the user's credentials and without asking on a terminal.
func (r *Repo) overNetwork(ctx context.Context, args ...string) (call, error) {
	c := r.NewCall(args...)
	settings, err := r.Config(ctx)
	if err != nil {
		return c, err
	}
	c.Env = append(c.Env, "GIT_ALLOW_PROTOCOL=file:git:http:https:ssh")
	if latestValues(settings)["core.sshcommand"] == "" {
		c.Env = append(c.Env, "GIT_SSH_COMMAND=ssh -oBatchMode=yes -oConnectTimeout=10")
	}
	return c, nil
}

// pushWith is a push that takes nothing with it but what args name.
func (r *Repo) pushWith(ctx context.Context, args ...string) (call, error) {
	return r.overNetwork(ctx, append([]string{"push", "--receive-pack=git-receive-pack", "--quiet",
		"--no-follow-tags", "--no-recurse-submodules"}, args...)...)
}

// UpstreamOf is the remote that a branch follows and the name of the branch
// there; of a branch that follows none it is origin and the branch itself, if
// there is an origin. No remote is empty.
func (r *Repo) UpstreamOf(ctx context.Context, branch string) (remote, ref string, err error) {
	settings, err := r.Config(ctx)
	if err != nil {
		return "", "", err
	}
	values, of := latestValues(settings), "branch."+strings.TrimPrefix(branch, "refs/heads/")
	remote = cmp.Or(values[of+".remote"], "origin")
	if _, known := values["remote."+remote+".url"]; !known || remote == "." {
		return "", "", nil
	}
	return remote, cmp.Or(values[of+".merge"], branch), nil
}

// PushRemoteOf is the remote that somebody pushes a branch's work to, where it is set, such
// as one's own fork: branch.NAME.pushRemote, else remote.pushDefault. "" is the upstream.
func (r *Repo) PushRemoteOf(ctx context.Context, branch string) (remote string, err error) {
	settings, err := r.Config(ctx)
	if err != nil {
		return "", err
	}
	own := "branch." + strings.TrimPrefix(branch, "refs/heads/") + ".pushremote"
	values := latestValues(settings)
	remote = cmp.Or(values[own], values["remote.pushdefault"])
	if values["remote."+remote+".url"] == "" {
		return "", nil
	}
	return remote, nil
}

// RemoteURL is the address of a remote, as git uses it.
func (r *Repo) RemoteURL(ctx context.Context, remote string) (string, error) {
	return command.Text(ctx, r.NewCall("remote", "get-url", "--", remote), "read the address of "+remote)
}

// Fetch brings one ref of a remote here as into, whatever was there. ctx
// bounds it. Found is false when the remote has no such ref.
func (r *Repo) Fetch(ctx context.Context, remote, ref, into string) (found bool, err error) {
	c, err := r.overNetwork(ctx, "fetch", "--upload-pack=git-upload-pack", "--quiet", "--no-tags",
		"--no-write-fetch-head", "--no-recurse-submodules", "--no-auto-maintenance",
		"--end-of-options", remote, "+"+ref+":"+into)
	if err != nil {
		return false, err
	}
	err = r.runRefCommand(ctx, c)
	if e, ok := errors.AsType[*command.Error](err); ok && strings.Contains(e.Stderr, "couldn't find remote ref") {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("cannot fetch from %s: %w", remote, err)
	}
	return true, nil
}

// ErrRefused means that the remote takes nothing on that branch, as it is protected or a
// hook of it says no.
var ErrRefused = errors.New("refuses it")

// PushFrom sends a commit to a ref of a remote, never with force, where the ref is at
// old, which commit comes after; "" is anywhere. Rejected is true when it is elsewhere,
// or when the remote has commits that are not here, or gets some just now; [ErrRefused]
// says that it takes none. Any other error may pass.
func (r *Repo) PushFrom(ctx context.Context, remote, commit, ref, old string) (rejected bool, err error) {
	if old == "" {
		return r.pushCommit(ctx, remote, commit, ref)
	}
	return r.pushCommit(ctx, remote, commit, ref, "--force-with-lease="+ref+":"+old)
}

func (r *Repo) pushCommit(ctx context.Context, remote, commit, ref string, args ...string) (rejected bool, err error) {
	c, err := r.pushWith(ctx, append(args, "--porcelain", "--end-of-options", remote, commit+":"+ref)...)
	if err != nil {
		return false, err
	}
	out, err := command.Run(ctx, c)
	if err == nil {
		return false, nil
	}
	reason, said := remoteSaid(string(out), err)
	switch text := reason + " " + said; {
	case strings.Contains(string(out), "[rejected]"), mentionsAny(said, outrun), reason == "failed to update ref" && said == "":
		return true, nil
	case reason != "" && !OfMachine(err) && mentionsAny(text, refusals) && !mentionsAny(text, passing):
		return false, fmt.Errorf("%s %w: %s", remote, ErrRefused, cmp.Or(said, reason))
	case reason != "" && said == "":
		return false, fmt.Errorf("cannot push to %s: %s: %w", remote, reason, err)
	}
	return false, fmt.Errorf("cannot push to %s: %w", remote, err)
}

// remoteSaid is the reason for which a remote did not take a push, empty when it was not
// asked, and the messages that it sent.
func remoteSaid(out string, err error) (reason, said string) {
	for line := range strings.Lines(out) {
		if _, text, ok := strings.Cut(strings.TrimSpace(line), "[remote rejected] "); ok {
			reason = strings.Trim(text, "()")
		}
	}
	var lines []string
	if e, ok := errors.AsType[*command.Error](err); ok {
		for line := range strings.Lines(e.Stderr) {
			text, ok := strings.CutPrefix(strings.TrimSpace(line), "remote:")
			if ok && !strings.Contains(text, "hook declined to update") { // git's own
				lines = append(lines, strings.TrimSpace(text))
			}
		}
	}
	return reason, strings.TrimSpace(strings.Join(lines, " "))
}

// What remotes say in small letters. A refusal stands until a person does something,
// unless the remote also says that it is in trouble just now.
var (
	outrun   = []string{"but expected", "reference already exists"} // another push moved the branch at the same moment
	refusals = []string{
		"declined", "denied", "deny", "protected", "prohibited", "forbidden", "refus", "not allowed",
		"not permitted", "exceeds", "checked out",
	}
	passing = []string{
		"timed out", "timeout", "time out", "temporar", "try again", "unavailable", "internal error",
		"internal server error", "bad gateway", "too many", "rate limit", "overload", "busy", "cannot lock",
		"unable to create", "connection re", "no space", "disk full", "disk is full", "quota exceeded", "maintenance",
	}
)

func mentionsAny(text string, words []string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}

// ErrTheirs means that somebody else pushed to a branch of pawl's own.
var ErrTheirs = errors.New("somebody else pushed to it")

// PushOwn sends a commit to a branch of pawl's own at a remote, wherever
// pawl left it: what somebody else pushed there since, and the commit does not
// have, is not overwritten, and is [ErrTheirs]. A branch that was deleted there is made anew.
// The commit is named before, so that pawl knows it there when it was killed, or the answer lost.
func (r *Repo) PushOwn(ctx context.Context, remote, commit, ref string) error {
	branch := strings.TrimPrefix(ref, "refs/heads/")
	own, named := "refs/pawl/pushed/"+branch, "refs/pawl/pushing/"+branch+"/"
	last, err := r.Find(ctx, own)
	if err == nil {
		err = r.UpdateRef(ctx, named+commit, commit, "", "pawl: pushes")
	}
	if err != nil {
		return err
	}
	if err = r.pushOver(ctx, remote, commit, ref, last); errors.Is(err, ErrTheirs) {
		theirs := own + ".theirs"
		if _, ferr := r.Fetch(ctx, remote, ref, theirs); ferr == nil {
			head, _ := r.Find(ctx, theirs) // none, where the branch was deleted
			known, _ := r.Find(ctx, named+head)
			isInside, _ := r.IsAncestor(ctx, head, commit) // of a branch that was deleted: false
			if isInside || known == head {
				err = r.pushOver(ctx, remote, commit, ref, head)
			}
		}
		_ = r.DropRefs(ctx, theirs)
	}
	if err != nil {
		return err
	}
	return errors.Join(r.UpdateRef(ctx, own, commit, "", "pawl: pushed"), r.DropRefs(ctx, named))
}

// pushOver is a push that replaces nothing but the last commit.
func (r *Repo) pushOver(ctx context.Context, remote, commit, ref, last string) error {
	rejected, err := r.pushCommit(ctx, remote, commit, ref, "--force-with-lease="+ref+":"+last)
	if rejected {
		err = fmt.Errorf("cannot push to %s of %s: %w", strings.TrimPrefix(ref, "refs/heads/"), remote, ErrTheirs)
	}
	return err
}

// workPrefix is the prefix of refs for the work of tasks on a remote.
const workPrefix = "refs/pawl/work/"

// WorkRef names the ref of a commit of a task's work on the remote by which machines exchange it.
// No two commits share one, so it is never moved.
func WorkRef(task, commit string) string { return workPrefix + task + "/" + commit }

// PushWork sends a commit of a task's work to a remote. To do it again does nothing.
func (r *Repo) PushWork(ctx context.Context, remote, task, commit string) error {
	rejected, err := r.PushFrom(ctx, remote, commit, WorkRef(task, commit), "")
	if rejected {
		err = fmt.Errorf("cannot push to %s: somebody else is pushing the same", remote)
	}
	return err
}

// FetchWork brings a commit of a task's work here as into, if it is not here.
// Found is false when the remote does not have it either.
func (r *Repo) FetchWork(ctx context.Context, remote, task, commit, into string) (found bool, err error) {
	if here, err := r.Find(ctx, commit); err != nil || here != "" {
		return here != "", err
	}
	if found, err = r.Fetch(ctx, remote, WorkRef(task, commit), into); err != nil || !found {
		return false, err
	}
	here, err := r.Find(ctx, into)
	if err == nil && here != commit {
		err := fmt.Errorf("%s has another commit as %s", remote, WorkRef(task, commit))
		return false, errors.Join(err, r.DropRefs(ctx, into))
	}
	return err == nil, err
}

// Work are the tasks of which a remote has work.
func (r *Repo) Work(ctx context.Context, remote string) (tasks map[string][]string, err error) {
	c, err := r.overNetwork(ctx, "ls-remote", "--upload-pack=git-upload-pack", "--quiet", "--end-of-options", remote,
		workPrefix+"*")
	if err != nil {
		return nil, err
	}
	out, err := command.Run(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("cannot list the work at %s: %w", remote, err)
	}
	tasks = map[string][]string{}
	for line := range strings.Lines(string(out)) {
		_, ref, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if task, _, ok := strings.Cut(strings.TrimPrefix(ref, workPrefix), "/"); ok {
			tasks[task] = append(tasks[task], ref)
		}
	}
	return tasks, nil
}

// atOnce is how many refs one push removes.
const atOnce = 200

// DropWork removes refs that [Repo.Work] returned from a remote.
func (r *Repo) DropWork(ctx context.Context, remote string, refs []string) error {
	for some := range slices.Chunk(refs, atOnce) {
		c, err := r.pushWith(ctx, append([]string{"--delete", "--end-of-options", remote}, some...)...)
		if err == nil {
			_, err = command.Run(ctx, c)
		}
		if err != nil {
			return fmt.Errorf("cannot remove work from %s: %w", remote, err)
		}
	}
	return nil
}
