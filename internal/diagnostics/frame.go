package diagnostics

import (
	"bytes"
)

// MaxLine bounds a line of standard error, in bytes without its newline.
// OpenCode before 1.17 writes whole prompts into one line.
const MaxLine = 256 << 10

// Fault is what is wrong with a line as such.
type Fault string

// The faults. A line that has none was read whole.
const (
	Oversize Fault = "oversize" // longer than MaxLine; its text is not kept
	Torn     Fault = "torn"     // the stream ended inside it
)

// Line is one line of a stream, without its newline.
type Line struct {
	// Text is the line's bytes. It is the framer's own memory and holds only
	// until emit returns; Parse copies what it needs.
	Text  []byte
	Fault Fault
}

// Framer cuts the reads of one stream into lines. It keeps at most one
// unfinished line of MaxLine bytes, and never fails. The zero Framer is ready;
// it is for one goroutine.
type Framer struct {
	rest []byte // an unfinished line
	long bool   // the unfinished line is over the bound and skipped
}

// keep is the buffer that stays with an idle stream; a thousand agents each
// wrote a long line once.
const keep = 16 << 10

// Feed takes one read, of any length, and emits the lines that it completes.
func (f *Framer) Feed(read []byte, emit func(Line)) {
	for {
		end := bytes.IndexByte(read, '\n')
		if end < 0 {
			break
		}
		f.complete(read[:end], "", emit)
		read = read[end+1:]
	}
	switch {
	case f.long:
	case len(f.rest)+len(read) > MaxLine:
		f.long = true
		f.forget()
	default:
		f.rest = append(f.rest, read...)
	}
}

// Close ends the stream: an unfinished line is torn. The framer is then as new.
func (f *Framer) Close(emit func(Line)) {
	if f.long || len(f.rest) > 0 {
		f.complete(nil, Torn, emit)
	}
}

// complete emits the unfinished line with its end.
func (f *Framer) complete(end []byte, fault Fault, emit func(Line)) {
	line := end // not copied when it lies in one read
	switch {
	case f.long || len(f.rest)+len(end) > MaxLine:
		line, fault = nil, Oversize
	case len(f.rest) > 0:
		f.rest = append(f.rest, end...)
		line = f.rest
	}
	emit(Line{line, fault})
	f.long = false
	f.forget()
}

func (f *Framer) forget() {
	if cap(f.rest) > keep {
		f.rest = nil
	}
	f.rest = f.rest[:0]
}
