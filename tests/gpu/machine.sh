# Finds the program, its tests and the libraries they load. Sets: program, bin, has_gpu, gpu_name, python.
# Sourced by run.sh.
root=$(cd "$kit/../.." && pwd)
python=$(command -v python3 || true)
bin="$root/build/cuda/bin"
if [ "$root/.gpu/build.tgz" -nt "$root/.gpu/bin" ]; then
  rm -rf "$root/.gpu/bin" "$root/.gpu/lib" && tar -C "$root/.gpu" -xzmf "$root/.gpu/build.tgz"
fi
if [ -d "$root/.gpu/bin" ]; then bin="$root/.gpu/bin"; fi
program="$bin/ranklab"
export RANKLAB_CUDA_MODULE="$bin/libranklab_cuda.so"

if [ -n "$stand_in" ]; then
  build="$root/build/cuda"
  . "$root/tests/cuda/stand_in/env.sh"
  # As many threads as there are processors in each of several ranks wait for each other most of the time.
  export OMP_NUM_THREADS=1
fi

# pip's torch brings LibTorch, and its neighbours bring CUDA's libraries and NCCL.
torch_lib=${RANKLAB_TORCH_LIB:-}
if [ -z "$torch_lib" ] && [ -n "$python" ]; then
  torch_lib=$("$python" -c 'import importlib.util as u; s = u.find_spec("torch"); print(s.submodule_search_locations[0] + "/lib" if s else "")' 2>/dev/null)
fi
if [ -n "$torch_lib" ]; then
  # Of the libraries that were packed only those that this machine lacks: its own fit its other programs.
  lacking=$(mktemp -d)
  for library in "$root"/.gpu/lib/*; do
    [ -e "$library" ] && ! ldconfig -p | grep -q "$(basename "$library") " && cp "$library" "$lacking/"
  done
  paths="$lacking:$torch_lib"
  for folder in "$root"/build/gpu_prefix/usr/lib "$root"/build/gpu_prefix/{usr/,}lib/x86_64-linux-gnu; do
    [ -d "$folder" ] && paths="$paths:$folder"
  done
  for folder in "$torch_lib"/../../nvidia/*/lib; do [ -d "$folder" ] && paths="$paths:$folder"; done
  export LD_LIBRARY_PATH="$paths${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
fi

gpu_name=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 1)
[ -z "$stand_in" ] || gpu_name="stand-in GPU"
has_gpu=no
[ -n "$gpu_name" ] && has_gpu=yes
commit=$(cat "$root/.gpu/commit" 2>/dev/null || git -C "$root" rev-parse --short HEAD 2>/dev/null || echo unknown)
cores=$(nproc)

# test_program NAME: where a test's program is.
test_program() { if [ -x "$bin/$1" ]; then echo "$bin/$1"; else find "$root/build/cuda/tests" -name "$1" -type f -perm -u+x | head -n 1; fi; }
