package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"github.com/thejerf/suture/v4"

	"rouse"
	"rouse/internal/api"
	"rouse/internal/api/opencode"
)

// doorService is the HTTP server as a service.
type doorService struct {
	srv       *http.Server
	listen    net.Listener
	closing   chan struct{}
	accepting chan struct{}
	cut       context.CancelFunc
	log       *slog.Logger
}

func (s *server) newDoor() (*doorService, error) {
	cfg := s.cfg.Get()
	base, cut := context.WithCancel(context.Background())
	closing := make(chan struct{})
	directory, err := os.Getwd()
	if err != nil {
		cut()
		return nil, rouse.Errorf(rouse.Unavailable, "door", "the current directory cannot be read; start rouse in one that exists")
	}
	wire := opencode.New(opencode.Deps{Store: s.store, Feed: s.feed, Sessions: s.lanes, Config: s.cfg.Get, Directory: directory,
		StateDir: s.data.dir, ConfigDir: filepath.Dir(s.opt.Paths.Own[len(s.opt.Paths.Own)-1]), Closing: closing, Log: s.log})
	door, err := api.NewDoor(api.DoorConfig{Token: s.data.token, NoAuth: s.opt.NoAuth, Hosts: cfg.Server.Hosts, Origins: cfg.Server.CORS,
		MaxBody: cfg.Limits.BodyBytes, Sessions: s.store, Log: s.log}, s.own(wire, directory, closing))
	if err != nil {
		cut()
		return nil, err
	}
	return &doorService{srv: api.NewServer(base, door, s.log), listen: s.listen, closing: closing, accepting: make(chan struct{}), cut: cut, log: s.log}, nil
}

// Serve answers requests until ctx ends; then streams end, requests in flight
// have a moment, and the rest is cut.
func (d *doorService) Serve(ctx context.Context) error {
	defer d.cut()
	done := make(chan error, 1)
	go func() { done <- d.srv.Serve(d.listen) }()
	close(d.accepting)
	select {
	case err := <-done:
		return fmt.Errorf("%w: %w", suture.ErrTerminateSupervisorTree, err)
	case <-ctx.Done():
	}
	close(d.closing)
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), doorsStop)
	defer cancel()
	if err := d.srv.Shutdown(stop); err != nil {
		d.cut()
		d.log.Info("daemon.doors_cut", "err", err)
		_ = d.srv.Close()
	}
	<-done
	return nil
}
