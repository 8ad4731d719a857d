# lib.sh: what the scripts of this folder share. Sourced, never run.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
run=$(realpath -m "${RUN:-/run/better-compute-cluster}")
cache=${XDG_CACHE_HOME:-${HOME:?}/.cache}/better-compute/cluster
default_kubernetes=v1.37.2
cgroup=better-compute-cluster # the kubelet's cgroups hang below it, apart from a real kubelet's
# The node's own folders: mounted over those of the machine, in the cluster's mount namespace only.
node_folders="/var/lib/kubelet /var/lib/bcd /run/bcd /etc/cdi /run/cdi /run/containerd /run/netns /var/log /var/lib/cni
  /etc/kubernetes /etc/containerd /etc/nvidia-container-runtime /usr/local/nvidia"
PATH=$PATH:/usr/sbin:/sbin    # runc and ip are there on Debian

die() { echo "error: $1" >&2; [ -z "${2:-}" ] || echo "  $2" >&2; exit 1; }

one_at_a_time() { # waits for another test run's or demo's cluster; the lock is on descriptor 8, not to be inherited
  mkdir -p "$cache"
  exec 8> "$cache/run.lock"
  flock -n 8 || { echo "waiting for another run's cluster" >&2; flock 8; }
}

# --- what was built, by the hash of what it was built from

hash_of() { { echo "$@"; sha256sum "$@"; } | sha256sum | cut -c1-16; } # FILE… : a key of names and contents
containerd_dir() (
  cd "$here" && echo "$cache/containerd-$(hash_of build runtime/*)"
)
kubernetes_dir() ( # VERSION
  cd "$here" && echo "$cache/kubernetes-$1-$(hash_of build harness/*.go "harness/versions/$1.mod" "harness/versions/$1.sum")"
)
images_dir() (
  cd "$here" && echo "$cache/images-$(hash_of images/* harness/mkimage.go /bin/busybox)"
)

# --- processes of a running cluster: $run/pids/NAME holds "PID STARTTIME", so that a number used
# again by another program is never signalled

start_time() { # PID ; nothing for one that is gone or a zombie
  [ -r "/proc/$1/stat" ] || return 0
  sed 's/^.*) //' "/proc/$1/stat" 2>/dev/null | awk '$1 != "Z" { print $20 }'
}
pid_of() { # NAME : its process id, if it lives
  local pid started
  read -r pid started 2>/dev/null < "$run/pids/$1" || return 1
  [ -n "$started" ] && [ "$(start_time "$pid")" = "$started" ] && echo "$pid"
}
record() { echo "$2 $(start_time "$2")" > "$run/pids/$1"; } # NAME PID
eventually() { # SECONDS COMMAND… : until it succeeds
  local until=$((SECONDS + $1))
  until "${@:2}"; do
    [ $SECONDS -lt $until ] || return 1
    sleep 0.05
  done
}
is_gone() { ! pid_of "$1" >/dev/null; } # NAME
stop() { # NAME [SIGNAL] : TERM by default, KILL after 5 s
  local pid
  pid=$(pid_of "$1") || return 0
  kill "-${2:-TERM}" "$pid" 2>/dev/null || return 0
  eventually 5 is_gone "$1" || { kill -KILL "$pid" 2>/dev/null && eventually 30 is_gone "$1" || true; }
}
launch() { # NAME : runs the command line kept in $run/cmd/NAME; call it inside the namespaces
  setsid bash -c "exec $(cat "$run/cmd/$1")" </dev/null >>"$run/log/$1.log" 2>&1 &
  record "$1" $!
}
members() { # the processes that live in the cluster's mount namespace, the holder too
  local holder ns p
  holder=$(pid_of holder) || return 0
  ns=$(readlink "/proc/$holder/ns/mnt")
  for p in /proc/[0-9]*; do
    [ "$(readlink "$p/ns/mnt" 2>/dev/null)" != "$ns" ] || echo "${p#/proc/}"
  done
}
contained() { # the processes in the cluster's cgroups: those of the pods
  local d
  for d in /sys/fs/cgroup /sys/fs/cgroup/*; do
    [ -d "$d/$cgroup" ] && find "$d/$cgroup" -name cgroup.procs -exec cat {} + 2>/dev/null
  done | sort -un
}
