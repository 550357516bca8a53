// Package sandbox lets the operating system hold a process, and all that it
// starts, to a [Policy]: which folders it may write, what it may not even
// read, whom it may signal, how it reaches the network, and how much of the
// machine it may use.
//
// A box is entered by pawl itself, executed again as a hidden command: started
// in namespaces of its own where the machine allows that, the copy of pawl
// arranges the mounts, gives up its rights, restricts itself with Landlock and
// seccomp, and becomes the command. There is no process between the parent and
// the command, so signals, limits and the adoption of orphans work as without
// a box.
//
//	supervisor ── clone(user, mount, net) ──▶ pawl __sandbox ── execve ──▶ command
//	     │                                         │
//	     └──────────────── policy ────────────────▶│
//	     ◀──── what went wrong; the listener ──────┘
//
// Two mechanisms keep files, each alone where the other is missing. Mounts
// make the tree read-only, chmod and utimes included, and put nothing in the
// place of what is hidden. Landlock refuses writes by path, and keeps signals,
// ptrace and abstract sockets inside. [Probe] says which of them this machine
// has, by trying; [Judge] says what a level can do with that.
//
// There is no process namespace: the first process in one would be its init,
// which TERM does not reach.
//
// The package never falls back by itself: a box that cannot be made as it was
// described is an error, and nothing runs. It knows no agents and decides no
// levels, and it is no help against a process that was started outside.
package sandbox
