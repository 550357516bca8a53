package netstack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/fdbased"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"
	"gvisor.dev/gvisor/pkg/waiter"

	"github.com/pawl-dev/pawl/internal/do/boxnet"
	"github.com/pawl-dev/pawl/internal/do/sandbox"
)

const (
	nic         = 1
	maxDialling = 512
	maxOpen     = 1024
	maxBuffer   = 256 << 10 // bytes of one direction of a connection, which the limit of the box does not count
	maxFlows    = 512       // of UDP
	dialBound   = 2 * time.Minute
	flowIdle    = 2 * time.Minute
	lookupIdle  = 20 * time.Second // a question and its answer
	maxDatagram = 1 << 16
)

// serving is one box's stack.
type serving struct {
	reach
	ctx         context.Context
	refused     func(host, why string)
	open, flows atomic.Int64
}

// heldLink delivers nothing while the stack is set up: the first packet is there already,
// and would be dropped.
type heldLink struct {
	stack.LinkEndpoint
	to stack.NetworkDispatcher
}

// Attach implements [stack.LinkEndpoint].
func (l *heldLink) Attach(to stack.NetworkDispatcher) {
	if l.to = to; to == nil {
		l.LinkEndpoint.Attach(nil)
	}
}

// Serve is a [boxnet.Stack].
func Serve(ctx context.Context, tun int, p sandbox.Policy, refused func(host, why string)) error {
	device, err := fdbased.New(&fdbased.Options{FDs: []int{tun}, MTU: sandbox.MTU})
	if err != nil {
		return fmt.Errorf("cannot serve the packets of the sandbox: %w", err)
	}
	link := &heldLink{LinkEndpoint: device}
	st := stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol, ipv6.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol, udp.NewProtocol},
	})
	s := &serving{reach: reach{doors: p.Doors, shut: p.Shut}, ctx: ctx, refused: refused}
	connect := tcp.NewForwarder(st, 0, maxDialling, s.connectOut)
	st.SetTransportProtocolHandler(tcp.ProtocolNumber, connect.HandlePacket)
	st.SetTransportProtocolHandler(udp.ProtocolNumber, udp.NewForwarder(st, s.openFlow).HandlePacket)
	st.SetRouteTable([]tcpip.Route{
		{Destination: header.IPv4EmptySubnet, NIC: nic}, {Destination: header.IPv6EmptySubnet, NIC: nic},
	})
	sack := tcpip.TCPSACKEnabled(true)
	receive := tcpip.TCPReceiveBufferSizeRangeOption{Min: tcp.MinBufferSize, Default: maxBuffer / 2, Max: maxBuffer}
	send := tcpip.TCPSendBufferSizeRangeOption{Min: tcp.MinBufferSize, Default: maxBuffer / 2, Max: maxBuffer}
	for _, err := range []tcpip.Error{
		st.SetTransportProtocolOption(tcp.ProtocolNumber, &sack),
		st.SetTransportProtocolOption(tcp.ProtocolNumber, &receive),
		st.SetTransportProtocolOption(tcp.ProtocolNumber, &send), st.CreateNIC(nic, link),
		st.SetPromiscuousMode(nic, true), st.SetSpoofing(nic, true), // it answers for all addresses
	} {
		if err != nil {
			return fmt.Errorf("cannot serve the packets of the sandbox: %v", err)
		}
	}
	device.Attach(link.to)
	<-ctx.Done()
	st.RemoveNIC(nic)
	st.Destroy()
	return nil
}

// dialTarget connects to where a program of the box wants to, if it may.
func (s *serving) dialTarget(network string, id stack.TransportEndpointID) (net.Conn, error) {
	a, _ := netip.AddrFromSlice(id.LocalAddress.AsSlice())
	to := netip.AddrPortFrom(a, id.LocalPort)
	at, err := s.findTarget(network, to)
	if why, ok := errors.AsType[refusal](err); ok {
		s.refused(to.String(), string(why))
	}
	if err != nil {
		return nil, err
	}
	d := net.Dialer{Timeout: dialBound}
	return d.DialContext(s.ctx, network, at.String())
}

// tcpConn is one with a program of the box, as the net package's are.
type tcpConn struct {
	*gonet.TCPConn
	endpoint tcpip.Endpoint
}

// SetLinger has the program learn that the connection broke off.
func (c tcpConn) SetLinger(int) error {
	c.endpoint.Abort()
	return nil
}

// connectOut makes the connection that a program asks for. What cannot be had is refused.
func (s *serving) connectOut(r *tcp.ForwarderRequest) {
	defer s.open.Add(-1)
	if s.open.Add(1) > maxOpen {
		r.Complete(true)
		return
	}
	to, err := s.dialTarget("tcp", r.ID())
	if err != nil {
		r.Complete(true)
		return
	}
	var queue waiter.Queue
	endpoint, terr := r.CreateEndpoint(&queue)
	r.Complete(terr != nil)
	if terr != nil {
		_ = to.Close()
		return
	}
	boxnet.Join(s.ctx, tcpConn{gonet.NewTCPConn(&queue, endpoint), endpoint}, to)
}

// openFlow passes datagrams on, from the first to where nothing has come for a while.
// What may not be sent is answered as a port without a server.
func (s *serving) openFlow(r *udp.ForwarderRequest) bool {
	if s.flows.Load() >= maxFlows {
		return true
	}
	to, err := s.dialTarget("udp", r.ID())
	if err != nil {
		return false
	}
	var queue waiter.Queue
	endpoint, terr := r.CreateEndpoint(&queue)
	if terr != nil {
		_ = to.Close()
		return true
	}
	from, idle := gonet.NewUDPConn(&queue, endpoint), flowIdle
	if r.ID().LocalPort == dnsPort {
		idle = lookupIdle
	}
	s.flows.Add(1)
	go func() {
		defer s.flows.Add(-1)
		passDatagrams(s.ctx, from, to, idle)
	}()
	return true
}

func passDatagrams(ctx context.Context, a, b net.Conn, idle time.Duration) {
	end := func() {
		_ = a.Close()
		_ = b.Close()
	}
	defer context.AfterFunc(ctx, end)()
	late := time.AfterFunc(idle, end)
	defer late.Stop()
	var both sync.WaitGroup
	pass := func(to, from net.Conn) {
		defer end()
		for buf := make([]byte, maxDatagram); ; late.Reset(idle) {
			n, err := from.Read(buf)
			if err != nil {
				return
			}
			_, _ = to.Write(buf[:n]) // one that is lost is as one of the network's
		}
	}
	both.Go(func() { pass(a, b) })
	both.Go(func() { pass(b, a) })
	both.Wait()
}
