package feed

import (
	"hash/maphash"
	"sync"

	"rouse"
)

// Text is the growing text of one running part. Only its lane appends.
type Text struct {
	f    *Feed
	part *rouse.Part
	dir  string

	mu   sync.RWMutex
	text []byte // append-only: a slice of it stays valid
}

// LivePart is a running part as it is now.
type LivePart struct {
	Part *rouse.Part // the row as committed at its start; shared, never changed
	Text []byte      // all so far; never changed
}

const liveShards = 64

// liveTexts is sharded by session: a thousand lanes append at once.
type liveTexts struct {
	seed   maphash.Seed
	shards [liveShards]struct {
		sync.RWMutex
		bySession map[string][]*Text
	}
	parts sync.Map // part id -> *Text
}

func newLiveTexts() *liveTexts {
	l := &liveTexts{seed: maphash.MakeSeed()}
	for i := range l.shards {
		l.shards[i].bySession = map[string][]*Text{}
	}
	return l
}

// Open begins the live text of a part whose start is committed. directory is
// the session's.
func (f *Feed) Open(part *rouse.Part, directory string) *Text {
	t := &Text{f: f, part: part, dir: directory, text: []byte(part.Text)}
	sh := &f.live.shards[maphash.String(f.live.seed, part.SessionID)%liveShards]
	sh.Lock()
	sh.bySession[part.SessionID] = append(sh.bySession[part.SessionID], t)
	sh.Unlock()
	f.live.parts.Store(part.ID, t)
	return t
}

// Append adds text and rings whoever follows the session.
func (t *Text) Append(s string) {
	t.mu.Lock()
	t.text = append(t.text, s...)
	t.mu.Unlock()
	t.f.touched(t.part.SessionID, t.dir)
}

// Bytes is the text so far; it must not be changed.
func (t *Text) Bytes() []byte {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.text
}

// Close ends the live text. Publish does it when the part's end is committed,
// before anybody can read the event: after the end of a part no reader finds
// it running. The lane does it for a part whose end could not be written.
func (t *Text) Close() {
	l := t.f.live
	sh := &l.shards[maphash.String(l.seed, t.part.SessionID)%liveShards]
	sh.Lock()
	defer sh.Unlock()
	list := sh.bySession[t.part.SessionID]
	for i := range list {
		if list[i] == t {
			list = append(list[:i:i], list[i+1:]...)
			break
		}
	}
	if len(list) == 0 {
		delete(sh.bySession, t.part.SessionID)
	} else {
		sh.bySession[t.part.SessionID] = list
	}
	l.parts.CompareAndDelete(t.part.ID, t)
}

// Live lists a session's running parts.
func (f *Feed) Live(sessionID string) []LivePart {
	sh := &f.live.shards[maphash.String(f.live.seed, sessionID)%liveShards]
	sh.RLock()
	defer sh.RUnlock()
	list := sh.bySession[sessionID]
	if len(list) == 0 {
		return nil
	}
	out := make([]LivePart, len(list))
	for i, t := range list {
		out[i] = LivePart{Part: t.part, Text: t.Bytes()}
	}
	return out
}

// LiveText is the text of a running part so far; ok is false when the part is
// not running here.
func (f *Feed) LiveText(partID string) (text []byte, ok bool) {
	t, ok := f.live.parts.Load(partID)
	if !ok {
		return nil, false
	}
	return t.(*Text).Bytes(), true
}
