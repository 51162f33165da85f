#include "core/config/device_choice.h"

#include "core/base/error.h"

namespace ranklab {

void check_device(const TrainConfig& c) {
  const auto refuse = [&](bool asked, const char* what, const std::string& got, const char* want) {
    RANKLAB_CHECK(!asked, ErrorKind::kInvalidArgument, .where = "config", .what = what,
                  .got = "--device " + c.device + ", " + got, .want = want, .fix = "use that, or leave both out");
  };
  refuse(c.device == "cpu" && !c.simulated(), "ranks of this backend have their tensors on their GPUs",
         "--backend " + c.backend, "--device cuda, or --backend cpu_sim");
  if (!c.simulated() || !c.on_gpu()) return;
  refuse(c.collectives == "gloo", "Gloo moves the host's memory, and the ranks' tensors are on a GPU",
         "--collectives gloo", "--collectives direct");
  refuse(c.transport != "inproc", "TCP moves the host's memory, and the ranks' tensors are on a GPU",
         "--transport " + c.transport, "--transport inproc");
  refuse(c.model.moe.enabled() && c.moe_dispatcher == "rdep",
         "the dispatcher writes into memory that the ranks share on the host, and their tensors are on a GPU",
         "--moe-token-dispatcher-type rdep", "--moe-token-dispatcher-type alltoall");
}

}  // namespace ranklab
