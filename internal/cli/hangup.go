package cli

import "syscall"

// hangup asks a server to read its configuration again.
const hangup = syscall.SIGHUP
