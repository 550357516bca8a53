package safety

import (
	"strings"
)

// web judges programs that talk to servers.
func web(m *matcher, c *call) {
	elsewhere, deletes := false, false
	for i, a := range c.args {
		t, before := a.text, ""
		if i > 0 {
			before = c.args[i-1].text
		}
		if isURL(t) && !loopback(t) {
			elsewhere = true
		}
		switch t {
		case "DELETE":
			deletes = deletes || before == "-X" || before == "--request" || c.name == "http" || c.name == "https"
		case "-XDELETE", "--request=DELETE", "--method=DELETE":
			deletes = true
		}
		switch before {
		case "-o", "-O", "--output", "--output-document":
			m.downloads(t)
			if before != "-O" || c.name == "wget" {
				m.writesTo(a, c.words)
			}
		}
		byOption := c.name == "curl" && c.has('O', "--remote-name")
		keepsName := byOption || c.name == "wget"
		if keepsName && strings.HasPrefix(t, "http") {
			m.downloads(t[strings.LastIndexByte(t, '/')+1:])
		}
	}
	for _, r := range c.cmd.redirects {
		if r.op == ">" {
			m.downloads(r.target.text)
		}
	}
	if elsewhere && deletes {
		m.high(c, "http-delete", "destroys resources that are not in the workspace")
	}
	if elsewhere {
		m.report(finding{"network", "it talks to the network", High, External}, c.words)
	}
}

// isURL says whether an argument is an address, also one without a scheme.
func isURL(s string) bool {
	for _, scheme := range []string{"http://", "https://", "ftp://"} {
		if strings.HasPrefix(s, scheme) {
			return true
		}
	}
	return len(s) > 3 && strings.IndexByte("-/.", s[0]) < 0 && strings.Contains(s, ".") && strings.Contains(s, "/")
}

// downloads notes a file that comes from the network.
func (m *matcher) downloads(file string) { m.fetched[strings.TrimPrefix(file, "./")] = true }

// loopback is true for an address of this machine.
func loopback(url string) bool {
	if _, rest, ok := strings.Cut(url, "://"); ok {
		url = rest
	}
	host, _, _ := strings.Cut(url, "/")
	host = host[strings.LastIndexByte(host, '@')+1:]
	if strings.HasPrefix(host, "[::1]") {
		return true
	}
	host, _, _ = strings.Cut(host, ":")
	switch host {
	case "localhost", "0.0.0.0", "host.docker.internal":
		return true
	}
	return strings.HasPrefix(host, "127.") || strings.HasSuffix(host, ".localhost")
}
