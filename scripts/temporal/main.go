// Command temporal is a Temporal server in one process, with SQLite, for the
// tests of internal/do/cluster. It is a module of its own: pawl's users build none
// of it.
//
//	temporal 127.0.0.1:7233 /path/of/the.db
//
// It prints its address when it answers there, and ends on TERM. A database
// that is there is gone on with, so that a restart of the engine can be played.
package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/log"
	plugin "go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	"go.temporal.io/server/common/testing/freeport"
	"go.temporal.io/server/schema/sqlite"
	"go.temporal.io/server/temporal"
)

const namespace = "pawl"

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: temporal ADDRESS DATABASE")
		os.Exit(2)
	}
	if err := serve(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "temporal:", err)
		os.Exit(1)
	}
}

func serve(address, database string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	c, err := configuration(address, database)
	if err != nil {
		return err
	}
	if err := prepare(c, database); err != nil {
		return err
	}
	server, err := temporal.NewServer(
		temporal.WithConfig(c),
		temporal.ForServices(temporal.DefaultServices),
		temporal.WithLogger(log.NewNoopLogger()),
		temporal.WithAuthorizer(authorization.NewNoopAuthorizer()),
		temporal.WithDynamicConfigClient(dynamicconfig.StaticClient{
			// An idle shard dispatches 20 tasks a second without it.
			dynamicconfig.TransferProcessorMaxPollRPS.Key(): 2000,
		}),
	)
	if err != nil {
		return err
	}
	if err := server.Start(); err != nil {
		return err
	}
	defer func() { _ = server.Stop() }()
	if err := await(ctx, c.PublicClient.HostPort); err != nil {
		return err
	}
	fmt.Println(c.PublicClient.HostPort)
	<-ctx.Done()
	return nil
}

// prepare makes the schema of a new database, and the namespace.
func prepare(c *config.Config, database string) error {
	store := c.Persistence.DataStores[plugin.PluginName].SQL
	if _, err := os.Stat(database); errors.Is(err, fs.ErrNotExist) {
		if err := sqlite.SetupSchema(store); err != nil {
			return fmt.Errorf("cannot make the database: %w", err)
		}
	}
	name, err := sqlite.NewNamespaceConfig(c.ClusterMetadata.CurrentClusterName, namespace, false, nil)
	if err != nil {
		return err
	}
	return sqlite.CreateNamespaces(store, name)
}

// await returns when the server answers and knows the namespace.
func await(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		c, err := client.DialContext(ctx, client.Options{HostPort: address, Namespace: namespace})
		if err == nil {
			_, err = c.DescribeTaskQueue(ctx, "ready", 0)
			c.Close()
		}
		if err == nil || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func configuration(address, database string) (*config.Config, error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return nil, err
	}
	if port == 0 {
		port = freeport.MustGetFreePort()
	}
	address = net.JoinHostPort(host, strconv.Itoa(port))
	const name = "active"
	service := func(port int) config.Service {
		return config.Service{RPC: config.RPC{GRPCPort: port, MembershipPort: freeport.MustGetFreePort(), BindOnIP: host}}
	}
	return &config.Config{
		Global: config.Global{
			Membership: config.Membership{MaxJoinDuration: 30 * time.Second, BroadcastAddress: host},
		},
		Persistence: config.Persistence{
			DefaultStore: plugin.PluginName, VisibilityStore: plugin.PluginName, NumHistoryShards: 1,
			DataStores: map[string]config.DataStore{plugin.PluginName: {SQL: &config.SQL{
				PluginName: plugin.PluginName, DatabaseName: database,
				ConnectAttributes: map[string]string{"mode": "rwc", "_journal_mode": "wal", "_synchronous": "normal"},
			}}},
		},
		ClusterMetadata: &cluster.Config{
			FailoverVersionIncrement: 10, MasterClusterName: name, CurrentClusterName: name,
			ClusterInformation: map[string]cluster.ClusterInformation{
				name: {Enabled: true, InitialFailoverVersion: 1, RPCAddress: address},
			},
		},
		DCRedirectionPolicy: config.DCRedirectionPolicy{Policy: "noop"},
		Services: map[string]config.Service{
			"frontend": service(port), "history": service(freeport.MustGetFreePort()),
			"matching": service(freeport.MustGetFreePort()), "worker": service(freeport.MustGetFreePort()),
		},
		Archival: config.Archival{
			History:    config.HistoryArchival{State: "disabled"},
			Visibility: config.VisibilityArchival{State: "disabled"},
		},
		NamespaceDefaults: config.NamespaceDefaults{Archival: config.ArchivalNamespaceDefaults{
			History:    config.HistoryArchivalNamespaceDefaults{State: "disabled"},
			Visibility: config.VisibilityArchivalNamespaceDefaults{State: "disabled"},
		}},
		PublicClient: config.PublicClient{HostPort: address},
	}, nil
}
