// Registers the paths of the thread world.
#include <gtest/gtest.h>

#include "backends/cpu_sim/thread_world.h"
#include "tests/conformance/conformance.h"
#include "tests/cpu_sim/host_queues.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  using namespace ranklab;
  const auto factory = [](Collectives collectives, Transport transport) {
    return
        [=](int size) { return make_thread_world({.size = size, .collectives = collectives, .transport = transport}); };
  };
  conformance::register_suite({.name = "direct", .make_world = factory(Collectives::kDirect, Transport::kInproc)});
  conformance::register_suite({.name = "gloo_inproc", .make_world = factory(Collectives::kGloo, Transport::kInproc)});
  // The same code above the transport: fewer sizes, since each call costs milliseconds here.
  conformance::register_suite({.name = "gloo_tcp",
                               .make_world = factory(Collectives::kGloo, Transport::kTcp),
                               .sizes = {1, 2, 3, 8},
                               .counts = {0, 1, 7, 4097},
                               .dtypes = {at::kFloat, at::kBFloat16},
                               .delay_runs = 20});
  // What ranks on a GPU do with its streams, on the host.
  conformance::register_suite({.name = "device", .make_world = [](int size) {
                                 return make_thread_world({.size = size, .device = make_host_queues()});
                               }});
  return RUN_ALL_TESTS();
}
