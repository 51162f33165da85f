// The conformance suite over the NCCL backend, without a GPU: ranks are threads, CUDA's runtime and NCCL are stand-ins.
// The other tests of this program are in files of their own.
#include <gtest/gtest.h>

#include "tests/conformance/conformance.h"
#include "tests/cuda/stand_in/world.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  using namespace ranklab;
  for (const bool canonical : {false, true}) {
    conformance::Backend backend;
    backend.name = canonical ? "nccl_stand_in_canonical" : "nccl_stand_in";
    backend.sizes = {2, 3, 8};
    backend.counts = {0, 1, 7, 4097};
    backend.canonical_order = canonical;
    backend.has_tags = false;
    backend.delay_runs = 10;
    backend.make_world = [canonical](int size) {
      return std::make_unique<stand_in::ThreadsOverNccl>(size, CudaWorldOptions{.canonical_reductions = canonical});
    };
    conformance::register_suite(backend);
  }
  return RUN_ALL_TESTS();
}
