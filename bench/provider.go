package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"
)

// provider is an OpenAI-compatible endpoint. The model's name says what it
// does: "instant" answers with one token at once; "drip-N" streams tokens at N
// a second until the client leaves. Every token is the Unix time in
// microseconds at which it was sent, and a space.
type provider struct {
	url string
	srv *http.Server
}

func startProvider() (*provider, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &provider{url: "http://" + l.Addr().String() + "/v1"}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", p.complete)
	p.srv = &http.Server{Handler: mux}
	go func() { _ = p.srv.Serve(l) }() // ends with stop
	return p, nil
}

func (p *provider) stop() { _ = p.srv.Close() }

func token() string { return fmt.Sprintf("%d ", time.Now().UnixMicro()) }

func chunk(w http.ResponseWriter, delta, finish string) error {
	reason := "null"
	if finish != "" {
		reason = `"` + finish + `"`
	}
	_, err := fmt.Fprintf(w, `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":%s,"finish_reason":%s}]}`+"\n\n", delta, reason)
	return err
}

func (p *provider) complete(w http.ResponseWriter, r *http.Request) {
	var req struct {
		Model  string
		Stream bool
		Tools  []json.RawMessage
	}
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	rate := 0
	if n, ok := strings.CutPrefix(req.Model, "drip-"); ok && len(req.Tools) > 0 { // titles have no tools
		_, _ = fmt.Sscan(n, &rate)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(w).Flush
	_ = chunk(w, `{"role":"assistant","content":""}`, "")
	if rate == 0 {
		_ = chunk(w, `{"content":"`+token()+`"}`, "")
	} else {
		tick := time.NewTicker(time.Second / time.Duration(rate))
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-r.Context().Done():
				return
			}
			if chunk(w, `{"content":"`+token()+`"}`, "") != nil || flush() != nil {
				return
			}
		}
	}
	_ = chunk(w, `{}`, "stop")
	_, _ = fmt.Fprint(w, `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":10,"completion_tokens":1,"total_tokens":11}}`+"\n\ndata: [DONE]\n\n")
}
