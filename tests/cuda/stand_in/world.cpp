#include "tests/cuda/stand_in/world.h"

#include <unistd.h>

#include <map>
#include <thread>

#include "backends/cpu_sim/thread_world.h"
#include "backends/cuda/backend_row.h"
#include "backends/cuda/cuda_world.h"
#include "backends/cuda/device_queues.h"
#include "tests/cuda/stand_in/host_tensors.h"
#include "tests/free_port.h"

namespace ranklab::stand_in {
namespace {

// A rank keeps its connection to a store for good and counts the worlds there: so worlds of one size share a store, and
// those of another have theirs.
int port_of(int size) {
  static std::map<int, int> ports;
  const auto [place, fresh] = ports.try_emplace(size, 0);
  if (fresh) place->second = free_port();
  return place->second;
}

ProcessEnv env_of(int rank, int size, int port) {
  ProcessEnv env;
  env.rank = env.local_rank = rank;
  env.world_size = env.local_world_size = size;
  env.master_addr = "127.0.0.1";
  env.master_port = port;
  return env;
}

}  // namespace

ThreadsOverNccl::ThreadsOverNccl(int size, const CudaWorldOptions& options)
    : options_(options), port_(port_of(size)), ranks_(static_cast<size_t>(size)) {
  use_host_tensors();
  options_.shares_process = size > 1;
  std::string why_not;
  RANKLAB_CHECK(cuda_device_usable(&why_not), ErrorKind::kInternal, .what = "no device of the stand-in",
                .got = why_not);
}

ThreadsOverNccl::~ThreadsOverNccl() = default;

Capabilities ThreadsOverNccl::capabilities() const { return kCudaBackendRow.on_gpu; }

std::vector<std::optional<Error>> ThreadsOverNccl::errors_of(const std::function<void(Endpoint&)>& body) {
  std::vector<std::optional<Error>> errors(ranks_.size());
  std::vector<std::jthread> threads;
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    threads.emplace_back([&, rank] {
      try {
        if (!ranks_[rank]) ranks_[rank] = make_nccl_world(env_of(static_cast<int>(rank), size(), port_), options_);
        ranks_[rank]->run(body);
      } catch (const Error& error) {
        errors[rank].emplace(error);
      } catch (const std::exception& error) {  // before its world could translate it
        errors[rank].emplace(ErrorKind::kInternal, ErrorText{.what = error.what()});
      }
    });
  }
  threads.clear();
  return errors;
}

std::unique_ptr<World> make_ranks_on_a_gpu(int size) {
  use_host_tensors();
  return make_thread_world({.size = size, .device = make_stream_queues()});
}

void ThreadsOverNccl::run(const std::function<void(Endpoint&)>& body) {
  for (const std::optional<Error>& error : errors_of(body)) {
    if (error) throw *error;
  }
}

}  // namespace ranklab::stand_in
