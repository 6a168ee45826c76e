package diagnostics

import (
	"rouse"
)

// ClassOf names the class of failure that a text speaks of: the first class in
// the order of the table below of which any phrase occurs, in any ASCII case.
// ClassNone is a text of no known class, which the contract calls "unknown".
// It reads the text once, allocates nothing, and takes some nanoseconds a byte.
func ClassOf(text string) rouse.Class {
	best := len(phrases)
	for i := 0; i+1 < len(text); i++ {
		for _, p := range starting[pair(text[i], text[i+1])] {
			if p.rank < best && matches(p.text, text, i) {
				best = p.rank
			}
		}
		if best == 0 {
			break
		}
	}
	if best == len(phrases) {
		return rouse.ClassNone
	}
	return phrases[best].class
}

// ClassOfCode is the class of a failure of which only a code is known: an HTTP
// status, or -32000, with which agents ask for a login. ClassNone is any other.
func ClassOfCode(code int) rouse.Class {
	switch {
	case code == 401 || code == 403 || code == -32000:
		return rouse.ClassAuth
	case code == 402:
		return rouse.ClassBilling
	case code == 429:
		return rouse.ClassRate
	case code >= 500:
		return rouse.ClassCapacity
	}
	return rouse.ClassNone
}

// phrases are what the classes are known by, strongest first: a usage limit
// that mentions billing is a usage limit. A phrase is lower case; in it
//
//	| is a word's border    ~ may be a space, a dash or an underscore
//	' may be an apostrophe  ? makes the byte in front of it optional
//	@ is one letter         * may be one word and a space
var phrases = [...]struct {
	class rouse.Class
	said  []string
}{
	{rouse.ClassRate, []string{"per~min|", "per~minute|", "perminute"}},
	{rouse.ClassQuota, []string{"usage~limit", "|quota|", "insufficient_quota", "free usage", "extra usage", "plan usage", "out of usage",
		"out of extra usage", "usage exceeded", "usage exhausted", "you've hit your *limit", "you've reached your *limit"}},
	{rouse.ClassRate, []string{"rate~limit", "too many requests", "|429|", "tokens per hour", "tokens per day", "requests per hour", "requests per day", "throttl"}},
	{rouse.ClassBilling, []string{"credit balance", "insufficient credit", "insufficient funds", "insufficient balance", "out of credits", "payment required",
		"purchase credits", "purchase more credits", "|billing|", "subscription required", "subscription expired", "subscription inactive",
		"no active subscription", "|402|"}},
	{rouse.ClassAuth, []string{"api~key", "unauthorised", "unauthorized", "authentication", "unauthenticated", "invalid token", "invalid credentials",
		"token expired", "token has expired", "expired token", "not logged in", "log ?in required", "log ?in again", "permission denied", "forbidden",
		"access paused", "access denied", "access revoked", "|401|", "|403|"}},
	{rouse.ClassContext, []string{"context~length", "context~window", "context~size", "maximum context", "prompt is too long", "input is too long",
		"too many tokens", "too many input tokens", "request too large"}},
	{rouse.ClassCapacity, []string{"overloaded", "at capacity", "high demand", "temporarily unavailable", "service unavailable", "internal server error",
		"server_error", "bad gateway", "gateway time-?out", "|500|", "|502|", "|503|", "|504|", "|529|"}},
	{rouse.ClassNetwork, []string{"cannot connect", "unable to connect", "could not connect", "connection error", "connection refused", "connection reset",
		"connection closed", "connection timed out", "connection lost", "connection was closed", "socket", "|econ@", "enotfound", "etimedout", "eai_again",
		"epipe", "network", "fetch failed", "|terminated|", "stream disconnected", "unexpected eof", "error decoding response body", "timed? ?out", "|dns|"}},
}

// phrase is one row's text, ready to be looked for.
type phrase struct {
	rank int // its row
	text string
}

// starting holds the phrases by the first two bytes of what they match.
var starting = func() (by [1 << 10][]phrase) {
	for rank, row := range phrases {
		for _, text := range row.said {
			first := text
			if first[0] == '|' {
				first = first[1:]
			}
			key := pair(first[0], first[1])
			by[key] = append(by[key], phrase{rank, text})
		}
	}
	return by
}()

// pair joins two bytes into a key that is the same for both cases of a letter.
// Others share keys, too: it only saves comparisons.
func pair(a, b byte) int { return int(a&31)<<5 | int(b&31) }

// matches reports whether a phrase stands in text at i.
func matches(said, text string, i int) bool {
	for k := 0; k < len(said); k++ {
		switch c := said[k]; c {
		case '|':
			if wordAt(text, i-1) == wordAt(text, i) {
				return false
			}
		case '~':
			if i < len(text) && (text[i] == ' ' || text[i] == '-' || text[i] == '_') {
				i++
			}
		case '\'':
			i += apostrophe(text[i:])
		case '@':
			if i >= len(text) || !letter(text[i]) {
				return false
			}
			i++
		case '*':
			end := i
			for wordAt(text, end) {
				end++
			}
			if end > i && end < len(text) && text[end] == ' ' && matches(said[k+1:], text, end+1) {
				return true
			}
		default:
			optional := k+1 < len(said) && said[k+1] == '?'
			if optional {
				k++
			}
			if i < len(text) && lower(text[i]) == c {
				i++
			} else if !optional {
				return false
			}
		}
	}
	return true
}

// apostrophe is the length of the apostrophe, straight or typographic, that s
// starts with, or 0.
func apostrophe(s string) int {
	const curly = "’"
	switch {
	case s != "" && s[0] == '\'':
		return 1
	case len(s) >= len(curly) && s[:len(curly)] == curly:
		return len(curly)
	}
	return 0
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

func letter(c byte) bool { c |= 0x20; return 'a' <= c && c <= 'z' }
func digit(c byte) bool  { return '0' <= c && c <= '9' }

// word reports a byte of words as regular expressions count them: \w.
func word(c byte) bool { return letter(c) || digit(c) || c == '_' }

func wordAt(s string, i int) bool { return i >= 0 && i < len(s) && word(s[i]) }
