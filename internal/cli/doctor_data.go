package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

func checkData(dir string) []finding {
	st, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if parent := existing(dir); !folder(parent) {
			return []finding{{"data", "fail", "the data folder " + dir + " cannot be made: " + parent + " is not a folder", "name another with --data"}}
		} else if err := writes(parent); err != nil {
			return []finding{{"data", "fail", "the data folder " + dir + " does not exist and " + parent + " cannot be written (" + err.Error() + ")", "make it, or name another with --data"}}
		}
		return []finding{{"data", "ok", "the data folder " + dir + " will be made at the first start", ""}}
	case err != nil:
		return []finding{{"data", "fail", "the data folder " + dir + " cannot be looked at", "check the rights of the folders above it"}}
	case !st.IsDir():
		return []finding{{"data", "fail", dir + " is not a folder", "move it away, or name another with --data"}}
	}
	if err := writes(dir); errors.Is(err, syscall.ENOSPC) {
		return []finding{{"data", "fail", "the file system of the data folder " + dir + " is full: nothing can be stored", "make room on it"}}
	} else if err != nil {
		return []finding{{"data", "fail", "the data folder " + dir + " cannot be written (" + err.Error() + ")", "run as its owner, or name another with --data"}}
	}
	if st.Mode().Perm()&0o077 != 0 {
		return []finding{{"data", "warn", fmt.Sprintf("others may look into the data folder %s (mode %o)", dir, st.Mode().Perm()), "chmod 700 " + dir}}
	}
	out := []finding{{"data", "ok", dir, ""}}
	for _, name := range []string{"token", "accounts.json"} {
		if st, err := os.Stat(filepath.Join(dir, name)); err == nil && st.Mode().Perm()&0o077 != 0 {
			out = append(out, finding{"data", "fail", fmt.Sprintf("others may read %s (mode %o)", name, st.Mode().Perm()), "chmod 600 " + filepath.Join(dir, name)})
		}
	}
	return out
}

// existing is the nearest folder above that is there.
func existing(dir string) string {
	for {
		if _, err := os.Stat(dir); err == nil || filepath.Dir(dir) == dir {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}

func folder(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}

// tryRoom is what a server needs to take a prompt and keep its answer.
const tryRoom = 1 << 20

// writes tries it: rights alone do not tell of a read-only file system, nor an
// empty file of a full one.
func writes(dir string) error {
	f, err := os.CreateTemp(dir, ".doctor-*")
	if err == nil {
		_, err = f.Write(make([]byte, tryRoom))
		err = errors.Join(err, f.Sync(), f.Close(), os.Remove(f.Name()))
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err // the folder is named beside it
	}
	return err
}
