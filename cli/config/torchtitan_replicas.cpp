#include "cli/config/torchtitan_replicas.h"

#include "core/base/text.h"

namespace ranklab {

TitanReplicas titan_replicas(const TorchtitanWords& words) {
  const std::string table = "fault_tolerance.", key = table + "semi_sync_method";
  if (!words.on(table + "enable", false) || words.text(key, "None") == "None") return {};
  const bool local_sgd = words.choice(key, "", {"local_sgd", "diloco"}) == "local_sgd";
  const auto number = [&](const char* name, int64_t absent) { return words.number(table + name, absent); };
  const int64_t groups = words.number(table + "group_size", 0, 2), fragments = number("num_fragments", 1);
  const auto real = [](double value) { return strprintf("%.10g", value); };
  TitanReplicas result{.groups = groups,
                       .settings = {{"diloco.replicas", std::to_string(groups)},
                                    {"diloco.sync_steps", std::to_string(number("sync_steps", 5))},
                                    // torchtitan's outer optimizer, without settings of its own; local SGD has none
                                    {"diloco.outer_lr", local_sgd ? "1" : "0.7"},
                                    {"diloco.outer_momentum", local_sgd ? "0" : "0.9"},
                                    {"diloco.outer_nesterov", local_sgd ? "false" : "true"}}};
  if (local_sgd) return result;
  result.settings.emplace_back("diloco.fragments", std::to_string(fragments));
  result.settings.emplace_back("diloco.sync_delay", std::to_string(number("fragment_sync_delay", 0)));
  result.settings.emplace_back("diloco.update_alpha", real(words.real(table + "fragment_update_alpha", 0)));
  return result;
}

}  // namespace ranklab
