package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}

func (s *server) request(method, path string, body any) (*http.Request, error) {
	var r io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		r = bytes.NewReader(raw)
	}
	req, err := http.NewRequest(method, s.url+path, r)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if s.token != "" {
		req.Header.Set("Authorization", "Bearer "+s.token)
	}
	return req, nil
}

// call makes a request and gives the time that it took.
func (s *server) call(method, path string, body, into any) (time.Duration, error) {
	req, err := s.request(method, path, body)
	if err != nil {
		return 0, err
	}
	start := time.Now()
	res, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	took := time.Since(start)
	if err != nil {
		return took, err
	}
	if res.StatusCode >= 300 {
		return took, fmt.Errorf("%s %s %s: %d %s", s.name, method, path, res.StatusCode, raw[:min(len(raw), 300)])
	}
	if into != nil {
		return took, json.Unmarshal(raw, into)
	}
	return took, nil
}

func (s *server) session(dir string) (string, error) {
	var out struct{ ID string }
	_, err := s.call("POST", "/session"+query(dir), map[string]string{"title": "bench"}, &out)
	return out.ID, err
}

func query(dir string) string {
	if dir == "" {
		return ""
	}
	return "?directory=" + url.QueryEscape(dir)
}

func prompt(model, text string) map[string]any {
	return map[string]any{"model": map[string]string{"providerID": "mock", "modelID": model}, "parts": []map[string]string{{"type": "text", "text": text}}}
}

// delivery is a token that arrived at a reader.
type delivery struct {
	session string
	at      time.Time
	delay   time.Duration // since the provider sent it
}

// reader follows events and hands on the stamped tokens in text deltas.
func (s *server) reader(ctx context.Context, dir string, got func(delivery)) (ready <-chan struct{}, err error) {
	req, err := s.request("GET", "/event"+query(dir), nil)
	if err != nil {
		return nil, err
	}
	res, err := (&http.Client{Transport: &http.Transport{ReadBufferSize: 4 << 10}}).Do(req.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	first := make(chan struct{})
	go func() { // ends with ctx
		defer res.Body.Close()
		lines := bufio.NewReaderSize(res.Body, 32<<10)
		seen := false
		for {
			line, err := lines.ReadSlice('\n')
			if err != nil && err != bufio.ErrBufferFull {
				return
			}
			if !seen {
				seen = true
				close(first)
			}
			if bytes.Contains(line, []byte(`"message.part.delta"`)) {
				deltas(line, got)
			}
		}
	}()
	return first, nil
}

// deltas reads the stamps out of a delta frame.
func deltas(line []byte, got func(delivery)) {
	now := time.Now()
	text, session := field(line, `"delta":"`), field(line, `"sessionID":"`)
	for _, f := range strings.Fields(text) {
		if us, err := strconv.ParseInt(f, 10, 64); err == nil && len(f) == 16 {
			got(delivery{session, now, now.Sub(time.UnixMicro(us))})
		}
	}
}

func field(line []byte, key string) string {
	i := bytes.Index(line, []byte(key))
	if i < 0 {
		return ""
	}
	rest := line[i+len(key):]
	j := bytes.IndexByte(rest, '"')
	if j < 0 {
		return ""
	}
	return string(rest[:j])
}

// counter counts deliveries.
type counter struct{ n atomic.Int64 }

func (c *counter) add(delivery) { c.n.Add(1) }
