#!/usr/bin/env bash
# Clone HEAD into empty folders with no virtual environment, and run make there as different people would.
#
#   benchmarks/fresh_clone.sh [--only SETTING]… [--user NAME] [--python PYTHON] [--keep] [TARGET]…
#
# Settings: current   whoever runs this, in a plain folder
#           ordinary  an ordinary user, with a home and a Python of their own (as root only: --user, else nobody)
#           closed    root, in a folder that only root may enter (as root only)
# Targets:  demo demo test, unless named; the demo must work again when it is run twice.
#
# Prints one line for each run: status, seconds, and the processes left behind, which count as a failure.
set -euo pipefail

ROOT=$(cd "$(dirname "$0")/.." && pwd)
PYTHONS=(python3.14 python3.13 python3.12 python3.11 python3)
SETTINGS=() TARGETS=() OTHER=nobody PYTHON='' KEEP='' FAILED=''

usage() { sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"; exit "$1"; }

while (($#)); do
    case $1 in
        --only) SETTINGS+=("${2:?--only needs a setting}"); shift ;;
        --user) OTHER=${2:?--user needs a name}; shift ;;
        --python) PYTHON=${2:?--python needs a program}; shift ;;
        --keep) KEEP=1 ;;
        -h | --help) usage 0 ;;
        -*) usage 2 >&2 ;;
        *) TARGETS+=("$1") ;;
    esac
    shift
done
((${#SETTINGS[@]})) || SETTINGS=(current ordinary closed)
((${#TARGETS[@]})) || TARGETS=(demo demo test)

# Run a command as a user, with that user's home and nothing of our environment but the way to the packages.
as_user() {
    local user=$1 home=$2 words=() name
    shift 2
    while IFS= read -r name; do words+=("$name=${!name}"); done < <(
        compgen -e | grep -iE '^(PIP_.*|https?_proxy|all_proxy|no_proxy|SSL_CERT_.*|REQUESTS_CA_BUNDLE)$' || true)
    words=(env -i "HOME=$home" "PATH=$PATH" LANG=C.UTF-8 "${words[@]}" "$@")
    if [[ $user == "$(id -un)" ]]; then
        "${words[@]}"
    else
        setpriv --reuid="$(id -u "$user")" --regid="$(id -g "$user")" --clear-groups -- "${words[@]}"
    fi
}

# Name the first Python that the user may run and that the project supports.
python_for() {
    local candidate found
    for candidate in ${PYTHON:-"${PYTHONS[@]}"}; do
        while IFS= read -r found; do
            as_user "$1" "$2" "$found" -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' \
                >/dev/null 2>&1 && echo "$found" && return
        done < <(type -ap "$candidate")
    done
    return 1
}

# List the processes that still run from, or on, a folder: in their words or as their working folder.
left_in() {
    { pgrep -f -- "$1" || true
      for link in /proc/[0-9]*/cwd; do
          [[ $(readlink "$link" 2>/dev/null) == "$1"* ]] && basename "$(dirname "$link")"
      done; } | sort -un | while read -r pid; do
        [[ $(ps -o stat= -p "$pid" 2>/dev/null) == [!Z]* ]] && echo "$pid"
    done || true
}

end_left_in() { left_in "$1" | xargs -r kill 2>/dev/null || true; }

report() { printf '%-9s %-12s %-8s %7s  %s\n' "$@"; }

# Run one target in a clone and report it; what it says goes to a log.
run_target() {
    local setting=$1 user=$2 clone=$3 python=$4 target=$5 log=$6 started=$SECONDS status=0 left
    (cd "$clone" && as_user "$user" "$(dirname "$clone")" make "PYTHON=$python" "$target") >"$log" 2>&1 </dev/null || status=$?
    left=$(left_in "$clone" | tr '\n' ' ')
    report "$setting" "$target" "$status" "$((SECONDS - started))" "${left:+processes left: $left}"
    if [[ $status != 0 || -n $left ]]; then
        FAILED=1
        tail -n 15 "$log" | sed 's/^/    /'
        end_left_in "$clone"
    fi
}

# Clone into a new home and run all targets there.
run_setting() {
    local setting=$1 user home python target number=0
    user=$(id -un) home=$BASE/$setting
    [[ $setting == ordinary ]] && user=$OTHER
    mkdir -m "$([[ $setting == closed ]] && echo 700 || echo 755)" "$home"
    git clone --quiet "$ROOT" "$home/engram"
    chown -R "$(id -u "$user"):$(id -g "$user")" "$home"
    if ! python=$(python_for "$user" "$home"); then
        report "$setting" - failed - "no Python 3.11 to 3.14 with venv that $user may run: name one with --python"
        FAILED=1
        return
    fi
    echo "$setting: $user, $(as_user "$user" "$home" "$python" --version), $home/engram"
    for target in "${TARGETS[@]}"; do
        number=$((number + 1))
        run_target "$setting" "$user" "$home/engram" "$python" "$target" "$BASE/$setting-$number-${target//\//_}.log"
    done
    [[ -n $KEEP ]] || rm -rf "$home"
}

git -C "$ROOT" diff --quiet HEAD -- || echo "Note: what is not committed is not in the clones." >&2
BASE=$(cd "$(mktemp -d)" && pwd -P)
chmod 755 "$BASE"
trap 'end_left_in "$BASE"' EXIT
trap 'exit 130' INT TERM
report setting target status seconds ''
for setting in "${SETTINGS[@]}"; do
    case $setting in
        current) run_setting current ;;
        ordinary | closed)
            if ((EUID == 0)); then run_setting "$setting"; else report "$setting" - skipped - 'needs root'; fi ;;
        *) usage 2 >&2 ;;
    esac
done
if [[ -n $FAILED ]]; then
    echo "The logs are in $BASE" >&2
    exit 1
fi
[[ -n $KEEP ]] || rm -rf "$BASE"
