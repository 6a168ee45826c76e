package test

import (
	"bytes"
	"io"
	"sync"
)

// journal is what a program says, readable while it speaks.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

// ReadFrom takes all that comes, as it comes.
func (j *journal) ReadFrom(r io.Reader) (n int64, err error) {
	return io.Copy(struct{ io.Writer }{j}, r)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}
