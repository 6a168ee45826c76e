package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"rouse"
)

func frameText(seq int, kind, session string) string {
	id := ""
	if seq > 0 {
		id = fmt.Sprintf("id: %d\n", seq)
	}
	return id + fmt.Sprintf("data: {\"id\":\"evt\",\"type\":%q,\"properties\":{\"sessionID\":%q}}\n\n", kind, session)
}

// TestFollowResumes: each connection brings a little and breaks; the cursor
// goes on, nothing is missing and nothing comes twice.
func TestFollowResumes(t *testing.T) {
	var n atomic.Int64
	var asked []string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Header.Get("Last-Event-ID")+" "+r.URL.Path+"?"+r.URL.RawQuery)
		fmt.Fprint(w, frameText(0, "server.connected", ""))
		switch n.Add(1) {
		case 1:
			fmt.Fprint(w, frameText(5, "a", "s"), ": a comment\n\n", frameText(0, "delta", "s"), "id: 6\ndata: {\"type\":\"torn")
		case 2:
			fmt.Fprint(w, strings.ReplaceAll(frameText(6, "b", "s"), "\n", "\r\n"))
		default:
			fmt.Fprint(w, frameText(7, "c", "s"))
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	})
	var got []string
	opens, losses := 0, 0
	err := c.Follow(context.Background(), Stream{Directory: "/d", Open: func() { opens++ }, Lost: func(error) { losses++ }}, func(e Event) error {
		if e.Type == "server.connected" {
			return nil
		}
		got = append(got, fmt.Sprintf("%d%s", e.Seq, e.Type))
		if e.Type == "c" {
			return ErrStop
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if s := strings.Join(got, " "); s != "5a 0delta 6b 7c" {
		t.Errorf("events %s", s)
	}
	if s := strings.Join(asked, ", "); s != " /event?directory=%2Fd, 5 /event?directory=%2Fd, 6 /event?directory=%2Fd" {
		t.Errorf("asked %s", s)
	}
	if opens != 3 || losses != 2 {
		t.Errorf("opens %d, losses %d", opens, losses)
	}
}

func TestFollowEnds(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("directory") == "/no" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		fmt.Fprint(w, `data: {"directory":"/d","payload":{"type":"session.created","properties":{"info":{"id":"ses_9"}}}}`+"\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	mine := errors.New("mine")
	err := c.Follow(context.Background(), Stream{}, func(e Event) error {
		if e.SessionID != "ses_9" || e.Type != "session.created" {
			t.Errorf("event %+v", e)
		}
		return mine
	})
	if !errors.Is(err, mine) {
		t.Errorf("handler's error: %v", err)
	}
	if err := c.Follow(context.Background(), Stream{Directory: "/no"}, nil); rouse.KindOf(err) != rouse.Denied {
		t.Errorf("refused: %v", err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	if err := c.Follow(ctx, Stream{}, func(Event) error { cancel(mine); return nil }); !errors.Is(err, mine) {
		t.Errorf("cancelled: %v", err)
	}
}

// FuzzFrames: any bytes are read to their end, and what has a sequence number
// never moves the cursor back.
func FuzzFrames(f *testing.F) {
	f.Add("id: 5\ndata: {\"type\":\"a\"}\n\n")
	f.Add("data: {\ndata: }\n\nid: x\n\n:c\r\n\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		var fr frame
		after := int64(0)
		for line := range strings.SplitSeq(text, "\n") {
			if !fr.line([]byte(line)) {
				continue
			}
			before := after
			if e, ok := fr.event(&after); after < before || ok && e.Seq > after {
				t.Fatalf("cursor %d after %d, event %d", after, before, e.Seq)
			}
			fr.reset()
		}
	})
}

// A server that does not know a position says where the stream goes on, also
// when that is before it: it was restored. The cursor goes there.
func TestFollowAfterARestore(t *testing.T) {
	var asked []string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Header.Get("Last-Event-ID"))
		switch len(asked) {
		case 1:
			fmt.Fprint(w, frameText(900, "a", "s"))
		case 2:
			fmt.Fprint(w, frameText(7, Resync, ""), frameText(8, "b", "s"))
		default:
			fmt.Fprint(w, frameText(9, "c", "s"))
		}
	})
	err := c.Follow(t.Context(), Stream{}, func(e Event) error {
		if e.Type == "c" {
			return ErrStop
		}
		return nil
	})
	if got := strings.Join(asked, " "); err != nil || got != " 900 8" {
		t.Errorf("asked for %q, %v", got, err)
	}
}
