// A CUDA world whose ranks are threads of this process, each with a device of the stand-in: the backend's own world,
// rendezvous, watchdog and heartbeat for every rank, over the stand-ins for CUDA's runtime and NCCL. Thread rule: main
// thread.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/cuda/cuda_backend.h"
#include "core/base/error.h"
#include "core/comm/world.h"

namespace ranklab::stand_in {

class ThreadsOverNccl final : public World {
 public:
  ThreadsOverNccl(int size, const CudaWorldOptions& options);
  ~ThreadsOverNccl() override;

  int size() const override { return static_cast<int>(ranks_.size()); }
  Capabilities capabilities() const override;
  std::string describe() const override { return "threads over a stand-in for NCCL"; }
  // A second run is another generation of the same worlds.
  void run(const std::function<void(Endpoint&)>& body) override;
  // What each rank's world threw in a run; nullopt for nothing.
  std::vector<std::optional<Error>> errors_of(const std::function<void(Endpoint&)>& body);

 private:
  CudaWorldOptions options_;
  int port_;  // of the store
  std::vector<std::unique_ptr<World>> ranks_;
};

// Simulated ranks whose tensors are on the stand-in's first GPU, each with a stream of its own.
std::unique_ptr<World> make_ranks_on_a_gpu(int size);

}  // namespace ranklab::stand_in
