package cli

import (
	"net/url"
	"strconv"
)

// portOf is the port of a server's address; 0 if it names none.
func portOf(address string) int {
	u, err := url.Parse(address)
	if err != nil {
		return 0
	}
	n, _ := strconv.Atoi(u.Port()) // empty: 0
	return n
}
