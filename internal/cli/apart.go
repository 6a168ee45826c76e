package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"rouse"
	"rouse/internal/client"
	"rouse/internal/proc"
)

// apart is a stage whose server is a process of its own, so that it can be
// stopped as a suspended machine stops it.
type apart struct {
	dir     string
	speed   int
	process *proc.Process
	client  *client.Client
	url     string
	reading sync.WaitGroup
	leaving *leaving
	kept    func() // the server needs no more killing at an early end

	life sync.Mutex // process is set or killed, not both at once
	over bool       // at an early end: nothing is started any more

	mu     sync.Mutex
	logged map[string]int // by message
}

func (s *apart) Client() *client.Client { return s.client }
func (s *apart) Work() string           { return filepath.Join(s.dir, "project") }
func (s *apart) Speed() int             { return s.speed }
func (s *apart) Suspend()               { s.process.Suspend() }
func (s *apart) Continue()              { s.process.Continue() }

func (s *apart) Logged(message string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.logged[message]
}

// Restart stops the server and starts it on the same folder and port.
func (s *apart) Restart(ctx context.Context) error {
	s.end()
	_, err := s.serve(ctx, portOf(s.url))
	return err
}

func (s *apart) start(ctx context.Context) error {
	tokenFile, err := s.serve(ctx, 0)
	if err != nil {
		return err
	}
	token, err := os.ReadFile(tokenFile)
	if err == nil {
		s.client, err = client.New(s.url, strings.TrimSpace(string(token)))
	}
	if err != nil {
		s.end()
	}
	return rouse.Wrap("drill", err)
}

// Patience with the process.
const (
	apartStarts = 30 * time.Second
	apartEnds   = 10 * time.Second // a server that is told to stop; then it is killed
)

// serve runs this program as a server that knows no configuration but the
// stage's, and gives where its token is.
func (s *apart) serve(ctx context.Context, port int) (tokenFile string, err error) {
	const op = "drill: server"
	self, err := os.Executable()
	if err != nil {
		return "", &rouse.Error{Kind: rouse.Unavailable, Op: op, Msg: "this program cannot find its own file", Err: err}
	}
	s.kept = s.leaving.add(s.kill) // before there is something to kill
	if err := s.launch(proc.Command{Dir: s.dir,
		Argv: []string{self, "serve", "--ready-json", "--host", "127.0.0.1", "--port", strconv.Itoa(port), "--data", filepath.Join(s.dir, "data"),
			"--drill", "--drill-speed", strconv.Itoa(s.speed), "--log-format", "json"},
		Env: []string{"HOME=" + s.dir, "XDG_CONFIG_HOME=" + filepath.Join(s.dir, "config"), "ROUSE_CONFIG=", "ROUSE_DATA=", "ROUSE_KEYRING=off"}}); err != nil {
		s.kept()
		return "", err
	}
	ready := make(chan []byte, 1)
	s.reading.Go(func() {
		in := bufio.NewReader(s.process.Stdout)
		line, _ := in.ReadBytes('\n') // what it lacks is seen below
		ready <- line
		_, _ = io.Copy(io.Discard, in)
	})
	s.reading.Go(func() { s.follow(s.process.Stderr) })
	limit := time.NewTimer(apartStarts)
	defer limit.Stop()
	var said []byte
	select {
	case said = <-ready:
	case <-limit.C:
		err = rouse.Errorf(rouse.Internal, op, "the server was not ready within %s", apartStarts)
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	var line struct {
		URL       string `json:"url"`
		TokenFile string `json:"token_file"`
	}
	if err == nil && json.Unmarshal(said, &line) != nil {
		err = rouse.Errorf(rouse.Internal, op, "the server ended before it was ready")
	}
	if err != nil {
		s.end()
		return "", err
	}
	s.url = line.URL
	return line.TokenFile, nil
}

// follow counts what is logged.
func (s *apart) follow(r io.Reader) {
	in := bufio.NewScanner(r)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var line struct {
			Msg string `json:"msg"`
		}
		if json.Unmarshal(in.Bytes(), &line) != nil {
			continue // a notice for people
		}
		s.mu.Lock()
		if s.logged == nil {
			s.logged = map[string]int{}
		}
		s.logged[line.Msg]++
		s.mu.Unlock()
	}
	_, _ = io.Copy(io.Discard, r) // a line without end must not hold up the server
}

// end stops the server, suspended or not; nothing of it is left.
func (s *apart) end() {
	s.process.Continue()
	s.process.Interrupt()
	limit := time.NewTimer(apartEnds)
	defer limit.Stop()
	select {
	case <-s.process.Ended():
	case <-limit.C:
	}
	_ = s.process.Close()
	s.kept()
	s.reading.Wait()
}

func (s *apart) stop() error {
	s.client.Close()
	s.end()
	return nil
}

func (s *apart) launch(c proc.Command) (err error) {
	s.life.Lock()
	defer s.life.Unlock()
	if s.over {
		return errInterrupted
	}
	p, err := proc.Start(c)
	if err == nil {
		s.process = p
	}
	return err
}

// kill ends the server at once, and lets no other start.
func (s *apart) kill() {
	s.life.Lock()
	s.over = true
	p := s.process
	s.life.Unlock()
	if p == nil {
		return
	}
	now, cancel := context.WithCancel(context.Background())
	cancel()
	p.Kill(now)
}
