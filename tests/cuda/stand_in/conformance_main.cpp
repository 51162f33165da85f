// The conformance suite over the NCCL backend, without a GPU: ranks are threads, CUDA's runtime and NCCL are stand-ins.
// The other tests of this program are in files of their own.
#include <gtest/gtest.h>

#include "tests/conformance/conformance.h"
#include "tests/cuda/stand_in/world.h"

namespace ranklab::stand_in {
namespace {

conformance::Backend backend_with(const std::string& name, const CudaWorldOptions& options) {
  conformance::Backend backend;
  backend.name = name;
  backend.sizes = {2, 3, 8};
  backend.counts = {0, 1, 7, 4097};
  backend.canonical_order = options.canonical_reductions;
  backend.has_tags = false;
  backend.delay_runs = 10;
  backend.make_world = [options](int size) { return std::make_unique<ThreadsOverNccl>(size, options); };
  return backend;
}

void register_suites() {
  conformance::register_suite(backend_with("nccl_stand_in", {}));
  conformance::register_suite(backend_with("nccl_stand_in_canonical", {.canonical_reductions = true}));
  // Calls that are the same on every member pass where they are compared; each costs round trips to the store.
  conformance::Backend compared = backend_with("nccl_stand_in_compared", {.check_calls = true});
  compared.sizes = {3};
  compared.counts = {0, 7};
  compared.dtypes = {at::kFloat};
  compared.delay_runs = 2;
  conformance::register_suite(compared);
}

}  // namespace
}  // namespace ranklab::stand_in

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  ranklab::stand_in::register_suites();
  return RUN_ALL_TESTS();
}
