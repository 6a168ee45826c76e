package proc

import (
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"
)

// output keeps the first and the last half of what is written.
type output struct {
	max int

	mu    sync.Mutex
	head  []byte
	tail  []byte // at most twice its half; trimmed from the front
	total int
	told  int
}

// Write keeps p as far as the bound allows; it never fails.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := len(p)
	o.total += n
	half := max(1, o.max/2)
	if room := half - len(o.head); room > 0 {
		k := min(room, len(p))
		o.head = append(o.head, p[:k]...)
		p = p[k:]
	}
	o.tail = append(o.tail, p...)
	if len(o.tail) > 2*half {
		o.tail = append(o.tail[:0], o.tail[len(o.tail)-half:]...)
	}
	return n, nil
}

// fresh gives the output if there is more than the last time.
func (o *output) fresh() (string, bool) {
	o.mu.Lock()
	more := o.total != o.told
	o.told = o.total
	o.mu.Unlock()
	if !more {
		return "", false
	}
	s, _ := o.text()
	return s, true
}

// text gives what is kept as valid UTF-8, with a line that says what is missing.
func (o *output) text() (s string, truncated bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	tail := o.tail
	if half := max(1, o.max/2); len(tail) > half {
		tail = tail[len(tail)-half:]
	}
	missing := o.total - len(o.head) - len(tail)
	if missing == 0 {
		return strings.ToValidUTF8(string(o.head)+string(tail), "\ufffd"), false
	}
	head := o.head
	for len(head) > 0 && len(o.head)-len(head) < utf8.UTFMax && !utf8.Valid(head[max(0, len(head)-1):]) {
		head = head[:len(head)-1]
	}
	for len(tail) > 0 && tail[0]&0xC0 == 0x80 {
		tail = tail[1:]
	}
	return strings.ToValidUTF8(string(head), "\ufffd") +
		fmt.Sprintf("\n… %d bytes are left out …\n", missing) +
		strings.ToValidUTF8(string(tail), "\ufffd"), true
}
