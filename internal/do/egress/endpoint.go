package egress

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Endpoint is a place that may be reached.
type Endpoint struct {
	// Host is a name in lower case, "*.suffix" for all names below a suffix, or
	// an IP address.
	Host string
	Port uint16
	// Plain is http without TLS.
	Plain bool
	// Addrs are addresses that Host may have though they are not public.
	Addrs []netip.Addr
}

// ParseEndpoint reads "host", "host:port", "*.suffix:port", an IP address
// ("[::1]:8080") or a base URL, of which path and user are ignored. Without a
// scheme it is https. Addresses that are not public and that the host may have
// follow a "=": "llm.example.net:443=10.0.0.5,10.0.0.6". An error never shows the
// path, query or user of a URL.
func ParseEndpoint(s string) (Endpoint, error) {
	place, addrs, _ := cutAddrs(strings.TrimSpace(s))
	e := Endpoint{Port: 443, Addrs: addrs}
	if scheme, _, ok := strings.Cut(place, "://"); ok {
		u, err := url.Parse(place)
		if err != nil {
			return Endpoint{}, errors.New("cannot read an endpoint: it is no valid URL")
		}
		switch strings.ToLower(scheme) {
		case "https":
		case "http":
			e.Plain, e.Port = true, 80
		default:
			return Endpoint{}, fmt.Errorf("cannot use %s://%s as an endpoint: write https:// or http://", u.Scheme, u.Host)
		}
		place = u.Host
	}
	host, port, err := splitPort(place, e.Port)
	if err != nil {
		return Endpoint{}, fmt.Errorf("cannot use %q as an endpoint: %v", place, err)
	}
	e.Port = port
	suffix, wild := strings.CutPrefix(host, "*.")
	name, err := hostName(suffix)
	switch {
	case err != nil:
		return Endpoint{}, fmt.Errorf("cannot use %q as an endpoint: %v", place, err)
	case wild && isIP(name):
		return Endpoint{}, fmt.Errorf("cannot use %q as an endpoint: an address has no names below it", place)
	case wild && !strings.Contains(name, "."):
		return Endpoint{}, fmt.Errorf("cannot use %q as an endpoint: a whole top-level domain is too much", place)
	case wild:
		name = "*." + name
	}
	e.Host = name
	return e, nil
}

// String is the endpoint as [ParseEndpoint] reads it.
func (e Endpoint) String() string {
	s := net.JoinHostPort(e.Host, strconv.Itoa(int(e.Port)))
	if e.Plain {
		s = "http://" + s
	}
	for i, a := range e.Addrs {
		s += map[bool]string{true: "=", false: ","}[i == 0] + a.String()
	}
	return s
}

// matchesHost reports whether the endpoint covers a host, as [hostName] writes it.
func (e Endpoint) matchesHost(host string, port uint16) bool {
	if e.Port != port {
		return false
	}
	if suffix, wild := strings.CutPrefix(e.Host, "*"); wild {
		return strings.HasSuffix(host, suffix) && len(host) > len(suffix) && !isIP(host)
	}
	return e.Host == host
}

// cutAddrs splits "place=addr,addr". A "=" that no addresses follow belongs to
// the place.
func cutAddrs(s string) (place string, addrs []netip.Addr, ok bool) {
	i := strings.LastIndexByte(s, '=')
	if i < 0 {
		return s, nil, false
	}
	for text := range strings.SplitSeq(s[i+1:], ",") {
		a, err := netip.ParseAddr(strings.TrimSpace(text))
		if err != nil || a.Zone() != "" {
			return s, nil, false
		}
		addrs = append(addrs, a)
	}
	return s[:i], addrs, true
}

// splitPort splits "host", "host:port", "[v6]" and "[v6]:port".
func splitPort(s string, otherwise uint16) (host string, port uint16, err error) {
	if _, err := netip.ParseAddr(s); err == nil {
		return s, otherwise, nil
	}
	if v6, ok := strings.CutPrefix(s, "["); ok && strings.HasSuffix(v6, "]") {
		return strings.TrimSuffix(v6, "]"), otherwise, nil
	}
	if !strings.Contains(s, ":") {
		return s, otherwise, nil
	}
	return splitAuthority(s)
}

// splitAuthority splits "host:port", both of which must be there.
func splitAuthority(s string) (host string, port uint16, err error) {
	host, text, err := net.SplitHostPort(s)
	if err != nil {
		return "", 0, errors.New("it is not host:port")
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 || text[0] == '+' {
		return "", 0, errors.New("the port is not a number from 1 to 65535")
	}
	return host, uint16(n), nil
}

// hostName brings a host into the one form in which hosts are compared: lower
// case, no dot at the end, an address as netip writes it. Names are ASCII, and
// none that a resolver could take for a number.
func hostName(s string) (string, error) {
	if a, err := netip.ParseAddr(s); err == nil {
		if a.Zone() != "" {
			return "", errors.New("an address with a zone is not accepted")
		}
		return a.String(), nil
	}
	s = strings.ToLower(strings.TrimSuffix(s, "."))
	if s == "" || len(s) > 253 {
		return "", errors.New("it has no host, or a name longer than 253 characters")
	}
	labels := strings.Split(s, ".")
	for _, label := range labels {
		if label == "" || len(label) > 63 || strings.ContainsFunc(label, notInName) {
			return "", errors.New("it is no host name")
		}
	}
	last := labels[len(labels)-1]
	if _, err := strconv.ParseUint(last, 0, 64); err == nil || strings.Trim(last, "0123456789") == "" {
		return "", errors.New("it is neither a name nor an address in its usual form")
	}
	return s, nil
}

func notInName(r rune) bool {
	return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789-_", r)
}

func isIP(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}

// findEndpoint is the first endpoint of a list that covers a host.
func findEndpoint(list []Endpoint, host string, port uint16, plain bool) (Endpoint, bool) {
	i := slices.IndexFunc(list, func(e Endpoint) bool { return e.Plain == plain && e.matchesHost(host, port) })
	if i < 0 {
		return Endpoint{}, false
	}
	return list[i], true
}
