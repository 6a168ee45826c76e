#!/bin/sh
# Installs the agent programs that the tests run against the simulated provider,
# each at the version that Rouse was measured with, in a folder of its own. The
# folder bin gets a link for each one that starts here, or NAME.skipped with the
# reason why not. Prints the folder on its last line. Without network it works
# from what is there already. OpenCode is one of scripts/peers.sh.
set -eu
cd "$(dirname "$0")/.."
dir=${ROUSE_AGENTS:-$PWD/.cache/agents}
mkdir -p "$dir/bin"
case "$(uname -s)" in Linux) os=linux ;; Darwin) os=darwin ;; *) os=other ;; esac
case "$(uname -m)" in x86_64) arch=x64 ;; aarch64 | arm64) arch=arm64 ;; *) arch=other ;; esac

# speaks COMMAND: it answers the protocol's first request within 90 s.
speaks() {
	node -e '
const child = require("node:child_process").spawn(process.argv[1], process.argv.slice(2), { stdio: "pipe", detached: true });
let said = "";
const end = (why) => { try { process.kill(-child.pid, "SIGKILL"); } catch {} if (why) console.error(why); process.exit(why ? 1 : 0); };
setTimeout(() => end("it does not answer"), 90000);
child.on("error", (e) => end(e.message));
child.on("exit", (code, signal) => end("it ends at its start (" + (signal || code) + "): " + said.trim().split("\n").slice(-3).join(" ")));
child.stderr.on("data", (b) => { said = (said + b).slice(-2000); });
child.stdout.once("data", () => end());
child.stdin.on("error", () => {});
child.stdin.write(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params: { protocolVersion: 1, clientCapabilities: {} } }) + "\n");
' "$@"
}

skip() {
	echo "agents: $1 is skipped: $2" >&2
	rm -f "$dir/bin/$1"
	echo "$2" >"$dir/bin/$1.skipped"
	return 1
}

# agent NAME PROGRAM ARGUMENTS PACKAGE...: PROGRAM is a path in node_modules.
agent() {
	name=$1 program=$2 arguments=$3
	shift 3
	home="$dir/$name" stamp="$dir/$name/installed"
	if [ "$(cat "$stamp" 2>/dev/null)" = "$*" ] && [ -e "$dir/bin/$name" ]; then return; fi
	command -v npm >/dev/null || { skip "$name" "npm is missing"; return; }
	mkdir -p "$home"
	[ -e "$home/package.json" ] || echo '{"private":true}' >"$home/package.json"
	echo "agents: installing $*" >&2
	# The binaries are in packages of their own; npm 11 runs no postinstall.
	npm install --prefix "$home" --no-audit --no-fund --ignore-scripts --no-save --loglevel error "$@" >&2 ||
		{ skip "$name" "npm could not install $*"; return; }
	why=$(HOME="$home" speaks "$home/node_modules/$program" $arguments 2>&1) ||
		{ skip "$name" "$program: $why"; return; }
	rm -f "$dir/bin/$name.skipped"
	ln -sf "$home/node_modules/$program" "$dir/bin/$name"
	echo "$*" >"$stamp"
}

agent claude .bin/claude-agent-acp "" @agentclientprotocol/claude-agent-acp@0.101.0 || :
agent gemini .bin/gemini --acp @google/gemini-cli@0.61.0 || :
agent codex .bin/codex-acp "" @agentclientprotocol/codex-acp@2.6.0 || :
agent codex-zed "@zed-industries/codex-acp-$os-$arch/bin/codex-acp" "" @zed-industries/codex-acp@0.16.0 || :
agent qwen .bin/qwen --acp @qwen-code/qwen-code@0.24.4 || :
agent copilot .bin/copilot --acp @github/copilot@1.0.102 || :
# Kilo's platform packages are behind the package that names them: 7.8.1 asks
# for some that are not published, so its newest binary is asked for itself.
agent kilo "@kilocode/cli-$os-$arch/bin/kilo" acp "@kilocode/cli-$os-$arch@7.7.9" || :
# pi-acp looks for pi on the PATH, and pi needs Node 22.19 or newer: it gets one
# of its own.
mkdir -p "$dir/pi"
cat >"$dir/pi/run" <<EOF
#!/bin/sh
PATH="$dir/pi/node_modules/node-$os-$arch/bin:$dir/pi/node_modules/.bin:\$PATH" exec pi-acp "\$@"
EOF
chmod +x "$dir/pi/run"
agent pi ../run "" pi-acp@0.0.34 @earendil-works/pi-coding-agent@1.6.0 "node-$os-$arch@22.23.3" || :
echo "$dir"
