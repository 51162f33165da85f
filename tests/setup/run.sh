#!/usr/bin/env bash
# ./ranklab itself: what it says and does when a build is the first, when downloads break, when it is killed, typed twice, without
# network, without room. With a checkout whose program is a few lines and an index of packages on this machine: seconds, no network.
#   tests/setup/run.sh
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/small.sh"
out="$small/out" failed=0 name=

begin() { name=$1; start_anew; }
fail() { echo "FAILED: $name: $1"; [ ! -f "$out" ] || sed 's/^/    /' "$out" | tail -n 25; failed=1; }
# run CODE ARGUMENT...: ./ranklab with the output in $out
run() {
  local want=$1 code=0; shift
  timeout 120 "$ranklab" "$@" >"$out" 2>&1 </dev/null || code=$?
  [ "$code" = "$want" ] || fail "ranklab $* left with $code; want $want"
}
says() { grep -qE -- "$1" "$out" || fail "does not say \"$1\""; }
never_says() { ! grep -qE -- "$1" "$out" || fail "says \"$1\""; }
# For half a minute at least: whether COMMAND holds at last.
soon() { for _ in $(seq 600); do "$@" && return; sleep 0.05; done; return 1; }
runs() { pgrep -f "$small/tree/.*$1" >/dev/null; }
is_gone() { ! kill -0 "$builder" 2>/dev/null; }
# The bit of SIGTERM among the signals that the process catches is cleared by the first one.
lets_the_next_end_it() { local caught; caught=$(awk '/^SigCgt/ {print $2}' "/proc/$builder/status") && ! ((16#$caught >> 14 & 1)); }
asked() { grep -c "^/files/$1" "$small/index/requests" 2>/dev/null; }  # requests for the file

start_index
begin "the first command builds, says what it does, and trains"
run 0 train
says 'first time in this folder: .*downloads LibTorch.*compiles the program with [0-9]+ jobs.*about [0-9]+ min and [0-9]+ MB of disk'
says "^trained 7 driver $ranklab lock none"

name="the second command does nothing but train"
: >"$small/index/requests"
run 0 train
[ "$(wc -l <"$out")" = 1 ] || fail "says more than the program"
[ "$(wc -l <"$small/index/requests")" = 0 ] || fail "asks the index"

name="a changed source is compiled, a broken one names the compiler's error and the log"
sed -i 's/trained/trained again/' "$small/tree/cli/main.cpp"
run 0 train
says '^trained again'
echo 'no C++' >>"$small/tree/cli/main.cpp"
run 1 train
says 'main.cpp:.*error'
says 'error: the build failed; the whole output is in .*build/release.log'
sed -i '$d' "$small/tree/cli/main.cpp"
run 0 train
says '^trained again'

name="a part of the program is built when it is asked for, once"
run 0 module viz
says 'builds the visualizer, once: about'
run 0 module viz
[ ! -s "$out" ] || fail "says something the second time"
run 3 module vis
says 'no module is called "vis"; want viz, bench or lessons'

stop_index; start_index --rate 400000
begin "everything is built by the first command, what waits for the program included"
run 0 build release
[ -f "$small/tree/build/release/libuses_the_program.a" ] || fail "does not build all"
stop_index; start_index

begin "two at a time: the second waits with a word, and both train"
"$ranklab" train >"$small/other" 2>&1 </dev/null &
other=$!
while [ ! -f "$small/tree/build/.lock-release" ]; do sleep 0.02; done
run 0 train
says 'waits for another ranklab that builds in this folder'
says '^trained'
wait "$other" || fail "the first one left with $?"
grep -q '^trained' "$small/other" || fail "the first one did not train"
# One may train for hours: no lock is held meanwhile.
"$ranklab" sleep 1000 >/dev/null 2>&1 &
other=$!
soon runs "bin/ranklab sleep 1000" || fail "the program that sleeps does not start"
touch "$small/tree/cli/main.cpp"
run 0 train
never_says waits
kill "$other" 2>/dev/null; wait "$other" 2>/dev/null

begin "an interrupted build resumes"
"$ranklab" train >"$small/other" 2>&1 </dev/null &
other=$!
until ls "$small"/tree/build/release/CMakeFiles/plain.dir/*.o >/dev/null 2>&1; do sleep 0.05; kill -0 "$other" 2>/dev/null || break; done
kill -INT -- "$other" 2>/dev/null; kill "$other" 2>/dev/null; wait "$other" 2>/dev/null
first=$(find "$small/tree/build/release" -name '*.o' -printf '%p %i %T@\n' | sort | head -n 1)
run 0 train
says '^trained'
find "$small/tree/build/release" -name '*.o' -printf '%p %i %T@\n' | grep -qF "$first" || fail "compiles again what was compiled"

begin "a build that waits for a process that does not stop leaves at the second signal"
mkdir -p "$small/stubborn"
printf '#!/bin/sh\ntrap "" TERM INT\ntouch "%s"\nwhile [ -d "%s" ]; do sleep 0.2; done\n' "$small/stubborn/began" "$small/stubborn" >"$small/stubborn/cmake"
chmod +x "$small/stubborn/cmake"
PATH="$small/stubborn:$PATH" "$ranklab" train >"$small/other" 2>&1 </dev/null &
other=$!
until [ -f "$small/stubborn/began" ]; do sleep 0.05; kill -0 "$other" 2>/dev/null || break; done
builder=$(pgrep -f "build.py --source $small/tree")
kill -TERM "$builder"
soon lets_the_next_end_it || fail "does not take the first signal"
kill -TERM "$builder"
soon is_gone || fail "still there"
kill -KILL "$builder" 2>/dev/null
pkill -KILL -f "$small/stubborn/cmake"
wait "$other" 2>/dev/null
grep -q Traceback "$small/other" && fail "says a Traceback"

begin "a build that is ended ends what it runs, too"
mkdir -p "$small/blocking"
# As cmake --build: it waits for the build tool, whatever it is told.
printf '#!/bin/sh\ntrap "" TERM INT\nenv --default-signal=TERM sleep 1000 &\necho $! >"%s.new"\nmv "%s.new" "%s"\nwait\n' \
  "$small/blocking/tool" "$small/blocking/tool" "$small/blocking/tool" >"$small/blocking/cmake"
chmod +x "$small/blocking/cmake"
PATH="$small/blocking:$PATH" "$ranklab" train >"$small/other" 2>&1 </dev/null &
other=$!
until [ -f "$small/blocking/tool" ]; do sleep 0.05; kill -0 "$other" 2>/dev/null || break; done
builder=$(pgrep -f "build.py --source $small/tree")
kill -TERM "$builder"
soon is_gone || fail "waits for the build to end by itself"
kill -0 "$(cat "$small/blocking/tool")" 2>/dev/null && fail "leaves the build tool running"
kill "$(cat "$small/blocking/tool")" 2>/dev/null; wait "$other" 2>/dev/null

stop_index; start_index --break-after 300000
begin "a connection that breaks is taken up where it broke"
run 0 train
says '^trained'
grep -E '^/files/torch' "$small/index/requests" | awk '{print $2}' | sort -u | wc -l | grep -qx 1 && fail "asks for the whole again"

stop_index; start_index --rate 400000
begin "a killed download resumes"
setsid "$ranklab" train >"$small/other" 2>&1 </dev/null &
other=$!
piece="$small/cache/ranklab/download"
until [ "$(du -sk "$piece" 2>/dev/null | cut -f1)" -gt 800 ] 2>/dev/null; do sleep 0.1; done
kill -KILL -- "-$other"; wait "$other" 2>/dev/null
stop_index; start_index
: >"$small/index/requests"
run 0 train
says '^trained'
begins=$(awk '/^\/files\/torch/ {split($2, part, /[=-]/); print part[2]}' "$small/index/requests" | sort -n | head -n 1)
[ "$(asked torch)" -ge 1 ] && [ "${begins:-0}" -gt 500000 ] || fail "begins at byte ${begins:-?} again"

stop_index; start_index
begin "what GPUs need is laid beside LibTorch, the module is built with it and opened; once"
run 0 setup --cuda
says 'downloads what LibTorch.s CUDA half loads .*3 wheels'
says 'the CUDA module is built and opens: .*build/cuda/bin/libranklab_cuda.so \(version 5\)'
[ "$(readlink "$small/cache/ranklab/nvidia/cu13/lib/libcudart.so")" = libcudart.so.13 ] || fail "no name to link the runtime by"
[ -z "$(find "$small/cache/ranklab/download" -name 'n*.whl')" ] || fail "leaves the wheels behind"
: >"$small/index/requests"
run 0 setup --cuda
never_says downloads
[ ! -s "$small/index/requests" ] || fail "asks the index"
run 3 setup --cuda now
says 'error: \[setup\] setup --cuda takes no more words; got: now; want: ./ranklab setup --cuda$'
name="a module that does not open is said"
sed -i 's/ranklab_cuda_module_version/another_version/' "$small/tree/CMakeLists.txt"
run 3 setup --cuda
says 'error: \[setup\] the CUDA module cannot be opened; got: .*libranklab_cuda.so'
sed -i 's/another_version/ranklab_cuda_module_version/' "$small/tree/CMakeLists.txt"

stop_index; start_index
begin "wheels that were unpacked before an interruption are not brought again"
mv "$small/index/nvcc.whl" "$small/nvcc.whl"
run 3 setup --cuda
says 'error: \[setup\] cannot download nvcc'
[ "$(asked nccl.whl)" = 1 ] || fail "asks for the first wheel $(asked nccl.whl) times"
mv "$small/nvcc.whl" "$small/index/nvcc.whl"
run 0 setup --cuda
says 'the CUDA module is built and opens'
[ "$(asked nccl.whl) $(asked nvcc.whl)" = "1 1" ] || fail "asks for the first wheel $(asked nccl.whl) times, for the other $(asked nvcc.whl)"
[ -f "$small/cache/ranklab/nvidia/nccl/lib/libnccl.so.2" ] || fail "lost what was unpacked"
name="what was unpacked of other wheels is not kept"
mkdir -p "$small/cache/ranklab/nvidia.part/nvidia"
touch "$small/cache/ranklab/nvidia.part/.done-nccl.whl" "$small/cache/ranklab/nvidia.part/nvidia/old"
echo 'other wheels' >"$small/cache/ranklab/nvidia.part/.wheels"
rm -r "$small/cache/ranklab/nvidia"
run 0 setup --cuda
[ ! -e "$small/cache/ranklab/nvidia/old" ] && [ "$(asked nccl.whl)" = 2 ] || fail "keeps them"

stop_index; start_index --no-ranges
begin "an index that knows no ranges serves, too"
run 0 train
says '^trained'

stop_index; start_index
begin "a folder of packages instead of a network"
run 3 setup --download
says 'error: \[setup\] no folder to download into; got: nothing; want: ./ranklab setup --download FOLDER \[--cuda\]$'
run 3 setup --download --cuda "$small/kit"
says 'error: \[setup\] no folder to download into; got: --cuda; want: '
run 3 setup --download "$small/kit" --gpu
says 'error: \[setup\] setup --download accepts only --cuda after the folder; got: --gpu; want: '
[ ! -e "$small/kit" ] || fail "makes the folder all the same"
run 0 setup --download "$small/kit"
says 'done; on the other machine: RANKLAB_PACKAGES=FOLDER ./ranklab train$'
[ -f "$small/kit/SHA256SUMS" ] || fail "no SHA256SUMS in the folder"
stop_index
start_anew
RANKLAB_PACKAGES="$small/kit" run 0 train
says '^trained'
name="so for GPUs: without the folder it is said how to bring it"
run 3 setup --cuda
says 'cannot download LibTorch.s CUDA half.*setup --download FOLDER --cuda on a machine .*RANKLAB_PACKAGES=FOLDER ./ranklab setup --cuda'
start_index
run 0 setup --download "$small/kit" --cuda
says 'done; on the other machine: RANKLAB_PACKAGES=FOLDER ./ranklab setup --cuda$'
stop_index
RANKLAB_PACKAGES="$small/kit" run 0 setup --cuda
says 'the CUDA module is built and opens'
name="a broken file of that folder is refused, named, and not used"
start_anew
# Sixteen bytes: one alone would be the one that stands there already in one run of 256.
printf 'these are broken' | dd of="$small/kit/torch-0.0-any.whl" bs=1 seek=1000000 conv=notrunc status=none
RANKLAB_PACKAGES="$small/kit" run 3 train
says 'error: \[setup\].*torch-0.0-any.whl'
never_says '^trained'

begin "without network: what is missing and how to bring it"
export PIP_INDEX_URL=http://127.0.0.1:9/simple
run 3 train
says 'error: \[setup\] cannot download LibTorch.*want: torch-0.0-any.whl of PyPI.s torch \(sha256 [0-9a-f]{64}\).*setup --download FOLDER'
never_says Traceback

start_index
begin "too little disk space is reported before anything starts"
mkdir -p "$small/bin"
printf '#!/bin/sh\necho "Filesystem 1M-blocks Used Available Capacity Mounted"\necho "disk 1000 990 10 99%% /"\n' >"$small/bin/df"
chmod +x "$small/bin/df"
PATH="$small/bin:$PATH" run 3 train
says 'not enough space on the disk of .*got 10 MB free; want [0-9]+ MB'
[ "$(asked '')" = 0 ] || fail "downloads all the same"

name="a user without a home directory, of whom /etc/passwd knows nothing, is told so by both scripts"
printf '#!/bin/sh\nexit 2\n' >"$small/bin/getent"
chmod +x "$small/bin/getent"
for script in "$ranklab" "$small/tree/cmake/provision.sh"; do
  env -u HOME -u XDG_CACHE_HOME PATH="$small/bin:$PATH" "$script" torch >"$out" 2>&1
  [ $? = 3 ] || fail "$script does not leave with 3"
  says 'error: \[setup\] no home directory; .*do: set HOME or XDG_CACHE_HOME'
done

[ "$failed" = 0 ] && echo "setup: all as it should be"
exit "$failed"
