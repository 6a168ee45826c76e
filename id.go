package rouse

import (
	"crypto/rand"
	"encoding/hex"
	"strings"
	"sync"
	"time"
)

// Prefixes of ids, as OpenCode's clients know them (opencode 1.18.33), and
// Rouse's own. An id is prefix + "_" + 12 hex digits + 14 base62 digits.
const (
	SessionPrefix    = "ses"
	MessagePrefix    = "msg"
	PartPrefix       = "prt"
	PermissionPrefix = "per"
	QuestionPrefix   = "que"
	TurnPrefix       = "trn"
	IncidentPrefix   = "inc"
	WallPrefix       = "wal"
	BootPrefix       = "boo"
)

var ids struct {
	sync.Mutex
	last uint64 // ms*4096 + counter of the newest id
	rand []byte // buffered random bytes
}

// NewID makes an id that sorts by time within its prefix: ascending, except
// sessions, which sort newest first (the bits are inverted, as OpenCode's
// clients expect). The 48-bit stamp wraps every 795 days, so order rows by
// time and only then by id. now comes from the caller.
func NewID(prefix string, now time.Time) string {
	ids.Lock()
	defer ids.Unlock()
	stamp := uint64(now.UnixMilli()) * 4096
	if stamp <= ids.last {
		stamp = ids.last + 1
	}
	ids.last = stamp
	if prefix == SessionPrefix {
		stamp = ^stamp
	}
	if len(ids.rand) < 14 {
		ids.rand = make([]byte, 14*64)
		_, _ = rand.Read(ids.rand) // never fails: crypto/rand aborts the program instead
	}
	const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	var b [26]byte
	raw := [6]byte{byte(stamp >> 40), byte(stamp >> 32), byte(stamp >> 24), byte(stamp >> 16), byte(stamp >> 8), byte(stamp)}
	hex.Encode(b[:12], raw[:])
	for i := range 14 {
		b[12+i] = alphabet[int(ids.rand[i])%len(alphabet)]
	}
	ids.rand = ids.rand[14:]
	return prefix + "_" + string(b[:])
}

// CheckID refuses an id that does not carry its prefix.
func CheckID(prefix, id string) error {
	if rest, ok := strings.CutPrefix(id, prefix+"_"); !ok || rest == "" || len(id) > 128 {
		return Errorf(Invalid, "check id", "id %q: expected one that starts with %q", Clip(id, 40), prefix+"_")
	}
	return nil
}

// Clip shortens s to at most n bytes without cutting a rune.
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n]
}
