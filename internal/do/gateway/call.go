package gateway

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/agent"
)

// call is one request on its way.
type call struct {
	g        *Gateway
	via      *way
	path     string
	request  *http.Request
	body     []byte
	release  func() // makes room for other bodies
	reader   reader
	question question
	flight   *flight
	reading  reading
}

// pass serves what is no model call: once, uncounted.
func (c *call) pass(w http.ResponseWriter) {
	resp, err := c.sendTo(c.request.Context(), c.via.to())
	if err != nil {
		refuse(w, c.via.dialect, http.StatusBadGateway, "pawl's gateway cannot reach the provider: "+err.Error())
		return
	}
	defer func() { _ = resp.Body.Close() }()
	headers(w, resp)
	if resp.StatusCode >= 300 {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, maxError))
		_, _ = w.Write(c.via.hide(text))
		return
	}
	_, _ = io.Copy(w, io.LimitReader(resp.Body, maxAnswer))
}

// serve serves a model call.
func (c *call) serve(w http.ResponseWriter) {
	flight, over := c.g.account.admit(c.request.Context(), c.question, length(c.body))
	if over != nil {
		c.refuse(w, over)
		return
	}
	if flight == nil { // the agent has gone
		return
	}
	c.flight = flight
	resp, err := c.answer()
	if err == nil {
		defer func() { _ = resp.Body.Close() }()
		c.copy(w, resp)
		return
	}
	if errors.Is(err, errSent) { // the provider may count it all the same
		c.land()
		return
	}
	c.g.account.drop(flight)
	var t *trouble
	switch {
	case errors.As(err, &over):
		c.refuse(w, over)
	case !errors.As(err, &t): // the agent has gone
	case resp == nil:
		refuse(w, c.via.dialect, http.StatusBadGateway, "pawl's gateway cannot reach the provider: "+t.err.Message)
		c.tell(t)
	default:
		defer func() { _ = resp.Body.Close() }()
		headers(w, resp)
		_, _ = io.Copy(w, resp.Body)
		c.tell(t)
	}
}

// refuse answers a call for which a limit has no room, and ends the attempt.
func (c *call) refuse(w http.ResponseWriter, over *over) {
	refuse(w, c.via.dialect, http.StatusBadRequest, "pawl: "+over.why)
	c.g.config.End(over.ended, over.why)
}

// tell ends the attempt for a trouble that lasts.
func (c *call) tell(t *trouble) {
	if t.lasts {
		c.g.config.End(loop.EndedRetries, "the provider does not answer: "+t.Error())
	}
}

// errSent is the end of an agent that has asked and did not wait for the answer.
var errSent = errors.New("the agent has gone")

// answer asks the provider until it answers, or its trouble lasts: then the error
// is a [trouble], with the provider's answer if there was one. It is an [over]
// when there may be no further call.
func (c *call) answer() (*http.Response, error) {
	ctx := c.request.Context()
	var held time.Duration
	for try := 1; ; try++ {
		if over := c.g.account.try(c.flight); over != nil {
			return nil, over
		}
		to := c.via.to()
		resp, err := c.sendTo(ctx, to)
		if ctx.Err() != nil {
			return nil, errSent
		}
		t := c.troubled(resp, err)
		if t == nil {
			return resp, nil
		}
		calls := 1
		if resp == nil {
			c.g.account.untried(c.flight)
			calls = 0
		}
		wait := t.pause(try, held)
		heard := t.err
		if wait == 0 && t.lasts && c.via.leave(to) {
			c.g.emit(agent.Event{Kind: agent.Retry, Attempt: try, Calls: calls, Error: &heard})
			if resp != nil {
				_ = resp.Body.Close()
			}
			try, held = 0, 0
			continue
		}
		if wait == 0 {
			c.g.emit(agent.Event{Kind: agent.Error, Calls: calls, Error: &heard})
			return resp, t
		}
		held += wait
		c.g.emit(agent.Event{Kind: agent.Retry, Attempt: try, Calls: calls, Error: &heard})
		if resp != nil {
			_ = resp.Body.Close()
		}
		if !c.g.config.Sleep(ctx, wait) {
			return nil, ctx.Err()
		}
	}
}

// troubled is what is wrong with an answer; nil when it is one. The beginning of
// an error's text is read, and put back.
func (c *call) troubled(resp *http.Response, err error) *trouble {
	if err != nil {
		return unreached(err)
	}
	if resp.StatusCode < 300 {
		return nil
	}
	if resp.StatusCode < 400 {
		_ = resp.Body.Close()
		resp.StatusCode, resp.Header = http.StatusBadGateway, http.Header{}
		resp.Body = io.NopCloser(strings.NewReader("pawl's gateway follows no redirect"))
		const why = "the provider redirects to another address; correct its base URL"
		return &trouble{lasts: true, err: failure.APIError{Type: "redirect", Message: why}}
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxError))
	text = c.via.hide(text)
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(text))
	return refusedBy(resp, text, time.Now())
}

// sendTo asks an endpoint of the provider once, with its key.
func (c *call) sendTo(ctx context.Context, to *agent.Route) (*http.Response, error) {
	target := to.Base + c.path
	query := url.Values{}
	for name, values := range c.request.URL.Query() {
		if listed(name, parameters) {
			query[name] = values
		}
	}
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, c.request.Method, target, bytes.NewReader(c.body))
	if err != nil {
		return nil, err
	}
	r.Header = c.via.requestHeaders(c.request.Header)
	r.Header.Set("Accept-Encoding", "identity")
	for name, value := range to.Extra {
		r.Header.Set(name, value)
	}
	switch {
	case to.Key == "": // a server of one's own
	case to.Header == "Authorization":
		r.Header.Set("Authorization", "Bearer "+to.Key)
	default:
		r.Header.Set(to.Header, to.Key)
	}
	resp, err := c.g.config.Transport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	return plain(resp)
}

// plain undoes a compression that was not asked for.
func plain(resp *http.Response) (*http.Response, error) {
	switch coding := resp.Header.Get("Content-Encoding"); coding {
	case "", "identity":
		return resp, nil
	case "gzip":
		unzipped, err := gzip.NewReader(resp.Body)
		if err != nil {
			_ = resp.Body.Close()
			return nil, fmt.Errorf("the provider's answer says that it is compressed, and is not: %v", err)
		}
		resp.Body = struct {
			io.Reader
			io.Closer
		}{unzipped, resp.Body}
		resp.Header.Del("Content-Length")
		return resp, nil
	default:
		_ = resp.Body.Close()
		return nil, fmt.Errorf("the provider's answer is compressed by %q, which was not asked for", coding)
	}
}

func headers(w http.ResponseWriter, resp *http.Response) {
	for key, values := range resp.Header {
		if listed(key, answerHeaders) {
			w.Header()[key] = values
		}
	}
	w.WriteHeader(resp.StatusCode)
}

const pieceSize = 32 << 10

// copy passes an answer on as it comes, and counts it.
func (c *call) copy(w http.ResponseWriter, resp *http.Response) {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	streams := kind == "text/event-stream"
	c.reading.page = kind == "text/html"
	headers(w, resp)
	out := http.NewResponseController(w)
	_ = out.Flush()
	c.body = nil
	c.release()
	buffer := make([]byte, pieceSize)
	var split lines
	var all []byte // of an answer that is no stream
	var passed int64
	for {
		n, err := resp.Body.Read(buffer)
		if n > 0 {
			_, failed := w.Write(buffer[:n])
			_ = out.Flush()
			passed += int64(n)
			if streams {
				split.feed(buffer[:n], c.line)
			} else if len(all) < longestLine {
				all = append(all, buffer[:n]...)
			}
			if failed != nil { // the agent has gone
				c.land()
				return
			}
			if over := c.g.account.goesOn(c.flight, &c.reading); over != nil && streams {
				c.cut(w, over)
				return
			}
		}
		if err == nil && passed < maxAnswer {
			continue
		}
		if !streams {
			c.reader.whole(all, &c.reading)
		}
		c.land()
		if err != nil && errors.Is(err, io.EOF) {
			return
		}
		panic(http.ErrAbortHandler) // the agent sees the same broken answer
	}
}

// line takes a line of a stream.
func (c *call) line(b []byte) {
	if d := data(b); len(d) > 0 {
		c.reader.event(d, &c.reading)
	}
}

// cut ends an answer in the middle, with an error in the protocol's form.
func (c *call) cut(w http.ResponseWriter, over *over) {
	_, _ = fmt.Fprintf(w, "\n\nevent: error\ndata: %s\n\n", c.via.refuse(http.StatusBadRequest, "pawl: "+over.why))
	_ = http.NewResponseController(w).Flush()
	c.land()
	c.g.config.End(over.ended, over.why)
}

// land counts the call, and tells what was wrong with its answer.
func (c *call) land() {
	r := &c.reading
	u := c.g.account.land(c.flight, r)
	seen := agent.Event{Kind: agent.UsageSeen, Calls: 1, Model: u.model, Usage: u.usage.Usage}
	if u.priced {
		seen.Cost = u.total
	}
	c.g.emit(seen)
	left := c.request.Context().Err() != nil
	r.done = r.done || left && r.stop != "" // the last word was there, if not the stream's end
	if left && !r.done {
		return // the agent did not wait for the end
	}
	flaw := r.flaw(c.question.works())
	if c.question.works() {
		c.g.judge(flaw, len(c.question.tools))
	}
	if flaw != nil {
		c.g.emit(agent.Event{Kind: agent.Retry, Error: flaw})
	}
}

// judge keeps what is wrong with an answer to a call that offered tools of that many bytes. One
// that offers much less than others is beside the work: it has a memory written, or the like.
func (g *Gateway) judge(flaw *failure.APIError, tools int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.tools = max(g.tools, tools)
	if 2*tools > g.tools {
		g.flaw = flaw
	}
}

func (g *Gateway) emit(e agent.Event) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.config.Emit(e)
}
