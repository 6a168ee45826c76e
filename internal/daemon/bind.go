package daemon

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"

	"rouse"
)

func (s *server) host() string {
	if s.opt.Host != "" {
		return s.opt.Host
	}
	return s.cfg.Get().Server.Host
}

func (s *server) port() int {
	if s.opt.Port >= 0 {
		return s.opt.Port
	}
	return s.cfg.Get().Server.Port
}

// checkBind refuses an open server that others can reach.
func (s *server) checkBind() error {
	host := s.host()
	if s.opt.NoAuth && !loopback(host) {
		return rouse.FieldError("bind", "--no-auth", "--no-auth is for loopback only: %s can be reached by others; leave --no-auth out", host)
	}
	return nil
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}

func (s *server) bind() error {
	host, port := s.host(), s.port()
	l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return &rouse.Error{Kind: rouse.Invalid, Op: "bind", Field: "--port", Err: err, Msg: cannotListen(err, host, port)}
	}
	s.listen = l
	addr := l.Addr().(*net.TCPAddr)
	if addr.IP.IsUnspecified() {
		host = "127.0.0.1"
	}
	s.url = "http://" + net.JoinHostPort(host, strconv.Itoa(addr.Port))
	return nil
}

// cannotListen says why and what to do.
func cannotListen(err error, host string, port int) string {
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns), errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Sprintf("cannot listen on %s: it is no address of this machine; use another --host", host)
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Sprintf("cannot listen on %s port %d: it is in use; use another --port, or --port 0 for any free one", host, port)
	default:
		return fmt.Sprintf("cannot listen on %s port %d: it is not allowed; use another --port, or --port 0 for any free one", host, port)
	}
}
