package benchmark

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/gateway"
	"github.com/pawl-dev/pawl/internal/do/supervisor"
)

func init() { //nolint:gochecknoinits // before TestMain, which knows of no Linux
	base := os.Getenv(gatewayTo)
	if base == "" {
		return
	}
	code := 0
	if err := beGateway(base); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// gatewayTo names the provider of the gateway that this process is.
const gatewayTo = "BENCHMARK_GATEWAY_TO"

const (
	benchToken   = "token-of-the-benchmark"
	benchAsk     = `{"model":"claude-sonnet-4-5","stream":true,"max_tokens":1000,"tools":[{}],"messages":[]}`
	benchEvents  = 200
	benchPause   = 5 * time.Millisecond // between events: 200 tokens a second are a fast model
	benchStreams = 200
)

// beGateway is a gateway in a process of its own, as in a supervisor. It tells its
// address and serves until its stdin ends.
func beGateway(base string) error {
	price := loop.MicroUSD(1_000_000_000)
	plan := supervisor.ModelPlan{Token: benchToken, Cost: price, Prices: agent.ListPrices(), Gateway: agent.Gateway{Routes: []agent.Route{
		{Name: "anthropic", Protocol: agent.Anthropic, Base: base, Header: "X-Api-Key", Key: "key"},
	}}}
	g, err := gateway.Open(plan, func(agent.Event) {}, func(loop.Ended, string) {})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- g.Serve(ctx, l) }()
	fmt.Println("http://" + l.Addr().String() + "/anthropic")
	_, _ = io.Copy(io.Discard, os.Stdin)
	stop()
	return <-ended
}

// startGateway starts one before the provider at base.
func startGateway(b *testing.B, base string) (url string, pid int) {
	b.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), gatewayTo+"="+base, "GOMAXPROCS=1", "GOGC=50") // as a supervisor has them
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := c.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = in.Close()
		_ = c.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return strings.TrimSpace(line), c.Process.Pid
}

// slowModel answers in events, with a pause before each but the first. While hold
// is open it says the first and waits. took is how long its last answer took, in
// its own view.
func slowModel(b *testing.B, events int, hold chan struct{}) (url string, took *atomic.Int64) {
	b.Helper()
	took = &atomic.Int64{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		defer func() { took.Store(int64(time.Since(began))) }()
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		out := http.NewResponseController(w)
		_, _ = io.WriteString(w, `data: {"type":"message_start","message":{"model":"claude-sonnet-4-5","usage":{"input_tokens":10}}}`+"\n\n")
		_ = out.Flush()
		if hold != nil {
			<-hold
		}
		for range events {
			<-time.After(benchPause)
			_, _ = io.WriteString(w, `data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a word or two"}}`+"\n\n")
			_ = out.Flush()
		}
		_, _ = io.WriteString(w, `data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}`+"\n\n"+`data: {"type":"message_stop"}`+"\n\n")
	}))
	b.Cleanup(s.Close)
	return s.URL, took
}

// askedModel asks once: how long until the first byte of the answer, and until its end.
func askedModel(b *testing.B, client *http.Client, url string) (first, all time.Duration) {
	b.Helper()
	r, err := http.NewRequest(http.MethodPost, url+"/v1/messages", strings.NewReader(benchAsk))
	if err != nil {
		b.Fatal(err)
	}
	r.Header.Set("X-Api-Key", benchToken)
	began := time.Now()
	resp, err := client.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	in := bufio.NewReader(resp.Body)
	if _, err := in.ReadByte(); err != nil || resp.StatusCode != http.StatusOK {
		b.Fatalf("status %d: %v", resp.StatusCode, err)
	}
	first = time.Since(began)
	if _, err := io.Copy(io.Discard, in); err != nil {
		b.Fatal(err)
	}
	return first, time.Since(began)
}

// BenchmarkGateway is what an agent feels of the gateway, and what it costs.
func BenchmarkGateway(b *testing.B) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: benchStreams}}
	defer client.CloseIdleConnections()
	for b.Loop() {
		quick, _ := slowModel(b, 0, nil)
		through, _ := startGateway(b, quick)
		var direct, passed []float64
		for range 200 {
			first, _ := askedModel(b, client, quick)
			direct = append(direct, ms(first))
			first, _ = askedModel(b, client, through)
			passed = append(passed, ms(first))
		}
		report(b, "gateway: adds to the first byte", median(passed)-median(direct), "ms", atMost(2))

		slow, took := slowModel(b, benchEvents, nil)
		through, _ = startGateway(b, slow)
		direct, passed = nil, nil // beyond what the model itself took: its pauses vary
		var whole []float64
		for range samples {
			_, all := askedModel(b, client, slow)
			direct = append(direct, ms(all-time.Duration(took.Load())))
			_, all = askedModel(b, client, through)
			passed = append(passed, ms(all-time.Duration(took.Load())))
			whole = append(whole, ms(all))
		}
		report(b, "gateway: adds to a streamed answer", max(0, median(passed)-median(direct))/median(whole)*100, "%", atMost(1))
		report(b, "gateway: memory of 200 streams", memoryOfStreams(b, client), "MB", atMost(60))
	}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// memoryOfStreams is the memory of a gateway's process while streams are open.
func memoryOfStreams(b *testing.B, client *http.Client) float64 {
	b.Helper()
	hold := make(chan struct{})
	model, _ := slowModel(b, 1, hold)
	url, pid := startGateway(b, model)
	var open, all sync.WaitGroup
	open.Add(benchStreams)
	for range benchStreams {
		all.Go(func() {
			var once sync.Once
			defer once.Do(open.Done)
			r, err := http.NewRequest(http.MethodPost, url+"/v1/messages", strings.NewReader(benchAsk))
			if err != nil {
				b.Error(err)
				return
			}
			r.Header.Set("X-Api-Key", benchToken)
			resp, err := client.Do(r)
			if err != nil {
				b.Error(err)
				return
			}
			defer resp.Body.Close()
			in := bufio.NewReader(resp.Body)
			if _, err := in.ReadByte(); err != nil {
				b.Error(err)
			}
			once.Do(open.Done)
			_, _ = io.Copy(io.Discard, in)
		})
	}
	open.Wait()
	used := float64(private(pid)) * 1024 / 1e6
	close(hold)
	all.Wait()
	return used
}
