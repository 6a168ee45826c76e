package config

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/godbus/dbus/v5"
	gokeyring "github.com/zalando/go-keyring"
)

// keyring is a place outside of files that holds secrets.
type keyring interface {
	// answers says, within a bounded time, whether the other calls would
	// neither fail nor wait for a person.
	answers(ctx context.Context) bool
	get(provider string) (string, error)
	set(provider, key string) error
	remove(provider string) error
}

// service is the name under which the keyring files Rouse's secrets.
const service = "rouse"

// systemKeyring is the Secret Service on Linux and the Keychain on macOS.
type systemKeyring struct{ getenv func(string) string }

func (systemKeyring) get(provider string) (string, error) { return gokeyring.Get(service, provider) }
func (systemKeyring) set(provider, key string) error {
	return gokeyring.Set(service, provider, key)
}
func (systemKeyring) remove(provider string) error { return gokeyring.Delete(service, provider) }

// answers asks the bus whether somebody serves secrets and whether the default
// collection is unlocked. go-keyring itself has no deadline: it would wait for
// ever on a prompt that nobody sees.
func (k systemKeyring) answers(ctx context.Context) bool {
	if runtime.GOOS == "darwin" {
		return true
	}
	if runtime.GOOS != "linux" || !k.hasBus() {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	conn, err := dbus.ConnectSessionBus(dbus.WithContext(ctx))
	if err != nil {
		return false
	}
	defer conn.Close()
	var served bool
	err = conn.BusObject().CallWithContext(ctx, "org.freedesktop.DBus.NameHasOwner", 0, "org.freedesktop.secrets").Store(&served)
	if err != nil || !served {
		return false
	}
	var locked dbus.Variant
	err = conn.Object("org.freedesktop.secrets", "/org/freedesktop/secrets/aliases/default").
		CallWithContext(ctx, "org.freedesktop.DBus.Properties.Get", 0, "org.freedesktop.Secret.Collection", "Locked").Store(&locked)
	is, ok := locked.Value().(bool)
	return err == nil && ok && !is
}

// hasBus keeps the library from starting a bus of its own.
func (k systemKeyring) hasBus() bool {
	if addr := k.getenv("DBUS_SESSION_BUS_ADDRESS"); addr != "" {
		return !strings.HasPrefix(addr, "autolaunch:")
	}
	dir := k.getenv("XDG_RUNTIME_DIR")
	if dir == "" {
		return false
	}
	_, err := os.Stat(filepath.Join(dir, "bus"))
	return err == nil
}
