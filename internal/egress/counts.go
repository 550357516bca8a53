package egress

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Refusal is something that was not let through.
type Refusal struct {
	When time.Time `json:"when"`
	// Host is host:port as the client asked for it, at most 300 bytes that can
	// be printed; "" when it did not come to that.
	Host string `json:"host,omitempty"`
	Why  string `json:"why"`
}

// Counts are figures of a proxy.
type Counts struct {
	Hosts   []HostCount `json:"hosts,omitempty"` // by host
	Refused int64       `json:"refused"`
}

// HostCount is what went to one endpoint.
type HostCount struct {
	Host        string `json:"host"` // host:port; [OtherHosts] for what is over 1000 of them
	Connections int64  `json:"connections"`
	// Requests are known of plain http only.
	Requests int64 `json:"requests,omitempty"`
	BytesOut int64 `json:"bytes_out"` // to the endpoint
	BytesIn  int64 `json:"bytes_in"`
	// EncryptedHellos are connections with an encrypted ClientHello, or grease for one.
	EncryptedHellos int64 `json:"encrypted_hellos,omitempty"`
}

// OtherHosts stands for hosts that are not counted one by one.
const OtherHosts = "(others)"

const (
	maxHosts    = 1000
	maxHostText = 300
)

// counts is safe for concurrent use.
type counts struct {
	told func(Refusal)

	mu      sync.Mutex
	hosts   map[string]*tally
	refused int64

	telling sync.Mutex
}

// tally is one host's.
type tally struct {
	connections, requests, out, in, encrypted atomic.Int64
}

// host is the tally of host:port.
func (c *counts) host(name string) *tally {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t := c.hosts[name]; t != nil {
		return t
	}
	if c.hosts == nil {
		c.hosts = map[string]*tally{}
	}
	if len(c.hosts) >= maxHosts {
		name = OtherHosts
		if t := c.hosts[name]; t != nil {
			return t
		}
	}
	t := new(tally)
	c.hosts[name] = t
	return t
}

// refuse counts and tells a refusal.
func (c *counts) refuse(host, why string) {
	c.mu.Lock()
	c.refused++
	n := c.refused
	c.mu.Unlock()
	if c.told == nil || n > MaxRefusals {
		return
	}
	c.telling.Lock()
	defer c.telling.Unlock()
	c.told(Refusal{When: time.Now(), Host: printable(host), Why: why})
}

func (c *counts) all() Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := Counts{Refused: c.refused}
	for name, t := range c.hosts {
		all.Hosts = append(all.Hosts, HostCount{
			Host: name, Connections: t.connections.Load(), Requests: t.requests.Load(),
			BytesOut: t.out.Load(), BytesIn: t.in.Load(), EncryptedHellos: t.encrypted.Load(),
		})
	}
	slices.SortFunc(all.Hosts, func(a, b HostCount) int { return cmp.Compare(a.Host, b.Host) })
	return all
}

// printable is what a client sent, fit for a terminal: ASCII, without spaces.
// What looks like a user and a password before an @ is left out.
func printable(s string) string {
	if i := strings.LastIndexByte(s, '@'); i >= 0 {
		s = s[i+1:]
	}
	s = s[:min(len(s), maxHostText)]
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r >= 0x7f {
			return '?'
		}
		return r
	}, s)
}
