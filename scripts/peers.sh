#!/bin/sh
# Installs the real programs that the tests talk to: OpenCode and its SDK, at
# the versions whose wire Rouse speaks. Prints the folder on its last line.
# Without network it works from what is there already.
set -eu
cd "$(dirname "$0")/.."
opencode=1.18.33
sdk=1.19.3
dir=${ROUSE_PEERS:-$PWD/.cache/peers}
stamp="$dir/installed-$opencode-$sdk"
if [ ! -e "$stamp" ]; then
	command -v npm >/dev/null || { echo "peers: npm is missing" >&2; exit 1; }
	case "$(uname -s)-$(uname -m)" in
	Linux-x86_64) platform=opencode-linux-x64 ;;
	Linux-aarch64) platform=opencode-linux-arm64 ;;
	Darwin-arm64) platform=opencode-darwin-arm64 ;;
	Darwin-x86_64) platform=opencode-darwin-x64 ;;
	*) echo "peers: no OpenCode for this machine" >&2; exit 1 ;;
	esac
	mkdir -p "$dir"
	[ -e "$dir/package.json" ] || echo '{"private":true}' >"$dir/package.json"
	# The binary is in the platform's package; npm 11 runs no postinstall.
	npm install --prefix "$dir" --no-audit --no-fund --ignore-scripts --no-save \
		"$platform@$opencode" "@opencode-ai/sdk@$sdk" >&2
	ln -sf "$dir/node_modules/$platform/bin/opencode" "$dir/opencode"
	"$dir/opencode" --version >&2
	: >"$stamp"
fi
echo "$dir"
