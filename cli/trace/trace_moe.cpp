#include "cli/trace/trace_moe.h"

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/common/json_output.h"
#include "cli/trace/table_json.h"
#include "cli/trace/trace_traffic.h"
#include "core/base/error.h"
#include "viz/model/tables/expert_load.h"
#include "viz/model/tables/traffic_text.h"

namespace ranklab {
namespace {

using nlohmann::ordered_json;

ordered_json json_of(const viz::TraceStore& store, const viz::Window& window, const viz::ExpertTable& table) {
  ordered_json layers = ordered_json::array(), steps = ordered_json::array();
  for (const viz::LayerLoad& load : table.totals) layers.push_back(load_json(load, table.peers));
  for (const viz::LayerLoad& load : table.loads) steps.push_back(load_json(load, table.peers));
  const auto matrix = [&](Purpose purpose) {
    return matrix_json(viz::traffic_matrix(store, window, {.purpose = purpose}));
  };
  return {{"source", store.source()},
          {"step", window.step},
          {"num_experts", table.num_experts},
          {"peers", table.peers},
          {"layers", layers},
          {"by_step", steps},
          {"traffic", traffic_json(store, window)},
          {"dispatch", matrix(Purpose::kDispatch)},
          {"combine", matrix(Purpose::kCombine)}};
}

void print_matrix(const viz::TraceStore& store, const viz::Window& window, Purpose purpose) {
  const viz::TrafficMatrix matrix = viz::traffic_matrix(store, window, {.purpose = purpose});
  if (matrix.total().messages == 0) return;
  std::printf("\n%s, logical bytes\n%s", std::string(name(purpose)).c_str(),
              matrix_text(matrix, viz::TrafficLayer::kLogical).c_str());
}

}  // namespace

void print_moe_stats(const viz::TraceStore& store, const viz::Window& window, bool json) {
  const viz::ExpertTable table = expert_table(store, window);
  RANKLAB_CHECK(!table.empty(), ErrorKind::kInvalidArgument, .where = "trace stats --moe",
                .what = "nothing was routed to experts", .got = store.source(),
                .want = "a trace of a mixture of experts",
                .fix = "make one: ./ranklab train --preset deepseek_v3_tiny --ep 8");
  if (json) {
    const std::vector<std::string> warnings =
        store.warning().empty() ? std::vector<std::string>() : std::vector<std::string>{store.warning()};
    std::printf("%s\n", json_result(json_of(store, window, table), warnings).c_str());
    return;
  }
  std::printf("%s\n%s", expert_text(table).c_str(),
              flows_text(traffic_flows(store, window, {.gpus_per_node = store.gpus_per_node()}), store.gpus_per_node())
                  .c_str());
  print_matrix(store, window, Purpose::kDispatch);
  print_matrix(store, window, Purpose::kCombine);
}

}  // namespace ranklab
