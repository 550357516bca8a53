package sandbox

import "fmt"

// ProxyEnviron returns the variables by which programs in a closed box find the proxy; none for another box. What is
// on the box's own loopback is reached without it.
func (p *Policy) ProxyEnviron() []string {
	if p == nil || !p.Closed {
		return nil
	}
	url := fmt.Sprintf("http://127.0.0.1:%d", ProxyPort)
	env := []string{"NO_PROXY=localhost,127.0.0.1,::1", "no_proxy=localhost,127.0.0.1,::1", "NODE_USE_ENV_PROXY=1"}
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"} {
		env = append(env, name+"="+url)
	}
	return env
}
